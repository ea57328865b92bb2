"""A record is verified while somebody writes it."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread

import pytest

from controller.audit.log import SystemClock
from controller.audit.read.reader import load
from controller.audit.verify import VALID, segment, verify
from tests.support.audit.record.table import begun, note
from tests.support.audit.tools.asked import whats
from tests.support.audit.tools.by_page import Pen


def test_a_record_is_right_at_any_instant_while_it_is_written(tmp_path: Path) -> None:
    place = tmp_path / "record"
    log = begun(place, clock=SystemClock())  # type: ignore[arg-type]
    begun_to_write = Event()

    def write() -> None:
        for at in range(300):
            log.write([note(f"{at}", 37 * at % 900) for _ in range(at % 5 + 1)])
            if at % 9 == 0:
                log.sign()
            begun_to_write.set()
        log.close()

    writer = Thread(target=write)
    writer.start()
    begun_to_write.wait()
    found = [verify(place)]
    while writer.is_alive():
        found.append(verify(place))
    writer.join()
    assert [whats(report) for report in found] == [[]] * len(found)
    lasts = [report.last for report in found]
    assert lasts == sorted(lasts)
    assert lasts[0] < lasts[-1]
    assert len(found) > 3
    assert verify(place).code == VALID


def test_what_came_while_it_was_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page with one record was read before it was written, the next one after."""
    pen = Pen()
    pen.start()
    before = bytes(pen.files[1])
    hole = pen.write("note", {"text": "x" * 5000})
    pen.sync()
    pen.write("note", {"text": "on the disk is the one before"})
    place = pen.save(tmp_path)
    _, start, end = pen.frames[hole - 1]
    half = before[:end] + bytes(pen.files[1][end:])
    assert not any(half[start:end])
    readings: list[int] = []

    def reads(file: Path, number: int) -> bytes:
        readings.append(number)
        return half if len(readings) == 1 else load(file, number)

    monkeypatch.setattr(segment, "load", reads)
    report = verify(place)
    assert (report.code, report.last, len(readings)) == (VALID, pen.seq, 2)


def test_what_stays_amiss_is_not_read_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pen = Pen()
    pen.start()
    for number in range(20):
        pen.write("note", {"text": f"{number}"})
    place = pen.save(tmp_path)
    readings: list[int] = []

    def reads(file: Path, number: int) -> bytes:
        """Each time a little more of it, and never whole."""
        readings.append(number)
        cut = pen.frames[3 + len(readings)][2] - 5
        return bytes(pen.files[1][:cut]).ljust(pen.size, b"\1")

    monkeypatch.setattr(segment, "load", reads)
    report = verify(place)
    assert len(readings) == 1 + segment.MAX_READINGS
    assert report.findings


def test_what_stays_as_it_is_is_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pen = Pen()
    pen.start()
    pen.files[1][100] ^= 1
    place = pen.save(tmp_path)
    readings: list[int] = []

    def reads(file: Path, number: int) -> bytes:
        readings.append(number)
        return load(file, number)

    monkeypatch.setattr(segment, "load", reads)
    assert verify(place).findings
    assert len(readings) == 2
