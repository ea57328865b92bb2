"""`holecard audit verify --release`: the software that runs, and that ran at each boot."""

import shutil
from importlib.metadata import version
from pathlib import Path

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from controller.audit.release import (
    Installation,
    RecordedSoftware,
    ReleaseList,
    boot_differences,
    release_text,
)
from controller.audit.replay import identity
from tests.support.audit.record.scripted import read_rounds
from tests.support.audit.tools.audit_command import Ran, Runs, refused, rounds, says
from tests.support.audit.tools.by_page import started
from tests.support.audit.tools.installed import (
    OTHER_KEY,
    RELEASE_KEY,
    installation,
    release_of_site,
)

KEY = str(RELEASE_KEY.verifier)


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """What is installed, as far as the command knows."""
    (tmp_path / "installed").mkdir()
    found = installation(tmp_path / "installed")
    monkeypatch.setattr(Installation, "here", lambda: found)
    return found


@pytest.fixture
def release(there: Installation) -> ReleaseList:
    return release_of_site(there.site, version("holecard"))


@pytest.fixture
def runs(
    tmp_path: Path,
    release: ReleaseList,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Runs:
    """A record that this release has made."""
    monkeypatch.setattr(identity, "release_hashes", lambda: release.hashes, raising=False)
    return Runs(tmp_path, capsys, *rounds(1))


def listed(folder: Path, *releases: ReleaseList) -> list[str]:
    """The options that name these lists."""
    options = ["--release-key", KEY]
    for number, one in enumerate(releases):
        file = folder / f"{number}.release"
        file.write_text(release_text(one, RELEASE_KEY))
        options += ["--release", str(file)]
    return options


def verified(runs: Runs, *releases: ReleaseList) -> Ran:
    return runs("verify", *listed(runs.folder, *releases))


def test_the_released_software_is_right(runs: Runs, release: ReleaseList) -> None:
    ran = verified(runs, release)
    says(
        ran,
        0,
        "release: 1 boot of 1 ran software of the given releases",
        "release: the software that runs here is that of a given release, with all it needs",
    )
    assert ran.out.endswith("RIGHT\n")
    found = runs("verify", *listed(runs.folder, release), "--json").json
    assert (found["exit"], found["release"]["wrong"]) == (0, [])
    assert "release" not in runs("verify", "--json").json


def test_a_boot_of_other_software_is_found(runs: Runs, release: ReleaseList) -> None:
    later = replace(release, version="9.9", sw="5a" * 32)
    ran = verified(runs, later)
    says(ran, 1, "release: 0 boots of 1 ran", "ran holecard ", "in no list: software, sw differs")
    assert "wrong: segment 00000001, offset " in ran.out
    assert ran.out.endswith("WRONG\n")
    says(verified(runs, later, release), 0, "release: 1 boot of 1 ran")
    same_version = replace(release, code="5a" * 32)
    says(verified(runs, same_version), 1, "which is in no list: code differs")


def test_each_boot_is_compared(runs: Runs, release: ReleaseList) -> None:
    read_rounds(runs.folder, *rounds(1))
    runs.make(*rounds(1))
    says(verified(runs, release), 0, "release: 2 boots of 2 ran software")


def test_a_boot_whose_opened_is_no_utf8_is_found(runs: Runs, release: ReleaseList) -> None:
    pen = started()
    shutil.rmtree(runs.folder / "record")
    pen.write("opened", pen.opened or {}, lambda data: data.replace(b"card 0.1", b"card \xff"))
    pen.save(runs.folder / "record")
    ran = verified(runs, release)
    says(ran, 1, "the boots of segment 1: it cannot be read")
    assert ran.out.endswith("WRONG\n")


def test_a_flipped_byte_in_the_installation_is_found(
    runs: Runs, release: ReleaseList, there: Installation
) -> None:
    file = there.site / "deeper.py"
    file.write_bytes(file.read_bytes().replace(b"2", b"3"))
    ran = verified(runs, release)
    words = "wrong: the software that runs here: deeper.py: is not the file of the release"
    says(ran, 1, words, "1 boot of 1 ran software")
    assert ran.out.endswith("WRONG\n")


def test_many_differences_are_counted(
    runs: Runs, release: ReleaseList, there: Installation
) -> None:
    for number in range(30):
        (there.site / f"extra{number}.py").touch()
    ran = verified(runs, release)
    says(ran, 1, "wrong: 10 more")
    assert ran.out.count("is not part of the release") == 20
    found = runs("verify", *listed(runs.folder, release), "--json").json
    assert len(found["release"]["wrong"]) == 30


def test_a_wrong_signature_is_a_finding(runs: Runs, release: ReleaseList) -> None:
    file = runs.folder / "other.release"
    text = release_text(release, OTHER_KEY)
    for content in (text, text.replace("sw ", "sv "), "", "{}"):
        file.write_text(content)
        ran = runs("verify", "--release", str(file), "--release-key", KEY)
        says(ran, 1, f"wrong: --release {file}: ")
        assert ran.out.endswith("WRONG\n")


def test_a_damaged_segment_leaves_its_boots_unknown(runs: Runs, release: ReleaseList) -> None:
    (segment,) = (runs.record / "segments").glob("0*.seg")
    segment.write_bytes(bytes(segment.stat().st_size))
    says(verified(runs, release), 1, "not checked: the boots of segment 1: it cannot be read")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--release", "x"], "arguments: --release and --release-key go together"),
        (["--release-key", KEY], "arguments: --release and --release-key go together"),
        (["--release", "no-such-file", "--release-key", KEY], "--release: no-such-file: no such"),
        (["--release", ".", "--release-key", KEY], "--release: .: it is no file"),
        (["--release", "x", "--release-key", "no-such"], "--release-key: no-such: no such file"),
        (
            ["--release", "x", "--release-key", str(RELEASE_KEY.cosigner)],
            "--release-key: is a witness's key",
        ),
    ],
)
def test_wrong_arguments(runs: Runs, options: list[str], words: str) -> None:
    refused(runs("verify", *options), words)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("software", "holecard 9"),
        ("sw", "5a" * 32),
        ("code", "5a" * 32),
        ("release", "5a" * 32),
        ("dependencies", "5a" * 32),
        ("runs", "compiled"),
    ],
)
def test_each_recorded_hash_is_compared(release: ReleaseList, field: str, value: str) -> None:
    ran = RecordedSoftware(
        f"holecard {release.version}",
        release.sw,
        release.code,
        release.hashes.software,
        release.hashes.dependencies,
        "source",
    )
    assert boot_differences(ran, release) == []
    assert boot_differences(replace(ran, **{field: value}), release) == [field]
    earlier = replace(ran, release=UNSET, dependencies=UNSET, runs=UNSET)
    assert boot_differences(earlier, release) == []
