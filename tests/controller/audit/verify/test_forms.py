"""The forms of JSON that a record may have: both verifiers say of each what FORMAT.md says."""

import json
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import pytest

from controller.audit.format.records import utc_date
from controller.audit.verify import VALID, verify
from tests.support.audit.record.resigning import (
    Change,
    Draft,
    changed,
    encode,
    put_together,
    save,
    taken_apart,
)
from tests.support.audit.record.scripted import read_rounds, record_all
from tests.support.audit.record.table import begun, device_report
from tests.support.audit.tools.by_page import started
from tests.support.audit.verifying import read_independently
from tests.support.sim.a_round import ROUND

Form = Callable[[bytes], bytes]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Draft:
    """One round, which is replayed."""
    folder = tmp_path_factory.mktemp("played")
    record_all(folder / "record", read_rounds(folder, ROUND))
    return taken_apart(folder / "record", "played")


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Draft:
    """Reports of a device, in several segments."""
    place = tmp_path_factory.mktemp("reported") / "record"
    log = begun(place, size=4096)
    for seq in range(1, 12):
        log.write([device_report("SH-1", seq)])
    log.close()
    return taken_apart(place, "reported")


def verdicts(draft: Draft, place: Path) -> tuple[int, int]:
    save(put_together(draft), place)
    return verify(place).code, int(read_independently(place)["exit"])


def as_bytes(form: Form) -> Change:
    return lambda record, _: form(encode(record))


def index(draft: Draft, kind: str) -> int:
    """Of the last record of this kind."""
    return max(at for at, one in enumerate(draft.entries) if one.record["kind"] == kind)


def swap(old: bytes, new: bytes) -> Form:
    """The record with the first of these bytes replaced."""

    def form(data: bytes) -> bytes:
        assert old in data
        return data.replace(old, new, 1)

    return form


def turned(data: bytes) -> bytes:
    """With the fields of `data`, and of all in it, in the opposite order."""

    def turn(value: object) -> object:
        if isinstance(value, dict):
            return {name: turn(value[name]) for name in reversed(value)}
        return [turn(one) for one in value] if isinstance(value, list) else value

    record = json.loads(data)
    return encode({**record, "data": turn(record["data"])})


def escaped(data: bytes) -> bytes:
    """With every letter of the strings in `data` as an escape."""
    head, mark, rest = data.partition(b'"data":')
    made, inside, skip = bytearray(), False, False
    for byte in rest:
        plain = inside and not skip and bytes([byte]).isalpha()
        made += b"\\u%04x" % byte if plain else bytes([byte])
        inside ^= byte == 34 and not skip
        skip = byte == 92 and not skip
    return head + mark + bytes(made)


def nested(depth: int) -> bytes:
    return b'{"what":"cover","open":' + b"[" * depth + b"]" * depth + b"}"


WHAT = b'{"what":"cover","open":true}'


def cover(data: bytes) -> Form:
    """A device's report with this `data`."""
    return swap(WHAT, data)


def opens(value: bytes) -> Form:
    return cover(b'{"what":"cover","open":%b}' % value)


