"""A release replaces only a release."""

from functools import partial
from pathlib import Path

import pytest

from controller.commands import exit_code_of
from controller.errors import EXIT_USAGE
from controller.packaging.release import SUMS, CannotBuild, build
from tests.support.audit.tools.installed import RELEASE_KEY


def test_a_folder_that_is_no_release_is_not_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "papers"
    out.mkdir()
    (out / "contract.txt").write_text("signed")
    assert exit_code_of(partial(build, tmp_path, out, RELEASE_KEY)) == EXIT_USAGE
    assert f"{out} has files but no SHA256SUMS" in capsys.readouterr().err
    assert (out / "contract.txt").read_text() == "signed"
    link = tmp_path / "link"
    link.symlink_to(out)
    for place in (out / "contract.txt", link):
        assert exit_code_of(partial(build, tmp_path, place, RELEASE_KEY)) == EXIT_USAGE
        assert f"{place} is not a folder" in capsys.readouterr().err


@pytest.mark.parametrize("files", [(), (SUMS, "wheel.lock")])
def test_a_failed_build_leaves_the_folder(tmp_path: Path, files: tuple[str, ...]) -> None:
    """An empty folder and a release are accepted; here no commit is checked out."""
    out = tmp_path / "dist"
    out.mkdir()
    for name in files:
        (out / name).write_text("")
    with pytest.raises(CannotBuild, match="a clone is needed"):
        build(tmp_path, out, RELEASE_KEY)
    assert sorted(one.name for one in out.iterdir()) == sorted(files)
