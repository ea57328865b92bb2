"""Bits and rewritings by chance, a share of what `make torture` tries: none passes for right."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.audit.verify import INVALID, verify
from tests.long.torture.altered import counted, flips, rewritings
from tests.support.audit.tools.by_page import Pen, closed
from tests.support.audit.verifying import read

SHARE = 61
GOOD = closed(65536, rounds=2, boots=2)


def test_no_bit_of_a_closed_record_can_be_another(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    found = counted(flips(tmp_path / "record", SHARE, seed=7))
    assert found["bits in frames found"] > 700
    assert found["bits in zeros found"] > 50
    assert "bits in frames explained" not in found
    for what, count in found.items():
        record_property(what, count)


def test_no_rewriting_passes_for_right(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    found = counted(rewritings(tmp_path, 20, seed=7))
    shown = found.pop("shown by the record itself though all was signed again")
    assert 0 < shown <= sum(found.values())
    assert sum(found.values()) > 25
    record_property("rewritings of a record", sum(found.values()))


ODD = (
    b"0", b"-1", b"1.5", b"null", b'""', b"{}", b"[]", b"true", b"99999999999999999999",
    b'"\\ud800"', b"\xff", b" ", b",", b'"', b'{"a":', b"[" * 2000, b"\\u0041",
)  # fmt: skip
"""What may stand in a record where something else should."""


_FREE = re.compile(rb'(?<="name":")[^"]*|(?<="round":)[0-9]+')
"""Of the last record, which no note is of, these two may be others: it is a checkpoint itself."""


@given(st.data())
def test_whatever_stands_in_a_record_is_found_and_nothing_fails_of_it(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """The frame is right, and so are chain and tree: somebody has written it like this."""
    records = list(GOOD.records)
    at = data.draw(st.integers(0, len(records) - 1))
    record = records[at]
    begin = data.draw(st.integers(0, len(record) - 1))
    end = data.draw(st.integers(begin, min(len(record), begin + 12)))
    records[at] = record[:begin] + data.draw(st.sampled_from(ODD)) + record[end:]
    free = at == len(records) - 1 and any(
        one.start() <= begin <= end <= one.end() for one in _FREE.finditer(record)
    )
    if records[at] == record or free:
        return
    pen = Pen(65536)
    pen.segment()
    for each in records:
        pen.sync()
        pen.put(each)
    place = pen.save(tmp_path_factory.mktemp("record"))
    theirs = read(place)
    assert (verify(place).code, theirs["exit"]) == (INVALID, INVALID)
    assert verify(place, replay=False).code == INVALID
    assert verify(place).findings[0].seq <= theirs["wrong"]["seq"]
