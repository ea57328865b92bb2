"""requirements.lock agrees with pyproject.toml, constraints.txt and what is needed."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.packaging.lock import CONSTRAINTS, LOCK, lock_problems, parse_lock
from tests.support.paths import ROOT

Change = Callable[[str], str]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in (LOCK, CONSTRAINTS, "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def test_the_lock_agrees() -> None:
    assert list(lock_problems(ROOT)) == []


def test_every_archive_has_a_hash() -> None:
    """Compiled packages have archives for many platforms; others have one or two."""
    found = parse_lock((ROOT / LOCK).read_text())
    assert found["msgspec"].hashes > 20
    assert min(one.hashes for one in found.values()) >= 1
    assert {"pytest", "mypy", "uv", "setuptools", "pip"}.isdisjoint(found)


@pytest.mark.parametrize(
    ("file", "was", "now", "words"),
    [
        (CONSTRAINTS, "msgspec==", "msgspec==9", "msgspec 0.22.0 is locked, and constraints.txt"),
        ("pyproject.toml", '"rich>=', '"rich>=9', "locked, and pyproject.toml requires rich>=9"),
        ("pyproject.toml", '"rich>=', '"poor>=', "poor is required by pyproject.toml and missing"),
        ("pyproject.toml", '"rich>=13.7"', '"rich"', "'rich' is no lower bound"),
        (LOCK, "rich==", "poor==", "rich is needed and missing; run: make lock"),
        (LOCK, "rich==", "poor==", "poor is not needed; run: make lock"),
        (LOCK, "rich==", "-i https://x.example\nrich==", "is no requirement and no hash"),
        (LOCK, "sha256:", "md5:", "is no requirement and no hash"),
    ],
)
def test_a_difference_is_found(place: Path, file: str, was: str, now: str, words: str) -> None:
    text = (place / file).read_text()
    assert was in text
    (place / file).write_text(text.replace(was, now, 1))
    assert any(words in one for one in lock_problems(place)), list(lock_problems(place))


def test_a_package_without_a_hash_is_found() -> None:
    with pytest.raises(ValueError, match="no hash of six"):
        parse_lock(f"idna==3 \\\n    --hash=sha256:{'ab' * 32}\nsix==1\n")
    with pytest.raises(ValueError, match="no hash of anything"):
        parse_lock("# nothing\n")
