"""The signed list of a release."""

import subprocess
from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import replace

from controller.audit.format.notes import NoteProblem, format_note
from controller.audit.release import (
    InstalledFile,
    ReleaseList,
    files_hash,
    read_release,
    release_text,
)
from tests.support.audit.tools.installed import (
    OTHER_KEY,
    RELEASE_KEY,
    install_all,
    release_of_site,
)


@pytest.fixture
def release(tmp_path: Path) -> ReleaseList:
    install_all(tmp_path / "site")
    return release_of_site(tmp_path / "site")


def test_a_list_is_read_as_it_was_written(release: ReleaseList) -> None:
    own, *needed = release.packages
    odd = own._replace(files=(*own.files, InstalledFile("odd\\path\nof two lines", "ab" * 32)))
    hashes = replace(release.hashes, software=files_hash(odd.files))
    for one in (release, replace(release, hashes=hashes, packages=(odd, *needed))):
        text = release_text(one, RELEASE_KEY)
        assert read_release(text.encode(), RELEASE_KEY.verifier) == one


def test_a_stranger_checks_the_files_with_sha256sum(tmp_path: Path, release: ReleaseList) -> None:
    lines = release_text(release, RELEASE_KEY).splitlines(keepends=True)
    listing = "".join(line for line in lines if line[64:66] == "  ")
    assert len(listing.splitlines()) == sum(len(one.files) for one in release.packages)
    checked = subprocess.run(
        ["sha256sum", "--check", "--strict", "--quiet", "-"],
        input=listing,
        text=True,
        cwd=tmp_path / "site",
        check=False,
    )
    assert checked.returncode == 0
    own = "".join(file.line() for file in release.packages[0].files)
    assert sha256(own.encode()).hexdigest() == release.hashes.software


def test_another_key_is_no_signature(release: ReleaseList) -> None:
    data = release_text(release, OTHER_KEY).encode()
    with pytest.raises(NoteProblem, match="none of the known keys has signed"):
        read_release(data, RELEASE_KEY.verifier)


def test_every_changed_byte_is_found(release: ReleaseList) -> None:
    """Whatever is changed: the text, the signature, or a line of the list."""
    data = release_text(release, RELEASE_KEY).encode()
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1
        with pytest.raises(NoteProblem):
            read_release(bytes(changed), RELEASE_KEY.verifier)


@pytest.mark.parametrize("cut", [0, 1, 20, 400, -66, -1])
def test_a_truncated_list_is_found(release: ReleaseList, cut: int) -> None:
    with pytest.raises(NoteProblem):
        read_release(release_text(release, RELEASE_KEY).encode()[:cut], RELEASE_KEY.verifier)


@pytest.mark.parametrize(
    ("added", "words"),
    [
        (f"{'ab' * 32}  controller/added.py\n", "more lines than are signed"),
        ("no line\n", "more lines than are signed"),
        ("\n", "more lines than are signed"),
        ("\xff", "more lines than are signed"),
    ],
)
def test_an_added_line_is_found(release: ReleaseList, added: str, words: str) -> None:
    text = release_text(release, RELEASE_KEY) + added
    with pytest.raises(NoteProblem, match=words):
        read_release(text.encode(), RELEASE_KEY.verifier)


def test_another_signed_note_is_no_list(release: ReleaseList) -> None:
    text = "holecard boot key 1\n"
    note = format_note(text, RELEASE_KEY.sign(text))
    with pytest.raises(NoteProblem, match="no list of a release"):
        read_release(f"{note}\n".encode(), RELEASE_KEY.verifier)
