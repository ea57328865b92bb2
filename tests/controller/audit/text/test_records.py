"""Records as text: what devices, links and people do, other kinds, amounts and times."""

from typing import Any, get_args

import msgspec
import pytest

from controller.audit.format.records import DeviceCursor, Kind, OpenedData, Record, RecordActor
from controller.audit.format.table_entries import HOST_STALLED, NOT_RECORDED
from controller.audit.text import currency_of, format_time, record_text
from controller.audit.text.device_events import SAYINGS
from controller.people.records import SignInEntry
from controller.procedure.prompts import MoneyFormat
from controller.table.loop.loop import ADOPTED
from controller.table.memory.memory import WHAT
from drivers.devices import events, shoe, shuffler, station
from drivers.events import AnyHappening


def record_of(
    kind: Kind, data: object, who: RecordActor | None = None, cursor: DeviceCursor | None = None
) -> Record:
    encoded = msgspec.Raw(msgspec.json.encode(data))
    by = who or RecordActor("device", "station")
    return Record(2, "0" * 16, 1, 0, 0, "synced", 1, kind, encoded, by, cursor=cursor)


def said(kind: Kind, who: RecordActor | None = None, /, **data: Any) -> str:
    text = record_text(record_of(kind, data, who), MoneyFormat())
    assert (text.facts, text.prompts, text.refused) == ((), (), "")
    return text.what


def test_each_thing_that_a_table_records_has_a_sentence() -> None:
    assert len([*events.COMMON, *shoe.EVENTS, *shuffler.EVENTS, *station.EVENTS]) > 20
    devices = {
        name
        for module in (events, shoe, shuffler, station)
        for name, one in vars(module).items()
        if isinstance(one, type)
        and issubclass(one, events.DeviceEvent)
        and one is not events.DeviceEvent
    }
    links = {one.__name__ for one in get_args(AnyHappening)}
    people = {one.__struct_config__.tag for one in SignInEntry.__subclasses__()}
    known = {kind: {what for one, what in SAYINGS if one == kind} for kind, _ in SAYINGS}
    assert (known["device"], known["link"]) == (
        devices | {"CardSeen", WHAT},
        links | {ADOPTED, HOST_STALLED, NOT_RECORDED},
    )
    assert known["person"] == people


SHOE = RecordActor("device", "shoe")
EVE = RecordActor("surveillance", "Eve")


@pytest.mark.parametrize(
    ("kind", "who", "data", "words"),
    [
        (
            "device",
            None,
            {"what": "ButtonPressed", "seat": 3, "button": "hit", "press": 1, "token": 115},
            "seat 3 pressed hit",
        ),
        (
            "device",
            None,
            {
                "what": "ButtonPressed",
                "seat": 3,
                "button": "hit",
                "ignored": "it is not open to the seat now",
            },
            "seat 3 pressed hit, not lit: nothing changed",
        ),
        (
            "device",
            None,
            {
                "what": "ButtonPressed",
                "seat": 3,
                "button": "stand",
                "stale": True,
                "ignored": "it came too late",
            },
            "seat 3 pressed stand, too late: nothing changed",
        ),
        ("device", SHOE, {"what": "CoverMoved", "open": True}, "the shoe's cover is opened"),
        (
            "device",
            SHOE,
            {"what": "ShoeCardRead", "shoe": 1, "pos": 11},
            "card 11 leaves the shoe, seen by nobody",
        ),
        (
            "device",
            SHOE,
            {
                "what": WHAT,
                "out": 48,
                "seen": 47,
                "extra": [3],
                "foreign": 0,
                "missing": 2,
                "beyond": 0,
            },
            "the shoe is counted: 48 cards out, 47 seen, too often: 4 of clubs, 2 missing",
        ),
        (
            "link",
            None,
            {"what": "StateChanged", "device": "ST-7", "state": "ready", "why": "x"},
            "station ST-7 is ready",
        ),
        (
            "link",
            None,
            {"what": "StateChanged", "device": "ST-7", "state": "lost", "why": "it is silent"},
            "station ST-7 is lost: it is silent",
        ),
        (
            "link",
            None,
            {"what": "ClockRead", "device": "ST-7", "offset_us": -336522255},
            "the clock of station ST-7 is 336.522 s behind the table's",
        ),
        (
            "link",
            None,
            {"what": "Held", "device": "ST-7", "verdict": "behind"},
            (
                "this record ends before events that station ST-7 was told are stored: "
                "two people are asked"
            ),
        ),
        (
            "link",
            None,
            {"what": "Held", "device": "ST-7", "verdict": "fork"},
            "the log of station ST-7 does not continue the record: two people are asked",
        ),
        (
            "link",
            RecordActor("floor", "Bo"),
            {"what": "adopted", "device": "SH-1", "verdict": "behind", "two": ["Bo", "Cy"]},
            (
                "the log of SH-1 is continued at its current position, by Bo and Cy, although this "
                "record ends before events that SH-1 was told are stored"
            ),
        ),
        (
            "link",
            None,
            {
                "what": "Introduced",
                "device": "ST-7",
                "maker": "EW",
                "model": "Bridge",
                "gateway": True,
            },
            "station ST-7 says who it is: EW Bridge, an adapter for a device behind it",
        ),
        (
            "link",
            None,
            {"what": "DeviceStands", "device": "ST-7", "state": 5},
            "station ST-7 says of itself: paired, locked",
        ),
        (
            "link",
            RecordActor("floor", "Bo"),
            {"what": "adopted", "device": "SH-1", "two": ["Bo", "Cy"]},
            "the log of SH-1 is continued at its current position, by Bo and Cy",
        ),
        (
            "person",
            EVE,
            {"what": "looked", "name": "Eve", "page": "review round", "of": "round 7"},
            "Eve looked at round 7",
        ),
        (
            "person",
            EVE,
            {
                "what": "looked",
                "name": "Eve",
                "page": "exported",
                "of": "round 7",
                "reason": "",
                "out": "a.zip",
                "seal": "ab",
            },
            "Eve exported round 7 as a sealed case, as a.zip, seal ab",
        ),
        (
            "person",
            None,
            {"what": "refused", "why": "wrong PIN", "name": "", "wanted": "dealer"},
            "somebody is refused, dealer: wrong PIN",
        ),
        # Another code's: without what is empty.
        (
            "person",
            EVE,
            {"what": "waved", "name": "Eve", "reason": "", "out": None, "of": []},
            "person: waved: name Eve",
        ),
        # A name of ours, and not what belongs to it.
        ("device", None, {"what": "ButtonPressed", "seat": 3}, "device: ButtonPressed: seat 3"),
        ("link", None, {"what": "Alert", "counts": 3}, "link: Alert: counts 3"),
        ("device", None, {"what": [1], "seat": 2}, "device: [1]: seat 2"),
    ],
)
def test_what_happened_is_a_sentence(
    kind: Kind, who: RecordActor | None, data: dict[str, Any], words: str
) -> None:
    assert said(kind, who, **data) == words


