"""Who was signed in when the controller ended, and whose PIN has to wait: from as much of a record
as counts, wherever its segments end."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.audit.errors import RecordDamaged
from controller.audit.format.records import CONTROLLER, RecordEntry
from controller.audit.format.segments import numbers
from controller.audit.log import RecordOpening
from controller.audit.read import reader
from controller.people import (
    SignInData,
    SignInState,
    SignOutData,
    dealer,
    entry_for,
    restore_sign_ins,
    sign_in,
)
from controller.people.records import SignInEntry, SignInRefused
from controller.people.sign_in import fold, wait_seconds
from tests.support.audit.record.table import TABLE, FakeClock, begun, everything, note

HOUR: Final = 3600
ANN: Final = SignInData("dealer", "Ann Lee", "D-17", "l17", "dealer", 0)
BO: Final = SignInData("dealer", "Bo Chan", "D-18", "l18", "dealer", 0)
DEE: Final = SignInData("surveillance", "Dee Faro", "S-1", "l1", "eye", 12 * HOUR)
OUT: Final = SignOutData("dealer", "Ann Lee", "D-17", "dealer", "asked")
GUESS: Final = SignInRefused("wrong PIN", "Ann Lee", "D-17", "l17", "dealer", "dealer")
Doing: TypeAlias = SignInEntry | float | str
"""What somebody does; seconds that go by; `boot`, `play`, which is a lot of records, or that the
clock is set `ahead` or `back`."""


def recorded(place: Path, doings: Sequence[Doing]) -> None:
    clock = FakeClock()
    log = begun(place, clock=clock)
    for doing in doings:
        if isinstance(doing, SignInEntry):
            log.write([entry_for(doing)])
        elif doing == "boot":
            log.close()
            clock.mono = 10**9  # the machine was started anew
            log = begun(place, clock=clock)
        elif doing in ("ahead", "back"):
            clock.set(600 if doing == "ahead" else -600)
            log.write([note("the time")])
        elif doing == "play":
            log.write([note("cards", 5000)])
            log.write([note("cards", 5000)])
        else:
            assert isinstance(doing, int | float)
            log.sign()
            clock.go(doing)
    log.write([note("the last")])
    log.close()


def found(place: Path) -> SignInState:
    opening = RecordOpening.at(place, table=TABLE)
    try:
        return restore_sign_ins(opening)
    finally:
        opening.close()


def told(standing: SignInState) -> tuple[object, ...]:
    """What anybody notices of it."""
    sessions = sorted(standing.sessions, key=lambda one: one.badge)
    who = [(one.role, one.badge, one.screen) for one in sessions]
    waits = [
        wait_seconds(standing, one, screen) for one, screen in (("l17", "dealer"), ("l1", "eye"))
    ]
    return (who, waits, standing.clock)


doing = st.one_of(
    st.sampled_from([ANN, BO, DEE, OUT, GUESS, GUESS, GUESS]),
    st.sampled_from(["boot", "play", "play", "ahead", "back"]),
    st.sampled_from([1.0, 45.0, 1.0 * HOUR]),
)
before = st.lists(st.sampled_from([ANN, DEE, GUESS, "play", "boot", 26.0 * HOUR]), max_size=4)


@settings(max_examples=40)
@given(before, st.lists(doing, max_size=18))
def test_it_is_what_the_whole_record_comes_to(old: list[Doing], new: list[Doing]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "record"
        recorded(place, [*old, *new])
        whole = fold(everything(place))
        assert told(found(place)) == told(whole)


@pytest.mark.parametrize("set_", ["ahead", "back"])
def test_a_clock_that_was_set_makes_no_wait_shorter_or_longer(set_: str, tmp_path: Path) -> None:
    """Within a boot the machine's own count goes on, whatever the clock says."""
    recorded(tmp_path / "r", [*[GUESS] * 5, set_, "play", "play", "boot", 1.0])
    whole = fold(everything(tmp_path / "r"))
    assert 0 < wait_seconds(whole, "l17", "dealer") < 60
    assert told(found(tmp_path / "r")) == told(whole)


def test_a_dealer_of_days_ago_still_deals(tmp_path: Path) -> None:
    recorded(tmp_path / "r", [ANN, *["play"] * 6, 30.0 * HOUR, *["play"] * 6, 30.0 * HOUR, "boot"])
    assert len(numbers(tmp_path / "r")) > 6
    at_table = dealer(found(tmp_path / "r"))
    assert at_table is not None
    assert at_table.badge == "D-17"


def test_no_further_back_is_read_than_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(tmp_path / "r", [ANN, *["play"] * 6, OUT, 30.0 * HOUR, *["play"] * 6])
    every = numbers(tmp_path / "r")
    read: list[int] = []

    def load(file: Path, number: int) -> bytes:
        read.append(number)
        return reader.load(file, number)

    monkeypatch.setattr(sign_in, "load", load)
    assert dealer(found(tmp_path / "r")) is None
    assert 1 < len(read) < len(every) - 3
    assert read == sorted(read, reverse=True)


def test_a_dealer_of_long_ago_has_to_sign_in_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_in, "MAX_SEGMENTS", 3)
    recorded(tmp_path / "r", [ANN, *["play"] * 9])
    assert dealer(found(tmp_path / "r")) is None


def test_a_new_record_knows_nobody(tmp_path: Path) -> None:
    assert found(tmp_path / "r") == SignInState()


def test_one_that_cannot_be_read_is_damage(tmp_path: Path) -> None:
    log = begun(tmp_path / "r")
    seq = log.write([RecordEntry("person", CONTROLLER, {"what": "signed in", "role": "dealer"})])[
        0
    ].seq
    log.close()
    with pytest.raises(RecordDamaged, match=f"seq {seq}: an invalid entry about people"):
        found(tmp_path / "r")
