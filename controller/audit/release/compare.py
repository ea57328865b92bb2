"""Comparison of an installation with the signed list of a release.

Compared is everything that Python runs of ours: all files of the software and of its dependencies,
what else lies in the folder of packages, cached bytecode, the commands, and the places from which
modules are loaded. Python itself and the operating system are not part of a release.
"""

from __future__ import annotations

import importlib.util
import marshal
import os
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from importlib.metadata import Distribution
from pathlib import Path
from types import CodeType
from typing import Final, NamedTuple

from controller.audit.release.hashes import (
    INSTALLER,
    METADATA,
    PACKAGES,
    canonical_name,
    folder_files,
)
from controller.audit.release.listing import ReleaseList

_CACHE: Final = "__pycache__"
_PYC_HEAD: Final = 16
"""Bytes before the code in a .pyc."""
_OPTIMIZED: Final = re.compile(r"\.opt-([12])\.pyc")
_IMPORTED: Final = (".py", ".pyc", ".so")
_INTERPRETERS: Final = frozenset(
    {"python", "python3", f"python{sys.version_info.major}.{sys.version_info.minor}"}
)
_OF_VENV: Final = re.compile(
    r"(pip|pip3|pip3\.\d+|\U0001d70bthon|(de)?activate(\.(bat|csh|fish|nu))?|Activate\.ps1)"
)
"""What else a virtual environment has beside the interpreter; Python 3.14 has a third name."""
_SHEBANG: Final = re.compile(
    r"#!/bin/sh\n'''exec' \"?(?P<long>[^\n\"]+?)\"? \"\$0\" \"\$@\"\n' '''\n|#!(?P<plain>[^\n]+)\n"
)
"""The first line of a command, or the first three if the path of Python is too long for one."""
_SCRIPT: Final = r"""(?:# -\*- coding: utf-8 -\*-
)?(?:import re
)?import sys
(?:{0}
)?if __name__ == ['"]__main__['"]:
(?:    {0}
)?(?:    sys\.argv\[0\] = re\.sub\(r'\(-script\\\.pyw\|\\\.exe\)\?\$', '', sys\.argv\[0\]\)
|    sys\.argv\[0\] = sys\.argv\[0\]\.removesuffix\('\.exe'\)
|    if sys\.argv\[0\]\.endswith\("-script\.pyw"\):
        sys\.argv\[0\] = sys\.argv\[0\]\[:-11\]
    elif sys\.argv\[0\]\.endswith\("\.exe"\):
        sys\.argv\[0\] = sys\.argv\[0\]\[:-4\]
)    sys\.exit\({1}\(\)\)\n?"""
"""A command as installers write it, without its first line: nothing but the call."""


class Installation(NamedTuple):
    """The places from which a Python loads the software."""

    site: Path
    """The folder of packages."""
    scripts: Path
    platform: str
    search: tuple[str, ...]
    """Other places that modules are loaded from, in addition to Python's own."""
    roots: dict[str, str]
    """The folder of each of our packages."""

    @classmethod
    def here(cls) -> Installation:
        """That of this process."""
        site, scripts = sysconfig.get_path("purelib"), sysconfig.get_path("scripts")
        own = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
        own |= {f"{one}/lib-dynload" for one in own} | {os.path.abspath(scripts)}
        places = (os.path.abspath(one) for one in sys.path)
        version = f"{sys.version_info.major}{sys.version_info.minor}"
        own.add(f"{sys.base_prefix}/{sys.platlibdir}/python{version}.zip")  # the standard library
        search = (one for one in places if one not in own)
        return cls(
            Path(site), Path(scripts), this_platform(), tuple(dict.fromkeys(search)), _roots()
        )


