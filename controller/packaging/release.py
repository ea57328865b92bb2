"""Builds a release of the commit that is checked out into dist/.

    python -m controller.packaging.release --key release.key --name house.example/release

  holecard-VERSION-py3-none-any.whl   built twice, with the same bytes
  requirements.lock                   the dependencies, with hashes
  wheel.lock                          the wheel, with its hash
  holecard-VERSION.cdx.json           the SBOM
  holecard-VERSION.release            hashes of all installed files, signed
  release.pub, release.pem            the key that verifies it: as a verifier key, and for openssl
  SHA256SUMS                          of the files above

The wheel is built from the commit alone, with the setuptools of the extra `release`. The list is
made from an installation of exactly these files, as INSTALL.md does it.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any, Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from controller.audit.format.notes import NoteProblem, SigningKey, check_name
from controller.audit.keys import BadKeyText, read_bytes, read_ed25519
from controller.audit.release import (
    ReleaseArchive,
    ReleaseList,
    canonical_name,
    release_text,
    required_name,
)
from controller.commands import exit_code_of
from controller.errors import EXIT_NO, CommandError, UsageProblem
from controller.packaging.installed import InstalledRelease
from controller.packaging.lock import LOCK
from controller.packaging.sbom import Component, sbom
from drivers.keys import KeyProblem

WHEEL_LOCK: Final = "wheel.lock"
SUMS: Final = "SHA256SUMS"
_QUIET: Final = ("--quiet", "--disable-pip-version-check")


class CannotBuild(CommandError):
    """The release cannot be built from this commit."""

    exit_code = EXIT_NO


def main() -> int:
    parser = argparse.ArgumentParser(prog="make release", description="Builds a signed release.")
    parser.add_argument("--key", required=True, help="a private Ed25519 key, PKCS8 in PEM")
    parser.add_argument("--name", required=True, help="its name, as house.example/release")
    parser.add_argument("--out", default="dist", help="a new folder, or a release to be replaced")
    args = parser.parse_args()
    return exit_code_of(lambda: build(Path.cwd(), Path(args.out), signing_key(args.key, args.name)))


def signing_key(file: str, name: str) -> SigningKey:
    """The house's key. Raises UsageProblem; nothing of the key is quoted."""
    try:
        check_name(name)
        return SigningKey(name, _private(Path(file)))
    except NoteProblem as problem:
        raise UsageProblem("--name", problem.what) from None
    except BadKeyText as bad:
        raise UsageProblem(f"--key: {file}", bad.what, bad.allowed) from None
    except KeyProblem as problem:
        raise UsageProblem(f"--key: {problem.where}", problem.what, problem.allowed) from None


def _private(file: Path) -> Ed25519PrivateKey:
    return read_ed25519(read_bytes(file))


def build(root: Path, out: Path, key: SigningKey) -> int:
    """Build everything. Raises CannotBuild or UsageProblem, and leaves `out` as it was then."""
    _check_out(out)
    if _git(root, "status", "--porcelain"):
        raise CannotBuild("the working tree has changes: a release is built from a commit")
    commit = _git(root, "rev-parse", "HEAD")
    seconds = int(_git(root, "log", "-1", "--format=%ct"))
    with tempfile.TemporaryDirectory(prefix="holecard-release-") as folder:
        made = Path(folder, "dist")
        made.mkdir()
        wheel = _wheel(root, Path(folder), made, seconds)
        shutil.copy(root / LOCK, made)
        (made / WHEEL_LOCK).write_text(f"./{wheel.name} --hash=sha256:{_sha256(wheel)}\n")
        reports, installed = _installed(Path(folder), made)
        version = installed.packages[0].version
        expressions = _license_expressions(Path(folder) / "venv")
        every = _components(reports, expressions)
        components = {canonical_name(one.name): one for one in every}
        own = components.pop("holecard")
        document = made / f"holecard-{version}.cdx.json"
        document.write_text(sbom(own, components.values(), commit, seconds), encoding="utf-8")
        archives = tuple(ReleaseArchive(one.name, _sha256(one)) for one in sorted(made.iterdir()))
        release = _release(installed, commit, archives)
        listing = made / f"holecard-{version}.release"
        listing.write_text(release_text(release, key), encoding="utf-8")
        _write_public(made, key)
        sums = "".join(f"{_sha256(one)}  {one.name}\n" for one in sorted(made.iterdir()))
        (made / SUMS).write_text(sums)
        _check_out(out)
        if out.exists():
            shutil.rmtree(out)
        shutil.copytree(made, out)
    files = sum(len(one.files) for one in release.packages)
    print(f"{out}: holecard {version}, commit {commit[:12]}, {files} files in the list")
    print(f"the key that verifies it: {key.verifier}")
    return 0


