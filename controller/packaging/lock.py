"""requirements.lock: the exact version of every dependency, with the hashes of all its archives.

    python -m controller.packaging.lock           writes it, with the extra `release` and a network
    python -m controller.packaging.lock --check   compares it with pyproject.toml, constraints.txt

It is for every platform: a requirement of some of them has a marker. constraints.txt has the same
versions, without hashes and with what development needs.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from controller.audit.release import canonical_name, installed_software
from controller.errors import EXIT_NO

LOCK: Final = "requirements.lock"
CONSTRAINTS: Final = "constraints.txt"
_HEAD: Final = """\
# The dependencies of a table, with the hashes of all their archives: `make lock` writes this file.
# INSTALL.md installs it with: pip install --require-hashes -r requirements.lock
"""
_COMPILE: Final = (
    *("-m", "uv", "pip", "compile", "pyproject.toml", "--quiet", "--universal"),
    *("--python-version", "3.11", "--generate-hashes", "--no-header", "--no-annotate"),
    *("-c", CONSTRAINTS),
)
_PIN: Final = re.compile(r"([A-Za-z0-9._-]+)==([^\s;]+)")
_BOUND: Final = re.compile(r"([A-Za-z0-9._-]+)>=([0-9.]+)")
_HASH: Final = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")


class LockedPackage(NamedTuple):
    """A line of the lock."""

    version: str
    marker: str
    """The platforms that need it; empty for all."""
    hashes: int


def main(arguments: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else list(arguments)
    root = Path.cwd()
    if given == ["--check"]:
        problems = list(lock_problems(root))
        for one in problems:
            print(f"{LOCK}: {one}", file=sys.stderr)
        return EXIT_NO if problems else 0
    found = subprocess.run([sys.executable, *_COMPILE], stdout=subprocess.PIPE, check=True)
    (root / LOCK).write_text(_HEAD + found.stdout.decode(), encoding="utf-8")
    return main(["--check"])


def lock_problems(root: Path) -> Iterator[str]:
    """How the lock differs from pyproject.toml, from constraints.txt and from what is needed here;
    nothing is asked of a network."""
    text = (root / LOCK).read_text(encoding="utf-8")
    try:
        locked = parse_lock(text)
    except ValueError as problem:
        yield str(problem)
        return
    yield from _not_pinned(locked, (root / CONSTRAINTS).read_text(encoding="utf-8"))
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for requirement in project["dependencies"]:
        yield from _not_met(locked, requirement)
    needed = {canonical_name(one.name) for one in installed_software().dependencies if one.version}
    yield from (f"{name} is needed and missing; run: make lock" for name in needed - locked.keys())
    for name in sorted(locked.keys() - needed):
        if not locked[name].marker:
            yield f"{name} is not needed; run: make lock"


def _not_pinned(locked: Mapping[str, LockedPackage], constraints: str) -> Iterator[str]:
    pinned = {canonical_name(name): version for name, version in _PIN.findall(constraints)}
    for name, package in locked.items():
        if pinned.get(name, package.version) != package.version:
            what = f"{name} {package.version} is locked, and {CONSTRAINTS} has {pinned[name]}"
            yield f"{what}; run: make lock"


def _not_met(locked: Mapping[str, LockedPackage], requirement: str) -> Iterator[str]:
    bound = _BOUND.fullmatch(requirement)
    if bound is None:
        yield f"pyproject.toml: {requirement!r} is no lower bound"
        return
    package = locked.get(canonical_name(bound[1]))
    if package is None:
        yield f"{bound[1]} is required by pyproject.toml and missing; run: make lock"
    elif _numbers(package.version) < _numbers(bound[2]):
        yield f"{bound[1]} {package.version} is locked, and pyproject.toml requires {requirement}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def parse_lock(text: str) -> dict[str, LockedPackage]:
    """The packages by their names. Raises ValueError for another kind of line."""
    found: dict[str, LockedPackage] = {}
    name = ""
    for number, line in enumerate(text.splitlines(), 1):
        pin = _PIN.match(line)
        if pin is not None:
            name = canonical_name(pin[1])
            marker = line.partition(";")[2].strip(" \\")
            found[name] = LockedPackage(pin[2], marker, 0)
        elif name and _HASH.fullmatch(line):
            found[name] = found[name]._replace(hashes=found[name].hashes + 1)
        elif not line.startswith("#"):
            raise ValueError(f"line {number} is no requirement and no hash")
    bare = [name for name, package in found.items() if not package.hashes]
    if bare or not found:
        raise ValueError(f"no hash of {', '.join(bare) or 'anything'}")
    return found


if __name__ == "__main__":
    sys.exit(main())