class Difference(NamedTuple):
    """A place where an installation differs from a release."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def this_platform() -> str:
    """Names the Python and the machine for which compiled packages are installed."""
    return f"{sys.implementation.cache_tag}-{sysconfig.get_platform()}"


def differences(release: ReleaseList, there: Installation) -> tuple[Difference, ...]:
    """All differences between an installation and a release, the most important first."""
    return tuple(
        one
        for find in (_platform, _places, _packages, _unknown, _scripts, _bytecode)
        for one in find(release, there)
    )


def _roots() -> dict[str, str]:
    specs = {name: importlib.util.find_spec(name) for name in PACKAGES}
    return {
        name: os.path.abspath(next(iter(spec.submodule_search_locations or ()), ""))
        for name, spec in specs.items()
        if spec is not None
    }


# --- the places -------------------------------------------------------------------------------


def _platform(release: ReleaseList, there: Installation) -> Iterator[Difference]:
    if there.platform != release.platform:
        what = f"this is {there.platform}; the list is for {release.platform}"
        yield Difference("platform", what)


def _places(release: ReleaseList, there: Installation) -> Iterator[Difference]:
    """Our packages are loaded from the compared folder, and nothing comes from elsewhere."""
    tops = {file.path.partition("/")[0] for file in release.packages[0].files}
    for name in PACKAGES:
        place = there.roots.get(name)
        if name in tops and place != os.path.abspath(there.site / name):
            yield Difference(name, f"is loaded from {place}, not from {there.site}")
    for place in there.search:
        yield Difference(place, "modules are loaded from here too")


# --- files ------------------------------------------------------------------------------------


def _packages(release: ReleaseList, there: Installation) -> Iterator[Difference]:
    """Every file of the release is there, unchanged, and its folders contain no other."""
    listed = {file.path for package in release.packages for file in package.files}
    for package in release.packages:
        found = _installed(there.site, package.name)
        if found is None:
            yield Difference(package.name, f"is not installed; the release has {package.version}")
        elif found.version != package.version:
            what = f"{found.version} is installed; the release has {package.version}"
            yield Difference(package.name, what)
        files = {file.path: file.sha256 for file in package.files}
        tops = sorted({path.partition("/")[0] for path in files})
        present = {
            file.path: file.sha256 for top in tops for file in folder_files(there.site / top, top)
        }
        for path, digest in files.items():
            if path not in present:
                yield Difference(path, "is missing")
            elif present[path] != digest:
                yield Difference(path, "is not the file of the release")
        for path in sorted(present.keys() - listed):
            if not _of_installer(path):
                yield Difference(path, "is not part of the release")


def _of_installer(path: str) -> bool:
    folder, _, name = path.partition("/")
    return folder.endswith(METADATA) and name in INSTALLER


def _installed(site: Path, name: str) -> Distribution | None:
    return next(iter(Distribution.discover(name=name, path=[str(site)])), None)


def _unknown(release: ReleaseList, there: Installation) -> Iterator[Difference]:
    """The folder of packages contains nothing else: modules there can be imported, or replace
    others, and Python runs some files at each start."""
    tops = {
        file.path.partition("/")[0] for package in release.packages for file in package.files
    } | {_CACHE}
    others = [
        one
        for one in Distribution.discover(path=[str(there.site)])
        if canonical_name(one.name)
        not in {canonical_name(package.name) for package in release.packages}
    ]
    for one in sorted(others, key=lambda one: one.name):
        known = {file.parts[0] for file in one.files or ()}
        tops |= {top for top in known if not top.endswith(".pth")}
        what = f"{one.version} is installed, and not part of the release"
        yield Difference(one.name, what)
    for name in _names(there.site):
        if name not in tops:
            yield Difference(name, "is not part of the release")


def _names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder)) if folder.is_dir() else []


# --- commands ---------------------------------------------------------------------------------


def _scripts(release: ReleaseList, there: Installation) -> Iterator[Difference]:
    """The commands call the packages with this Python, and no other file is beside them: it could
    be imported or run instead."""
    known = set(_INTERPRETERS)
    for package in release.packages:
        found = _installed(there.site, package.name)
        for point in () if found is None else found.entry_points:
            if point.group == "console_scripts":
                known.add(point.name)
                what = _wrong_script(there.scripts / point.name, point.value)
                if what:
                    yield Difference(str(there.scripts / point.name), what)
    for name in _names(there.scripts):
        if name.endswith(_IMPORTED) or (there.scripts / name).is_dir():
            yield Difference(str(there.scripts / name), "is imported instead of a package")
        elif name not in known and not _OF_VENV.fullmatch(name):
            yield Difference(str(there.scripts / name), "is not part of the release")


def _wrong_script(file: Path, target: str) -> str:
    """Returns what is wrong with a command; empty if it is what installers write."""
    try:
        text = file.read_text()
    except FileNotFoundError:
        return "is missing"
    except UnicodeDecodeError:
        return "is not the command of the release"
    shebang = _SHEBANG.match(text)
    if shebang is None:
        return "is not the command of the release"
    python = shebang["long"] or shebang["plain"]
    if python not in {f"{file.parent}/{name}" for name in _INTERPRETERS}:
        return f"is run by {python}, not by the Python beside it"
    module, _, function = target.partition(":")
    imported = f"from {module} import {function.partition('.')[0]}"
    wanted = _SCRIPT.format(re.escape(imported), re.escape(function))
    if re.fullmatch(wanted, text[shebang.end() :]) is None:
        return "is not the command of the release"
    return ""


# --- bytecode ---------------------------------------------------------------------------------


def _bytecode(release: ReleaseList, there: Installation) -> Iterator[Difference]:
    """Cached bytecode, which Python runs instead of a file whose time and size it names, is that
    of the files."""
    sources = {
        file.path
        for package in release.packages
        for file in package.files
        if file.path.endswith(".py")
    }
    folders = {os.path.dirname(path) for path in sources}
    for folder in sorted(folders | {""}):
        cache = there.site / folder / _CACHE
        for name in _names(cache):
            what = _wrong_bytecode(cache / name, sources, there.site)
            if what:
                yield Difference(str((cache / name).relative_to(there.site)), what)


def _wrong_bytecode(file: Path, sources: set[str], site: Path) -> str:
    """Returns what is wrong with a cached file; empty if the listed source compiles to it."""
    tag = sys.implementation.cache_tag or ""
    module, _, rest = file.name.partition(".")
    source = file.parent.parent / f"{module}.py"
    if not rest.startswith(f"{tag}.") or not rest.endswith(".pyc"):
        return "is not part of the release, and no bytecode of this Python"
    if str(source.relative_to(site)) not in sources:
        return "is bytecode of a module that is not part of the release"
    optimized = _OPTIMIZED.search(file.name)
    try:
        found = marshal.loads(file.read_bytes()[_PYC_HEAD:])
        wanted = _compiled(source, int(optimized[1]) if optimized else 0)
    except FileNotFoundError:  # of the source: reported as missing
        return ""
    except (EOFError, TypeError, ValueError, SyntaxError):
        return f"cannot be read, or {source.name} cannot be compiled"
    return "" if found == wanted else f"is not the bytecode of {source.name}"


def _compiled(source: Path, optimize: int) -> CodeType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = source.read_bytes()
        code: CodeType = compile(data, str(source), "exec", dont_inherit=True, optimize=optimize)
    return code