DEVICE: dict[str, tuple[Form, bool]] = {
    "as it was": (bytes, True),
    "fields of data in another order": (turned, True),
    "letters as escapes": (escaped, True),
    "an escaped name": (swap(b'"open"', b'"\\u006Fpen"'), True),
    "an escaped slash": (opens(b'"a\\/b"'), True),
    "an escaped pair": (opens(b'"\\ud83c\\udca1"'), True),
    "a zero character": (opens(b'"a\\u0000b"'), True),
    "a name with a zero character": (cover(b'{"what":"cover","op\\u0000en":1}'), True),
    "an empty name": (cover(b'{"what":"cover","":1}'), True),
    "a byte of a control character that is none": (opens(b'"\x7f"'), True),
    "the least integer": (opens(b"-9223372036854775808"), True),
    "the largest integer": (opens(b"9223372036854775807"), True),
    "nesting of 100": (cover(nested(98)), True),
    "too long a record": (opens(b'"' + b"x" * 65_400 + b'"'), False),
    "a long string": (opens(b'"' + b"x" * 60_000 + b'"'), True),
    "too large an integer": (opens(b"9223372036854775808"), False),
    "an integer that only Python reads": (opens(b"9" * 5000), False),
    "nesting of 101": (cover(nested(99)), False),
    "deep nesting": (cover(nested(100_000)), False),
    "deep nesting without an end": (cover(b"[" * 200_000), False),
    "deep objects": (opens(b'{"a":' * 30_000 + b"1" + b"}" * 30_000), False),
    "-0": (opens(b"-0"), False),
    "-0 in a list": (opens(b"[-0]"), False),
    "-0 around data": (swap(b'"round":0', b'"round":-0'), False),
    "a fraction": (opens(b"1.0"), False),
    "an exponent": (opens(b"1e3"), False),
    "a fraction around data": (swap(b'"round":0', b'"round":0.0'), False),
    "a zero before a number": (opens(b"01"), False),
    "a plus": (opens(b"+1"), False),
    "no number": (opens(b"NaN"), False),
    "infinity": (opens(b"-Infinity"), False),
    "a name twice": (cover(b'{"what":"cover","open":1,"open":1}'), False),
    "a name twice, once escaped": (cover(b'{"what":"cover","open":1,"ope\\u006e":1}'), False),
    "a name twice around data": (swap(b'"v":2', b'"v":2,"v":2'), False),
    "a name twice in the cursor": (swap(b'"epoch":7', b'"epoch":7,"epoch":7'), False),
    "half a pair": (opens(b'"\\ud83c"'), False),
    "the other half": (opens(b'"\\uDCA1x"'), False),
    "halves in the wrong order": (opens(b'"\\udca1\\ud83c"'), False),
    "half a pair in a name": (cover(b'{"what":"cover","\\ud83c":1}'), False),
    "half a pair as bytes": (opens(b'"\xed\xa0\xbc"'), False),
    "no UTF-8": (opens(b'"\xff"'), False),
    "a letter in more bytes than it needs": (opens(b'"\xc1\x81"'), False),
    "a tab in a string": (opens(b'"\t"'), False),
    "a zero byte in a string": (opens(b'"\0"'), False),
    "a space between tokens": (swap(b'"v":2,', b'"v":2, '), False),
    "a space in data": (cover(b'{"what":"cover", "open":true}'), False),
    "a newline behind": (lambda data: data + b"\n", False),
    "a zero byte behind": (lambda data: data + b"\0", False),
    "another object behind": (lambda data: data + b"{}", False),
    "a byte order mark": (lambda data: b"\xef\xbb\xbf" + data, False),
    "a comma too many": (opens(b"1,"), False),
    "an unknown field around data": (swap(b'"data":', b'"more":1,"data":'), False),
    "an unknown field of the cursor": (swap(b'"epoch":7', b'"more":1,"epoch":7'), False),
    "another order around data": (
        swap(b'"clock":"synced","round":0', b'"round":0,"clock":"synced"'),
        False,
    ),
    "another order in the cursor": (
        swap(b'"device":"SH-1","epoch":7', b'"epoch":7,"device":"SH-1"'),
        False,
    ),
    "another order in by": (
        swap(b'"role":"device","name":"SH-1"', b'"name":"SH-1","role":"device"'),
        False,
    ),
}


@pytest.mark.parametrize("name", DEVICE)
def test_both_verifiers_say_of_a_form_what_the_page_says(
    name: str, reported: Draft, tmp_path: Path
) -> None:
    form, right = DEVICE[name]
    at = index(reported, "device")
    draft = changed(reported, at, as_bytes(form))
    expected = VALID if right else 1
    assert verdicts(draft, tmp_path / "record") == (expected, expected)


