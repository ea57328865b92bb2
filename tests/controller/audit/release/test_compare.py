"""An installation is compared with the signed list of a release."""

import py_compile
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.audit.release import Installation, ReleaseList, differences
from tests.support.audit.tools.installed import (
    SCRIPT,
    install_all,
    installation,
    installed,
    release_of_site,
)

Change = Callable[[Installation], None]


@pytest.fixture
def there(tmp_path: Path) -> Installation:
    return installation(tmp_path)


@pytest.fixture
def release(there: Installation) -> ReleaseList:
    return release_of_site(there.site)


def found(release: ReleaseList, there: Installation) -> list[str]:
    return [str(one).replace(f"{there.scripts}", "BIN") for one in differences(release, there)]


def test_an_unchanged_installation_has_no_differences(
    release: ReleaseList, there: Installation
) -> None:
    assert found(release, there) == []


def _written(path: str, text: str = "x = 2\n") -> Change:
    def change(there: Installation) -> None:
        (there.site / path).parent.mkdir(exist_ok=True)
        (there.site / path).write_text(text)

    return change


def _stale(there: Installation) -> None:
    """Bytecode of other code, which Python runs: it names the time and the size of the file."""
    source = there.site / "controller/cli.py"
    (cached,) = (there.site / "controller/__pycache__").glob("cli.*.pyc")
    head = cached.read_bytes()[:16]
    other = there.site.parent / "other.py"
    other.write_text("x = 9\n")
    made = there.site.parent / "other.pyc"
    py_compile.compile(str(other), str(made))
    cached.write_bytes(head + made.read_bytes()[16:])
    assert source.read_text() == "x = 1\n"


def _removed(path: str) -> Change:
    return lambda there: (there.site / path).unlink()


def _script(text: str) -> Change:
    return lambda there: _put(there.scripts / "holecard", text.replace("BIN", str(there.scripts)))


def _beside(name: str) -> Change:
    return lambda there: _put(there.scripts / name, "#!/bin/sh\n")


def _put(file: Path, text: str) -> None:
    file.write_text(text)


_CALL = SCRIPT.partition("\n")[2]
_TAG = sys.implementation.cache_tag


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            _written("controller/cli.py", "x = 3\n"),
            "controller/cli.py: is not the file of the release",
        ),
        (_written("_needed.so", "code!"), "_needed.so: is not the file of the release"),
        (_written("deeper.py"), "deeper.py: is not the file of the release"),
        (_removed("needed/__init__.py"), "needed/__init__.py: is missing"),
        (_written("controller/added.so"), "controller/added.so: is not part of the release"),
        (_written("needed/deep/x.py"), "needed/deep/x.py: is not part of the release"),
        (_written("json.py"), "json.py: is not part of the release"),
        (_written("a.pth", "import os"), "a.pth: is not part of the release"),
        (_written("sitecustomize.py"), "sitecustomize.py: is not part of the release"),
        (_written("deeper-1.0.dist-info/RECORD", ""), ""),
        (_written("deeper-1.0.dist-info/direct_url.json", ""), ""),
        (
            _written("holecard-1.0.dist-info/entry_points.txt", "[holecard.commands]\nx = x:y\n"),
            "holecard-1.0.dist-info/entry_points.txt: is not the file of the release",
        ),
        (
            lambda there: installed(there.site, "pip", {"pip/__init__.py": ""}),
            "pip: 1.0 is installed",
        ),
        (_stale, f"controller/__pycache__/cli.{_TAG}.pyc: is not the bytecode of cli.py"),
        (
            _written(f"controller/__pycache__/cli.{_TAG}.pyc", "garbage of some length"),
            "cannot be read, or cli.py cannot be compiled",
        ),
        (
            _written(f"controller/__pycache__/new.{_TAG}.pyc"),
            "is bytecode of a module that is not part of the release",
        ),
        (_written("controller/__pycache__/cli.cpython-27.pyc"), "no bytecode of this Python"),
        (lambda there: (there.scripts / "holecard").unlink(), "BIN/holecard: is missing"),
        (_script(f"#!/usr/bin/python3\n{_CALL}"), "is run by /usr/bin/python3, not by the Python"),
        (
            _script(f"#!BIN/python3\nimport evil\n{_CALL}"),
            "BIN/holecard: is not the command of the release",
        ),
        (_script(_CALL), "BIN/holecard: is not the command of the release"),
        *(
            (
                _script(f"#!{python}\n{_CALL}"),
                f"is run by {python}, not by the Python beside it",
            )
            for python in (
                "BIN/wrapper",
                "BIN/python3 -X importtime",
                "BIN/python2",
                "BIN/../python3",
            )
        ),
        (
            lambda there: _put(there.scripts / "msgspec.py", ""),
            "BIN/msgspec.py: is imported instead",
        ),
        *(
            (_beside(name), f"BIN/{name}: is not part of the release")
            for name in ("wrapper", "python2", "python3x", "pip-wrapper", ".python3", "activated")
        ),
        *(
            (_beside(name), "")
            for name in ("python", "python3", f"python3.{sys.version_info.minor}", "pip3.12")
        ),
        *((_beside(name), "") for name in ("activate", "activate.fish", "Activate.ps1")),
    ],
)
def test_a_change_is_found(
    release: ReleaseList, there: Installation, change: Change, words: str
) -> None:
    change(there)
    lines = found(release, there)
    assert any(words in line for line in lines) if words else lines == [], lines


