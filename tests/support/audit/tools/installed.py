"""Folders of packages as pip installs them, and the signed list of what is in them."""

import compileall
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controller.audit.format.notes import SigningKey
from controller.audit.release import (
    PROCEDURE,
    SOFTWARE,
    Installation,
    ReleaseArchive,
    ReleaseHashes,
    ReleaseList,
    files_hash,
    installed_software,
    source_hash,
    this_platform,
)

RELEASE_KEY: Final = SigningKey(
    "house.example/release", Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
)
OTHER_KEY: Final = SigningKey(
    "house.example/release", Ed25519PrivateKey.from_private_bytes(bytes(32))
)
SCRIPT: Final = """\
#!{python}
import sys
from controller.cli import main
if __name__ == '__main__':
    sys.argv[0] = sys.argv[0].removesuffix('.exe')
    sys.exit(main())
"""


def installed(site: Path, name: str, files: dict[str, str], requires: str = "") -> None:
    """Install a distribution as pip does."""
    info = f"{name.replace('-', '_')}-1.0.dist-info"
    needs = f"Requires-Dist: {requires}\n" if requires else ""
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}"
    every = {**files, f"{info}/METADATA": metadata, f"{info}/INSTALLER": "pip\n"}
    for path, content in every.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(content)
    record = "".join(f"{path},,\n" for path in (*every, f"{info}/RECORD", "../../bin/tool"))
    (site / info / "RECORD").write_text(record)


def install_all(site: Path) -> None:
    """Install the software, what it needs, and what that needs."""
    needs = (
        'Needed_One>=1; python_version > "3"\nRequires-Dist: absent>=2\n'
        'Requires-Dist: unneeded; extra == "test"'
    )
    own = {"controller/__init__.py": "", "controller/cli.py": "x = 1\n", "hil/__init__.py": ""}
    points = {
        "holecard-1.0.dist-info/entry_points.txt": "[console_scripts]\n"
        "holecard = controller.cli:main\n"
    }
    installed(site, "holecard", own | points, needs)
    installed(site, "needed-one", {"needed/__init__.py": "", "_needed.so": "code"}, "deeper")
    installed(site, "deeper", {"deeper.py": "y = 2\n"})


def installation(folder: Path) -> Installation:
    """A whole installation, with its commands and its cached bytecode."""
    site, scripts = folder / "site", folder / "bin"
    install_all(site)
    scripts.mkdir()
    (scripts / "holecard").write_text(SCRIPT.format(python=scripts / "python3"))
    compileall.compile_dir(site, quiet=2)
    roots = {name: str(site / name) for name in ("controller", "hil")}
    return Installation(site, scripts, this_platform(), (), roots)


def release_of_site(site: Path | None = None, version: str = "1.0") -> ReleaseList:
    """The list of what is installed there, or of what runs."""
    found = installed_software(site)
    needed = tuple(one for one in found.dependencies if one.version)
    return ReleaseList(
        version,
        "c0" * 20,
        this_platform(),
        source_hash(*SOFTWARE),
        source_hash(*PROCEDURE),
        ReleaseHashes(
            files_hash(found.own.files), files_hash(file for one in needed for file in one.files)
        ),
        (ReleaseArchive(f"holecard-{version}-py3-none-any.whl", "ab" * 32),),
        (found.own, *needed),
    )