def test_what_keeps_the_table_running_is_quiet() -> None:
    def quiet(kind: Kind, **data: Any) -> bool:
        return record_text(record_of(kind, data), MoneyFormat()).quiet

    assert quiet("link", what="DeviceStands", device="ST-7", state=5)
    assert quiet("link", what="ClockRead")
    assert quiet("link", what="StateChanged", state="handshaking")
    assert quiet("device", what="ButtonReleased")
    assert quiet("checkpoint")
    assert not quiet("link", what="StateChanged", state="lost")
    assert not quiet("link", what="Swapped")
    assert not quiet("device", what="ButtonPressed")
    assert not quiet("device", what=["ButtonReleased"])
    assert not quiet("decision")


@pytest.mark.parametrize(
    ("kind", "what", "access"),
    [("person", "looked", True), ("person", "signed in", False), ("device", "looked", False)],
)
def test_an_access_to_the_record_is_marked(kind: Kind, what: str, access: bool) -> None:
    assert record_text(record_of(kind, {"what": what}), MoneyFormat()).access is access


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
        (
            "fault",
            {
                "what": "disk_full",
                "detail": {"problem": "No space", "bytes": 7 << 20, "minutes": 80},
            },
            ["the next segment cannot be made: No space; 7,168 KiB are left, about 1 h 20 min"],
        ),
        (
            "link",
            {
                "what": "not_recorded",
                "count": 3,
                "others": 1,
                "first": 0,
                "last": 5_000_000,
                "devices": {"ST-1": 3},
            },
            ["3 entries about links (ST-1 3), and 1 of other kinds were not recorded, between"],
        ),
        (
            "link",
            {
                "what": "host_stalled",
                "count": 1,
                "since": 0,
                "longest_ms": 1250,
                "total_ms": 1250,
                "processor_ms": 20,
            },
            ["the controller stood still for 1.2 s; it used 0.0 s of processor time"],
        ),
        (
            "link",
            {
                "what": "host_stalled",
                "count": 3,
                "since": 5_000_000,
                "longest_ms": 1100,
                "total_ms": 2300,
                "processor_ms": 900,
            },
            ["the controller stood still 3 times since 1970-01-01 00:00:05.000000 UTC, for 2.3 s"],
        ),
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


def test_a_boot_whose_memory_can_be_read_says_so() -> None:
    opened = OpenedData("o", "s", "", "", "", "", msgspec.Raw(b"{}"), "", 0, 0, "direct")
    for debuggable in (True, msgspec.UNSET):
        data = msgspec.structs.replace(opened, debuggable=debuggable)
        facts = record_text(record_of("opened", data), MoneyFormat()).facts
        assert any("--debuggable" in line for line in facts) is (debuggable is True)


def test_a_time_that_no_calendar_has_is_told_in_microseconds() -> None:
    assert format_time(1_800_000_000_000_001) == "2027-01-15 08:00:00.000001 UTC"
    assert format_time(2**62) == f"{2**62} us"