def test_a_command_with_a_long_path_and_of_each_installer_is_right(
    release: ReleaseList, there: Installation
) -> None:
    long = f"#!/bin/sh\n'''exec' \"{there.scripts}/python3\" \"$0\" \"$@\"\n' '''\n"
    old = (
        "# -*- coding: utf-8 -*-\nimport re\nimport sys\nfrom controller.cli import main\n"
        "if __name__ == '__main__':\n"
        "    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])\n"
        "    sys.exit(main())\n"
    )
    uv = (
        "# -*- coding: utf-8 -*-\nimport sys\nfrom controller.cli import main\n"
        'if __name__ == "__main__":\n'
        '    if sys.argv[0].endswith("-script.pyw"):\n        sys.argv[0] = sys.argv[0][:-11]\n'
        '    elif sys.argv[0].endswith(".exe"):\n        sys.argv[0] = sys.argv[0][:-4]\n'
        "    sys.exit(main())\n"
    )
    for text in (long + _CALL, long + old, f"#!{there.scripts}/python\n{uv}"):
        (there.scripts / "holecard").write_text(text)
        assert found(release, there) == [], text


def test_a_release_of_another_version_or_platform_is_not_this_one(
    release: ReleaseList, there: Installation
) -> None:
    other = there._replace(platform="cpython-314-linux-aarch64")
    assert found(release, other)[0] == (
        f"platform: this is cpython-314-linux-aarch64; the list is for {release.platform}"
    )
    shutil.rmtree(there.site)
    install_all(there.site)
    info = there.site / "deeper-1.0.dist-info"
    text = (info / "METADATA").read_text().replace("Version: 1.0", "Version: 1.1")
    (info / "METADATA").write_text(text)
    assert found(release, there) == [
        "deeper: 1.1 is installed; the release has 1.0",
        "deeper-1.0.dist-info/METADATA: is not the file of the release",
    ]
    shutil.rmtree(info)
    assert "deeper: is not installed; the release has 1.0" in found(release, there)


def test_code_from_elsewhere_is_found(release: ReleaseList, there: Installation) -> None:
    other = there._replace(search=("/tmp/more",), roots={**there.roots, "hil": "/srv/hil"})
    assert found(release, other) == [
        f"hil: is loaded from /srv/hil, not from {there.site}",
        "/tmp/more: modules are loaded from here too",
    ]


def test_only_the_archive_of_the_standard_library_is_pythons_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = f"{sys.version_info.major}{sys.version_info.minor}"
    own = f"{sys.base_prefix}/{sys.platlibdir}/python{version}.zip"
    assert own in sys.path
    other = str(tmp_path / f"python{version}.zip")
    monkeypatch.setattr(sys, "path", [other, *sys.path])
    search = Installation.here().search
    assert other in search
    assert own not in search
