"""A record in words: each kind, amounts and times, and what our words do not have."""

from __future__ import annotations

import msgspec
import pytest

from controller.audit.format.records import Kind, OpenedData, Record, RecordActor
from controller.audit.text import currency_of, format_time, record_text
from controller.procedure.prompts import MoneyFormat


def record_of(kind: Kind, data: object) -> Record:
    return Record(
        1, "t", "0" * 16, 1, "2026-01-01", 0, 0, "synced", 1, kind, RecordActor("device", "x"),
        "", "", "", msgspec.Raw(msgspec.json.encode(data)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "data", "words"),
    [
        ("device", {"what": "button", "seat": 2}, ["device: button: seat 2"]),
        ("link", {"what": "lost"}, ["link: lost"]),
        ("clock", {"utc_was": 5, "mono": 1}, ["the clock was set: it would have been 1970-01-01"]),
        (
            "clock",
            {"utc_was": 5, "mono": 1, "two": ["Ann", "Bo"]},
            ["the clock was set: it would", "Ann and Bo said that it was right now"],
        ),
        ("unwitnessed", {"since": 0}, ["no witness has countersigned since 1970-01-01 00:00:00"]),
        ("fault", {"what": "disk", "detail": {"ms": 3}}, ['fault: disk: {"ms":3}']),
        ("note", {"text": "a\x1b[31mb"}, ["note: a\\x1b[31mb"]),
        ("closed", {}, ["the controller ends in good order"]),
        (
            "tail",
            {
                "segment": 3,
                "offset": 9,
                "size": 5,
                "sha256": "0",
                "file": "tails/x.json",
                "verdict": "accepted",
                "two": ["Ann", "Bo"],
            },
            [
                "5 bytes of segment 00000003, offset 9 were set aside: accepted by Ann and Bo",
                "they are in tails/x.json",
            ],
        ),
        (
            "decision",
            {
                "event": {"type": "Levitated", "commitment": "ab", "seat": 2},
                "rows": [],
                "effects": [{"type": "Rose", "by": 3}],
            },
            [
                'Levitated (in the words of other code): {"type":"Levitated","seat":2}',
                '{"type":"Rose","by":3}',
            ],
        ),
        ("checkpoint", {"note": "none"}, ["checkpoint: note none"]),
        ("witnessed", {"note": "x" * 900}, ["witnessed: note xxx"]),
    ],
)
def test_each_kind_has_its_words(kind: Kind, data: object, words: list[str]) -> None:
    text = record_text(record_of(kind, data), MoneyFormat())
    found = [text.what, *text.facts, *text.prompts]
    assert len(found) == len(words)
    for line, start in zip(found, words, strict=True):
        assert line.startswith(start)
        assert len(line) < 500


def test_amounts_are_written_as_the_game_writes_them() -> None:
    wager = {
        "event": {
            "type": "WagerPlaced",
            "actor": {"role": "player", "name": "p", "seat": 1},
            "seat": 1,
            "bet": "buster",
            "amount": 2550,
        },
        "rows": [],
        "effects": [],
    }
    for game, words in (
        (b'{"currency":{"symbol":"CHF","minor_digits":2}}', "seat 1, Buster, CHF 25.50"),
        (b'{"currency":null}', "seat 1, Buster, 2,550 units"),
        (b'{"other":"code"}', "seat 1, Buster, 2,550 units"),
        (b"[]", "seat 1, Buster, 2,550 units"),
    ):
        opened = OpenedData("o", "s", "", "", "", "", msgspec.Raw(game), "", 0, 0, "direct")
        text = record_text(record_of("decision", wager), currency_of(opened))
        assert text.what == f"a wager is placed or changed: {words}"


def test_a_time_that_no_calendar_has_is_told_in_microseconds() -> None:
    assert format_time(1_800_000_000_000_001) == "2027-01-15 08:00:00.000001 UTC"
    assert format_time(2**62) == f"{2**62} us"
