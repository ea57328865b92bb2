"""The signed list of a release: hashes of all files of the software and of its dependencies.

A signed note, an empty line, and a line for each file as `sha256sum` writes it:

    holecard release 1
    holecard VERSION
    commit COMMIT
    platform PLATFORM
    sw HEX
    code HEX
    software HEX
    dependencies HEX
    archive HEX NAME                     any number
    package HEX FILES NAME VERSION       the software first, then its dependencies

    — KEY NAME BASE64 OF (key id || signature)

`sw` and `code` are those of an `opened` record, `software` and `dependencies` its file hashes. The
hash of a package is that of its lines, which follow those of the package before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from msgspec import Struct

from controller.audit.format.notes import (
    NoteProblem,
    SigningKey,
    VerifierKey,
    format_note,
    parse_note,
    quoted,
    verify_note,
)
from controller.audit.release.hashes import (
    InstalledFile,
    InstalledPackage,
    ReleaseHashes,
    files_hash,
)

TITLE: Final = "holecard release 1"
MAX_BYTES: Final = 1 << 24
"""Maximum size of a list in bytes."""
_HEAD: Final = re.compile(
    r"holecard release 1\n"
    r"holecard (?P<version>\S+)\n"
    r"commit (?P<commit>[0-9a-f]{40,64})\n"
    r"platform (?P<platform>\S+)\n"
    r"sw (?P<sw>[0-9a-f]{64})\n"
    r"code (?P<code>[0-9a-f]{64})\n"
    r"software (?P<software>[0-9a-f]{64})\n"
    r"dependencies (?P<dependencies>[0-9a-f]{64})\n"
    r"(?P<archives>(?:archive [0-9a-f]{64} \S+\n)*)"
    r"(?P<packages>(?:package [0-9a-f]{64} [0-9]{1,6} \S+ \S+\n)+)"
)
_FILE: Final = re.compile(r"(\\?)([0-9a-f]{64})  (.+)")
_UNESCAPED: Final = {r"\\": "\\", r"\n": "\n", r"\r": "\r"}


class ReleaseArchive(Struct, frozen=True):
    """A file that is handed out with a release."""

    name: str
    sha256: str


class ReleaseList(Struct, frozen=True):
    """What a release consists of, as installed on one platform."""

    version: str
    commit: str
    platform: str
    sw: str
    code: str
    hashes: ReleaseHashes
    archives: tuple[ReleaseArchive, ...]
    packages: tuple[InstalledPackage, ...]
    """The software first."""

    def text(self) -> str:
        """The text that is signed."""
        head = (
            TITLE,
            f"holecard {self.version}",
            f"commit {self.commit}",
            f"platform {self.platform}",
            f"sw {self.sw}",
            f"code {self.code}",
            f"software {self.hashes.software}",
            f"dependencies {self.hashes.dependencies}",
        )
        archives = (f"archive {one.sha256} {one.name}" for one in self.archives)
        packages = (
            f"package {files_hash(one.files)} {len(one.files)} {one.name} {one.version}"
            for one in self.packages
        )
        return "".join(f"{line}\n" for line in (*head, *archives, *packages))


def release_text(release: ReleaseList, key: SigningKey) -> str:
    """The signed list as a file contains it. Raises NoteProblem."""
    text = release.text()
    note = format_note(text, key.sign(text))
    found = f"{note}\n{''.join(file.line() for one in release.packages for file in one.files)}"
    if read_release(found.encode(), key.verifier) != release:
        raise NoteProblem("a release that a list cannot hold")
    return found


def read_release(data: bytes, key: VerifierKey) -> ReleaseList:
    """Parse a list. Raises NoteProblem unless this key signed it and its lines are the signed
    ones."""
    if len(data) > MAX_BYTES:
        raise NoteProblem(f"a list of more than {MAX_BYTES} bytes")
    try:
        whole = data.decode()
    except UnicodeDecodeError:
        raise NoteProblem("a list that is not UTF-8") from None
    text, _, rest = whole.partition("\n\n")
    signatures, _, listing = rest.partition("\n\n")
    note = parse_note(f"{text}\n\n{signatures}\n")
    verify_note(note, (key,))
    head = _HEAD.fullmatch(note.text)
    if head is None:
        raise NoteProblem(f"no list of a release: {quoted(note.text)}")
    archives = (line.split(" ") for line in head["archives"].splitlines())
    release = ReleaseList(
        head["version"],
        head["commit"],
        head["platform"],
        head["sw"],
        head["code"],
        ReleaseHashes(head["software"], head["dependencies"]),
        tuple(ReleaseArchive(name, digest) for _, digest, name in archives),
        tuple(_packages(head["packages"], listing)),
    )
    needed = (file for one in release.packages[1:] for file in one.files)
    found = ReleaseHashes(files_hash(release.packages[0].files), files_hash(needed))
    if found != release.hashes:
        raise NoteProblem("a list whose hashes are not those of its lines")
    return release


def _packages(signed: str, listing: str) -> Iterator[InstalledPackage]:
    """The lines of the list, as the signed text divides and hashes them."""
    files = iter(listing.split("\n")[:-1])
    for line in signed.splitlines():
        _, digest, count, name, version = line.split(" ")
        found = tuple(_file(line) for line in islice(files, int(count)))
        if len(found) != int(count) or files_hash(found) != digest:
            raise NoteProblem(f"a list whose lines of {name} are not the signed ones")
        yield InstalledPackage(name, version, found)
    if next(files, None) is not None or not listing.endswith("\n"):
        raise NoteProblem("a list with more lines than are signed")


def _file(line: str) -> InstalledFile:
    found = _FILE.fullmatch(line)
    if found is None:
        raise NoteProblem(f"no line of a list: {quoted(line)}")
    escaped, digest, path = found.groups()
    if escaped:
        path = re.sub(r"\\[\\nr]", lambda one: _UNESCAPED[one[0]], path)
    return InstalledFile(path, digest)