DECISION: dict[str, tuple[Form, bool]] = {
    "as it was": (bytes, True),
    "fields in another order": (turned, True),
    "letters as escapes": (escaped, True),
    "-0": (swap(b'"count":1,', b'"count":-0,'), False),
    "a fraction": (swap(b'"count":1,', b'"count":1.0,'), False),
    "true for 1": (swap(b'"count":1,', b'"count":true,'), False),
    "a name twice": (swap(b'"count":1,', b'"count":1,"count":1,'), False),
    "a space": (swap(b'"rows":', b'"rows": '), False),
    "a default": (swap(b'"count":1,', b'"count":1,"soft":false,'), False),
    "an actor": (swap(b'"event":{', b'"event":{"actor":{"role":"device","name":"shoe"},'), False),
    "an unknown field": (swap(b'"rows":', b'"more":0,"rows":'), False),
}


@pytest.mark.parametrize("kind", ["decision", "snapshot", "opened", "certificate", "closed"])
def test_the_order_of_fields_and_escapes_have_no_meaning_in_any_kind(
    kind: str, reported: Draft, played: Draft, tmp_path: Path
) -> None:
    """But for `code` and `game`."""
    draft = played if kind == "decision" else reported
    for number, form in enumerate((turned, escaped)):
        for at, one in enumerate(draft.entries):
            if one.record["kind"] != kind:
                continue
            other = changed(draft, at, as_bytes(form))
            right = VALID if "opened" not in (kind, *one.record["data"]) else 1
            found = verdicts(other, tmp_path / f"{number}-{at}")
            assert found == (right, right), one.record


@pytest.mark.parametrize("name", DECISION)
def test_a_decision_that_is_replayed_may_have_any_form(
    name: str, played: Draft, tmp_path: Path
) -> None:
    form, right = DECISION[name]
    needed = b'"count":1,'
    at = max(
        at
        for at, one in enumerate(played.entries)
        if one.record["kind"] == "decision" and needed in encode(one.record)
    )
    draft = changed(played, at, as_bytes(form))
    ours, theirs = verdicts(draft, tmp_path / "record")
    assert ours == (VALID if right else 1)
    if name not in ("true for 1", "a default"):  # the rules alone know their values
        assert theirs == ours


def test_an_opened_record_names_its_game_behind_its_code(reported: Draft, tmp_path: Path) -> None:
    """In these bytes, once: the bytes of the game are hashed."""
    at = index(reported, "opened")

    def moved(whole: bytes) -> bytes:
        record = json.loads(whole)
        game = {"game": record["data"]["game"]}
        return encode({**record, "data": {**game, **record["data"]}})

    forms: tuple[tuple[str, Form], ...] = (
        ("moved", moved),
        ("escaped", swap(b'"game":', b'"g\\u0061me":')),
        ("spaced", swap(b'"game":{', b'"game":{ ')),
    )
    for name, form in forms:
        draft = changed(reported, at, as_bytes(form))
        assert verdicts(draft, tmp_path / name) == (1, 1), name


def test_gaming_days_start_at_a_whole_minute(reported: Draft, tmp_path: Path) -> None:
    """So the first record of a boot is of the same day as the next one, a millisecond later."""
    day = utc_date(reported.entries[0].record["utc"])
    before = (date.fromisoformat(day) - timedelta(1)).isoformat()
    named = f'"day":"{before}","utc":'.encode()
    for kind in ("snapshot", "opened"):
        at = [one.record["kind"] for one in reported.entries].index(kind)
        draft = changed(reported, at, as_bytes(swap(b'"utc":', named)))
        assert verdicts(draft, tmp_path / kind) == (1, 1)


def test_no_round_is_begun_before_its_wagers_are_locked(tmp_path: Path) -> None:
    """Also by a program that does not repeat the decisions."""
    pen = started()
    pen.write("note", {"text": "x"}, round=1)
    pen.lock()
    place = pen.end(tmp_path)
    assert (verify(place).code, read_independently(place)["exit"]) == (1, 1)
