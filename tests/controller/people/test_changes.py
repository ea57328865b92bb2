"""Changes to the people of a house: kept with their line in the history, or not at all."""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from controller.people import person
from controller.people.service import renew_verifier
from drivers.keys import KeyProblem
from tests.support.hil.conform.failing_disk import FailingDisk
from tests.support.table.simulated.house import (
    AT,
    CHEAP,
    DEARER,
    KEY,
    NEW,
    PINS,
    TWO,
    add,
    house,
    lines,
    mode,
    put,
)

# --- changing ---------------------------------------------------------------------------------


def test_a_change_is_kept_and_stands_in_the_history(tmp_path: Path) -> None:
    file = house(tmp_path)
    assert add(file).every[-1] == NEW
    disabled = replace(NEW, disabled=True)
    file.change("disabled", "d-20", lambda people: disabled, ("Cy", "Di"), AT)
    assert file.read().every[-1] == disabled
    assert len(file.read().every) == len(PINS) + 1
    first, second = lines(file)
    assert first == {
        "at": AT,
        "what": "added",
        "by": ["Ann Lee", "Bo Chan"],
        "account": first["account"],
        "badge": "D-20",
        "name": "Ivy North",
        "roles": ["dealer"],
    }
    assert first["account"]
    assert (second["what"], second["by"]) == ("disabled", ["Cy", "Di"])
    assert [mode(one) for one in (file.file, file.history_file)] == [0o600, 0o600]


def test_what_cannot_stand_in_the_file_is_not_kept(tmp_path: Path) -> None:
    file = house(tmp_path)
    before = file.file.read_bytes()
    for one in (
        replace(NEW, badge="D 20"),
        replace(NEW, name="Ivy\nNorth"),
        replace(NEW, roles=()),
        replace(NEW, pin="402931"),
    ):
        with pytest.raises(KeyProblem, match=r"people\[9\]"):
            add(file, one)
    assert file.file.read_bytes() == before
    assert not file.history_file.exists()


def test_a_house_that_is_full_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = house(tmp_path)
    before = file.file.read_bytes()
    monkeypatch.setattr(person, "MAX_FILE_BYTES", len(before) + 20)
    with pytest.raises(KeyProblem, match="too many people for one file"):
        add(file)
    assert file.file.read_bytes() == before


@contextmanager
def held(file: Path) -> Iterator[None]:
    """Another program holds this lock."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def test_one_changes_at_a_time(tmp_path: Path) -> None:
    file = house(tmp_path)
    with held(file.file.with_name("people.json.lock")):
        with pytest.raises(KeyProblem, match="another process is changing the people"):
            file.change("added", "D-20", lambda people: NEW, TWO, AT, timeout=0)
        assert len(file.read().every) == len(PINS)
    assert len(add(file).every) == len(PINS) + 1


def test_nobody_is_lost_when_many_are_added_at_once(tmp_path: Path) -> None:
    file = house(tmp_path, ())
    badges = [f"N-{at}" for at in range(8)]
    new = [replace(NEW, badge=badge) for badge in badges]
    threads = [threading.Thread(target=add, args=(file, one)) for one in new]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.badge for one in file.read().every) == badges
    assert sorted(str(line["badge"]) for line in lines(file)) == badges


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_disk_that_fails_at_any_step_of_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    for at in itertools.count():
        file = house(tmp_path / f"step-{at}")
        before = file.read().every
        with monkeypatch.context() as patched:
            disk = FailingDisk(patched, tmp_path, number, at)
            try:
                add(file)
            except KeyProblem as problem:
                text = str(problem)
            else:
                assert disk.asked <= at
                break
        assert os.strerror(number).lower() in text, at
        assert file.read().every in (before, (*before, NEW)), at
        assert not file.file.with_name("people.json.new").exists(), at
        if file.history_file.exists():
            assert [line["badge"] for line in lines(file)] in ([], ["D-20"]), at
        assert add(file).every == (*before, NEW), at
    assert at > 6


def test_a_change_that_is_kept_is_never_without_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line is on the disk before the file is."""
    file = house(tmp_path)
    seen: list[bool] = []
    real = os.replace

    def watched(*arguments: str) -> None:
        seen.append(file.history_file.exists() and lines(file)[-1]["badge"] == "D-20")
        real(*arguments)

    monkeypatch.setattr(os, "replace", watched)
    add(file)
    assert seen == [True]


def test_a_line_that_power_has_cut_short_does_not_take_the_next_one_with_it(tmp_path: Path) -> None:
    file = house(tmp_path)
    put(file.history_file, b'{"at":"2027-01-1')
    add(file)
    text = file.history_file.read_text().splitlines()
    assert len(text) == 2
    assert json.loads(text[1])["badge"] == "D-20"


# --- a verifier that is renewed ---------------------------------------------------------------


def test_a_verifier_is_made_anew_at_the_present_cost(tmp_path: Path) -> None:
    file = house(tmp_path)
    ann = file.read().find("D-17")
    assert ann is not None
    renew_verifier(file, ann, PINS["D-17"], DEARER, AT)
    now = file.read().find("D-17")
    assert now is not None
    assert now.verifier().cost == DEARER
    assert KEY.fits(now.verifier(), "D-17", PINS["D-17"])
    assert replace(now, pin=ann.pin) == ann
    assert [(line["what"], line["by"]) for line in lines(file)] == [
        ("verifier renewed", ["Ann Lee"])
    ]


def test_a_verifier_that_was_changed_meanwhile_stays(tmp_path: Path) -> None:
    file = house(tmp_path)
    ann = file.read().find("D-17")
    assert ann is not None
    other = replace(ann, pin=str(KEY.verifier("D-17", "918273", CHEAP)))
    file.change("PIN reset", "D-17", lambda people: other, TWO, AT)
    with pytest.raises(KeyProblem, match="D-17 has another PIN by now"):
        renew_verifier(file, ann, PINS["D-17"], DEARER, AT)
    assert file.read().find("D-17") == other
