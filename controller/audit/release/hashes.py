"""Hashes of the installed software: its source, all of its files, and those of its dependencies.

A source hash is SHA-256 over all files in the order of their names: length and bytes of the
name, length and bytes of the content; lengths have 8 bytes, little-endian.

A file hash covers files as `sha256sum` lists them: SHA-256 over a line for each file, in the order
of the paths: hex of the file's SHA-256, two spaces, the path, a newline. Paths are relative to the
folder into which packages are installed. Left out is what an installer writes or Python caches:
RECORD, INSTALLER and the like, `__pycache__`, and scripts outside of that folder.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import file_digest, sha256
from importlib.machinery import PathFinder, SourceFileLoader
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

SOFTWARE: Final = ("controller", "drivers", "firmware_protocol")
PROCEDURE: Final = ("controller.procedure", "controller.rules", "controller.errors")
"""Everything that makes decisions. These packages import only each other."""
PACKAGES: Final = ("configs", "controller", "drivers", "firmware_protocol", "hil")
"""All packages of the distribution."""
DISTRIBUTION: Final = "holecard"
STARTUP: Final = "(started by Python)"
"""The name under which files are listed that Python runs at each start."""

_NO_FILE: Final = "0" * 64
"""The hash of what is neither a file nor a folder."""

CodeForm: TypeAlias = Literal["source", "compiled"]

_SOURCE: Final = (".css", ".html", ".js", ".py", ".svg", ".toml")
"""Files that are executed or read at run time; documentation and C sources are not."""
INSTALLER: Final = frozenset(
    {
        "INSTALLER",
        "RECORD",
        "RECORD.jws",
        "RECORD.p7s",
        "REQUESTED",
        "direct_url.json",
        "uv_cache.json",
    }
)
"""Files in a .dist-info folder that the installer writes."""
METADATA: Final = ".dist-info"
_CACHE: Final = "__pycache__"
_REQUIRED: Final = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_ESCAPED: Final = re.compile(r"[\\\n\r]")
_STARTUP: Final = re.compile(r".*\.pth|(sitecustomize|usercustomize)(\..*)?")


class InstalledFile(NamedTuple):
    path: str
    """Relative to the folder of the packages."""
    sha256: str

    def line(self) -> str:
        """As `sha256sum` writes it, which escapes the characters that end a line."""
        if not _ESCAPED.search(self.path):
            return f"{self.sha256}  {self.path}\n"
        path = self.path.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
        return f"\\{self.sha256}  {path}\n"


class InstalledPackage(NamedTuple):
    """A distribution, with the files that are really there."""

    name: str
    version: str
    files: tuple[InstalledFile, ...]


class InstalledSoftware(NamedTuple):
    """The software and everything that it needs."""

    own: InstalledPackage
    dependencies: tuple[InstalledPackage, ...]
    """In the order of their names; also the files that Python runs at each start."""


class ReleaseHashes(Struct, frozen=True):
    """What is installed, as one hash of our own files and one of all dependencies."""

    software: str
    dependencies: str


@cache
def release_hashes() -> ReleaseHashes:
    """The file hashes of what is installed, as first read by this process."""
    found = installed_software()
    return ReleaseHashes(
        files_hash(found.own.files),
        files_hash(one for package in found.dependencies for one in package.files),
    )


def code_form() -> CodeForm:
    """Whether all loaded modules of this software were loaded from source files. Python may have
    run bytecode cached beside them instead: that is not distinguished."""
    every = (one for name, one in sys.modules.items() if name.partition(".")[0] in PACKAGES)
    specs = (one.__spec__ for one in every)
    loaders = (spec.loader for spec in specs if spec is not None and spec.has_location)
    return "source" if all(isinstance(one, SourceFileLoader) for one in loaders) else "compiled"


def files_hash(every: Iterable[InstalledFile]) -> str:
    lines = "".join(one.line() for one in sorted(every))
    return sha256(lines.encode(errors="surrogateescape")).hexdigest()


# --- what is installed ------------------------------------------------------------------------


def installed_software(site: Path | None = None) -> InstalledSoftware:
    """Read and hash all files of the software and of its dependencies: those of this process, or
    those in another folder of packages."""
    own = _distribution(DISTRIBUTION, site)
    place = None if own is None else folder_of(own)
    files_there = {one for name in PACKAGES for one in _package_files(name, site)}
    if own is not None and place is not None:
        files_there |= _metadata(own, place)
    needed = sorted(_needed(own, site), key=lambda one: canonical_name(one.name))
    packages = [_package(one) for one in needed]
    if place is not None:
        startup = (one for one in place.iterdir() if _STARTUP.fullmatch(one.name))
        found = {file for one in startup for file in folder_files(one, one.name)}
        packages.append(InstalledPackage(STARTUP, "", tuple(sorted(found))))
    version = "" if own is None else own.version
    return InstalledSoftware(
        InstalledPackage(DISTRIBUTION, version, tuple(sorted(files_there))), tuple(packages)
    )


def _distribution(name: str, site: Path | None) -> Distribution | None:
    if site is not None:
        return next(iter(Distribution.discover(name=name, path=[str(site)])), None)
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def folder_of(one: Distribution) -> Path:
    """The folder into which a distribution is installed."""
    return Path(os.path.abspath(str(one.locate_file(""))))


def canonical_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def required_name(requirement: str) -> str:
    """The canonical name of a required distribution; empty if only an extra requires it."""
    wanted = _REQUIRED.match(requirement)
    return "" if wanted is None or "extra ==" in requirement else canonical_name(wanted[1])


def _needed(own: Distribution | None, site: Path | None) -> Iterator[Distribution]:
    """All installed distributions that this one requires, directly or not, without extras. A
    requirement for other platforms is not installed."""
    seen: set[str] = set()
    waiting = [own] if own is not None else []
    while waiting:
        for requirement in waiting.pop().requires or ():
            name = required_name(requirement)
            found = _distribution(name, site) if name and name not in seen else None
            seen.add(name)
            if found is not None:
                waiting.append(found)
                yield found


def _package_files(name: str, site: Path | None) -> Iterator[InstalledFile]:
    spec = find_spec(name) if site is None else PathFinder.find_spec(name, [str(site)])
    for folder in (spec and spec.submodule_search_locations) or ():
        yield from folder_files(Path(folder), name)


def _package(one: Distribution) -> InstalledPackage:
    """A dependency: all files in the folders that its RECORD names, and its single files."""
    place = folder_of(one)
    tops = {file.parts[0] for file in one.files or () if file.parts[0] not in ("..", "/", _CACHE)}
    code = (top for top in tops if not top.endswith(METADATA))
    found = {file for top in code for file in folder_files(place / top, top)}
    return InstalledPackage(one.name, one.version, tuple(sorted(found | _metadata(one, place))))


def _metadata(one: Distribution, place: Path) -> set[InstalledFile]:
    tops = {file.parts[0] for file in one.files or () if file.parts[0].endswith(METADATA)}
    every = (file for top in tops for file in folder_files(place / top, top))
    return {file for file in every if file.path.partition("/")[2] not in INSTALLER}


def folder_files(place: Path, path: str) -> Iterator[InstalledFile]:
    """All files below. No installer makes links to folders, so none is followed."""
    try:
        mode = place.stat().st_mode
    except OSError:
        if not os.path.lexists(place):
            return
        if not place.is_symlink():
            raise
        mode = 0
    if stat.S_ISREG(mode):
        with place.open("rb") as file:
            yield InstalledFile(path, file_digest(file, "sha256").hexdigest())
    elif not stat.S_ISDIR(mode) or place.is_symlink():
        yield InstalledFile(path, _NO_FILE)
    else:
        for name in os.listdir(place):
            if name != _CACHE:
                yield from folder_files(place / name, f"{path}/{name}")


# --- source -----------------------------------------------------------------------------------


@cache
def source_hash(*modules: str) -> str:
    """Hash the installed source of these packages and modules, as first read by this process."""
    found = sorted(one for module in modules for one in _sources(module))
    whole = sha256()
    for name, content in found:
        for part in (name.encode(), content):
            whole.update(len(part).to_bytes(8, "little"))
            whole.update(part)
    return whole.hexdigest()


def _sources(name: str) -> Iterator[tuple[str, bytes]]:
    parent, _, module = name.rpartition(".")
    if parent and (file := files(parent) / f"{module}.py").is_file():
        yield f"{name}.py", file.read_bytes()
    else:
        yield from _folder_sources(files(name), name)


def _folder_sources(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        name = f"{path}/{entry.name}"
        if entry.is_dir():
            yield from _folder_sources(entry, name)
        elif entry.name.endswith(_SOURCE):
            yield name, entry.read_bytes()
