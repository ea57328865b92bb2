"""What a mechanism owes to the ring is recorded once each and in order, whatever comes between."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_protocol.device import CannotDo
from firmware_protocol.messages import Cover, Event
from hil.devices.mechanism import MAX_PENDING, PendingEvents
from tests.support.hil.devices.desk import PowerGone, SmallDesk


class Books:
    """Someone who owes, and keeps it as a mechanism does: before it is recorded, and after."""

    def __init__(self) -> None:
        self.desk = SmallDesk()
        self.desk.boot = 1
        self.owed = PendingEvents()
        self.kept = b""
        self.said: list[Event] = []

    def keep(self) -> None:
        self.kept = msgspec.msgpack.encode(self.owed)

    def owe(self, events: list[Event]) -> None:
        self.said += events
        self.owed.add(self.desk, *events)
        self.keep()
        self.settle()

    def settle(self) -> None:
        try:
            self.owed.record(self.desk, 0)
        except PowerGone:
            self.restart()
        self.keep()

    def restart(self) -> None:
        self.owed = (
            msgspec.msgpack.decode(self.kept, type=PendingEvents) if self.kept else PendingEvents()
        )
        self.owed.discard_recorded(self.desk)
        self.settle()

    def recorded(self) -> list[Event]:
        return [record.event for record in self.desk.records]


STEPS = st.lists(
    st.one_of(
        st.lists(st.builds(Cover, open=st.booleans()), min_size=1, max_size=4),
        st.integers(0, 3),
        st.sampled_from(["restart", "before_commit", "after_commit"]),
    ),
    max_size=30,
)


@given(STEPS)
def test_each_event_is_recorded_once_and_in_order(steps: list[object]) -> None:
    """Few kinds of events, so that one is easily taken for another."""
    books = Books()
    for step in steps:
        if isinstance(step, list):
            books.owe(step)
        elif isinstance(step, int):
            books.desk.room = step
            books.settle()
        elif step == "restart":
            books.restart()
        else:
            books.desk.cut_at = "before_commit" if step == "before_commit" else "after_commit"
    books.desk.room, books.desk.cut_at = 1 << 30, None
    books.settle()
    assert books.recorded() == books.said


def test_another_ring_has_none_of_them() -> None:
    books = Books()
    books.desk.room = 0
    books.owe([Cover(True)])
    books.owed.epoch += 1
    books.owed.discard_recorded(books.desk)
    books.desk.room = 9
    books.settle()
    assert books.recorded() == [Cover(True)]


def test_pending_events_have_a_limit() -> None:
    owed, desk = PendingEvents(), SmallDesk()
    owed.add(desk, *[Cover(True)] * (MAX_PENDING - 1))
    owed.require_capacity(1)
    assert not owed.has_capacity(2)
    with pytest.raises(CannotDo, match="wait until it has space"):
        owed.require_capacity(2)