def _check_out(out: Path) -> None:
    """Raises UsageProblem if the folder to be replaced contains anything but a release."""
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise UsageProblem("--out", f"{out} is not a folder", "a new or empty folder, or a release")
    if out.exists() and any(out.iterdir()) and not (out / SUMS).is_file():
        what = f"{out} has files but no {SUMS}: it is not a release, and is not deleted"
        raise UsageProblem("--out", what, "a new or empty folder, or a release")


# --- the wheel --------------------------------------------------------------------------------


def _wheel(root: Path, folder: Path, made: Path, seconds: int) -> Path:
    """Build the wheel twice, from two copies of the commit. Raises CannotBuild."""
    first, second = (_built(root, folder / name, seconds) for name in ("first", "second"))
    if first.read_bytes() != second.read_bytes():
        raise CannotBuild("two builds of this commit give different wheels")
    return Path(shutil.copy(first, made))


def _built(root: Path, place: Path, seconds: int) -> Path:
    archive = subprocess.run(
        ["git", "-c", "tar.umask=0022", "archive", "--format=tar", "HEAD"],
        cwd=root,
        stdout=subprocess.PIPE,
        check=True,
    )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(place / "source", filter="data")
    _pip("wheel", "--no-deps", "--no-build-isolation", "-w", place, place / "source", at=seconds)
    (wheel,) = place.glob("holecard-*.whl")
    return wheel


# --- an installation of it --------------------------------------------------------------------


def _installed(folder: Path, made: Path) -> tuple[list[Any], InstalledRelease]:
    """Install what was built, as INSTALL.md does it. Returns pip's reports, and what is there."""
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    reports = []
    for number, lock in enumerate((LOCK, WHEEL_LOCK)):
        report = folder / f"report{number}.json"
        _pip(
            *("--python", python, "install", "--no-compile", "--require-hashes", "--no-deps"),
            *("--report", report, "-r", lock),
            cwd=made,
        )
        reports += json.loads(report.read_bytes())["install"]
    found = subprocess.run(
        [python, "-I", "-m", "controller.packaging.installed"], stdout=subprocess.PIPE, check=True
    )
    return reports, msgspec.json.decode(found.stdout, type=InstalledRelease)


def _license_expressions(place: Path) -> dict[str, object]:
    """The licences of all packages that state an expression, which pip's report leaves out."""
    (site,) = place.glob("lib/python*/site-packages")
    return {
        canonical_name(one.name): one.metadata.json.get("license_expression")
        for one in Distribution.discover(path=[str(site)])
    }


def _components(reports: Iterable[Any], expressions: Mapping[str, object]) -> list[Component]:
    return [
        Component(
            one["metadata"]["name"],
            one["metadata"]["version"],
            one["download_info"]["archive_info"]["hashes"]["sha256"],
            one["metadata"]
            | {"license_expression": expressions.get(canonical_name(one["metadata"]["name"]))},
            tuple(filter(None, map(required_name, one["metadata"].get("requires_dist", ())))),
        )
        for one in reports
    ]


def _release(
    installed: InstalledRelease, commit: str, archives: tuple[ReleaseArchive, ...]
) -> ReleaseList:
    if installed.started:
        raise CannotBuild(f"the installation runs {', '.join(installed.started)} at each start")
    return ReleaseList(
        installed.packages[0].version,
        commit,
        installed.platform,
        installed.sw,
        installed.code,
        installed.hashes,
        archives,
        installed.packages,
    )


def _write_public(made: Path, key: SigningKey) -> None:
    """Write the public key: `openssl` needs the second form."""
    (made / "release.pub").write_text(f"{key.verifier}\n", encoding="utf-8")
    pem = key.public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (made / "release.pem").write_bytes(pem)


# --- programs ---------------------------------------------------------------------------------


def _pip(*words: str | Path, at: int | None = None, cwd: Path | None = None) -> None:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    if at is not None:
        environment["SOURCE_DATE_EPOCH"] = str(at)
    _run([sys.executable, "-m", "pip", *_QUIET, *map(str, words)], cwd, environment)


def _run(command: Sequence[str], cwd: Path | None, environment: dict[str, str]) -> None:
    ended = subprocess.run(command, cwd=cwd, env=environment, umask=0o022, check=False)
    if ended.returncode:
        raise CannotBuild(f"{' '.join(command[1:5])} ended with {ended.returncode}")


def _git(root: Path, *words: str) -> str:
    ended = subprocess.run(["git", *words], cwd=root, stdout=subprocess.PIPE, check=False)
    if ended.returncode:
        raise CannotBuild(f"git {words[0]} ended with {ended.returncode}: a clone is needed")
    return ended.stdout.decode().strip()


def _sha256(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
