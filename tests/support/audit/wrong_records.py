"""Records that break one rule of FORMAT.md each, as a table of writers by group and name."""

from collections.abc import Callable
from typing import Any

from tests.support.audit.tools.by_page import (
    GAME,
    ORIGIN,
    TABLE,
    WITNESS,
    Json,
    Pen,
    Signer,
    b64,
    commitment,
    opening,
    sha,
    started,
)

Write = Callable[[Pen], object]
TABLE_KEY, ROOT = f"{ORIGIN}/table", b64(sha(b"another"))


def note(**more: Any) -> Write:
    return lambda pen: pen.write("note", {"text": "x"}, **more)


def mangled(old: str, new: str) -> Write:
    def write(pen: Pen) -> None:
        pen.write("note", {"text": "x"}, lambda data: data.replace(old.encode(), new.encode(), 1))

    return write


def raw(data: bytes) -> Write:
    return lambda pen: pen.put(data)


def kind(name: str, **data: object) -> Write:
    return lambda pen: pen.write(name, data)


def adopted(**more: object) -> Write:
    """Two people accept the log of a device."""
    return kind("link", **{"what": "adopted", "device": "SHOE-9", "two": ["Ann", "Bo"], **more})


def again(device: str) -> Write:
    """The last cursor of a device, unchanged."""
    return lambda pen: pen.write("device", {"what": "button"}, cursor=pen.cursors[device])


def cursors(*seqs: int, epoch: int = 3) -> Write:
    def write(pen: Pen) -> None:
        for seq in seqs:
            cursor = pen.cursor("SHOE-9", seq=seq, epoch=epoch)
            pen.write("device", {"what": "button"}, cursor=cursor)

    return write


def clock(utc: int, mono: int) -> Write:
    def write(pen: Pen) -> None:
        pen.utc, pen.mono = pen.utc + utc, pen.mono + mono
        pen.write("note", {"text": "x"})

    return write


def segment(spoil: Callable[[Json], object]) -> Write:
    """A new segment, with a snapshot that is spoilt."""

    def write(pen: Pen) -> None:
        pen.snapshots = spoil
        pen.sync()
        pen.next_segment()

    return write


def spoilt(name: str, value: object) -> Write:
    return segment(lambda data: data.update({name: value}))


def boot(**data: Any) -> Write:
    return lambda pen: pen.open(**data)


def reopened(then: Callable[[Pen, int], object]) -> Write:
    """A new boot, whose certificate is what `then` writes."""
    return lambda pen: then(pen, pen.open())


def certificate(title: str, origin: str = ORIGIN, public: bytes = b"", seq: str = "14") -> Write:
    """A new boot with a certificate of these lines, signed by the table's key."""

    def write(pen: Pen) -> None:
        pen.open()
        lines = [title, origin, pen.boot, b64(public or pen.key.public), seq]
        pen.write("certificate", {"note": pen.table_key.sign("\n".join(lines) + "\n")})

    return write


def both(*writes: Write) -> Write:
    return lambda pen: [write(pen) for write in writes]


def older(write: Write) -> Write:
    """What follows is of version 1."""

    def begin(pen: Pen) -> None:
        pen.version = 1
        write(pen)

    return begin


def back(pen: Pen) -> None:
    pen.utc -= 2_000


def next_round(pen: Pen) -> None:
    pen.lock()


def signed(text: str) -> Write:
    """A checkpoint whose text is this."""
    return lambda pen: pen.checkpoint(pen.key.sign(text))


def dealt(**event: object) -> Write:
    def write(pen: Pen) -> None:
        cursor = pen.cursor()
        right = {"type": "HoleDealt", "commitment": commitment(cursor, opening(5))}
        pen.decide({**right, **event}, cursor=cursor, sealed=b64(bytes(104)))

    return write


def turned(card: int, opened: bytes | None = None, rounds: int = 0) -> Write:
    """A hole card, 12, that is revealed as this one."""

    def write(pen: Pen) -> None:
        pen.hole(card=12)
        for _ in range(rounds):
            pen.lock()
        pen.reveal(card, opened)

    return write


HIDDEN: Json = {"type": "ErrorCardDrawn", "commitment": "ab" * 32}
ASIDE: Json = {"segment": 1, "offset": 9, "size": 5, "sha256": "0" * 64, "file": "x"}
NOT_SO = "is not what came before it"

JSON: dict[str, tuple[Write, str]] = {
    "no JSON": (raw(b"{nothing}"), "JSON: "),
    "no UTF-8": (raw(b'{"v":"\xff"}'), "JSON: 'utf-8' codec"),
    "half a character": (mangled('"x"', '"\\ud800"'), "JSON: 'utf-8' codec"),
    "a control character": (mangled('"x"', '"\t"'), "JSON: "),
    "a name twice": (mangled('"v":2', '"v":2,"v":2'), "a name is repeated in one object"),
    "a name twice inside": (mangled('"x"', '"x","text":"x"'), "a name is repeated in one object"),
    "a fraction": (mangled('"round":1', '"round":1.0'), "1.0 is no integer"),
    "an exponent": (mangled('"round":1', '"round":1e0'), "1e0 is no integer"),
    "a fraction in data": (kind("device", what="x", more=[1.5]), "1.5 is no integer"),
    "64 bits in data": (kind("device", what="x", n=2**63), "9223372036854775808 is too large"),
    "less than that": (kind("fault", what="x", detail=-(2**63) - 1), "is too large an integer"),
    "not a number": (mangled('"round":1', '"round":NaN'), "NaN is no integer"),
    "a space": (mangled('"v":2,', '"v":2, '), "there is whitespace between tokens"),
    "a newline": (mangled('"x"}}', '"x"}}\n'), "there is whitespace between tokens"),
    "a list": (raw(b"[]"), "the page knows no such version of a record"),
    "nesting": (raw(b'{"a":' * 5000), "JSON: it is nested too deeply"),
}
FIELDS: dict[str, tuple[Write, str]] = {
    "one too many": (note(more=1), "the page does not know the record: field more"),
    "one missing": (mangled('"clock":"synced",', ""), "the field clock is missing"),
    "another order": (
        mangled(f'"v":2,"boot":"{1:016x}"', f'"boot":"{1:016x}","v":2'),
        "the fields are not in the page's order",
    ),
    "another version": (note(v=3), "the page knows no such version of a record"),
    "true for 1": (note(v=True), "the page knows no such version of a record"),
    "a table": (note(table=TABLE), "the field table belongs to version 1"),
    "a hash": (note(sw="a" * 16), "the field sw belongs to version 1"),
    "more than 65535 bytes": (
        lambda pen: pen.write("note", {"text": "x" * 65400}),
        "bytes, more than 65535",
    ),
    "another seq": (note(seq=1), "the record's seq or table is not that"),
    "no date": (note(day="2026-13-01"), "day is not of the type date"),
    "less than nothing": (note(utc=-1), "utc is not of the type integer"),
    "more than 63 bits": (note(mono=2**63), "mono is not of the type integer"),
    "an unknown clock": (note(clock="fast"), "clock is not of the type clock"),
    "an unknown kind": (kind("sermon"), "the page does not know kind sermon"),
    "an unknown role": (note(by={"role": "guest", "name": "Al"}), "by: role is not of the type"),
    "nobody": (note(by={"role": "floor"}), "by: the field name is missing"),
    "a seat in words": (note(by={"role": "player", "name": "Al", "seat": "2"}), "by: seat is not"),
    "data of another kind": (kind("clock", text="x"), "the field utc_was is missing"),
    "one person": (kind("clock", utc_was=1, mono=1, two=["Al", "Al"]), "two is not of the type"),
    "no two": (kind("clock", utc_was=1, mono=1, two=[]), "two is not of the type two"),
    "data too many": (
        kind("closed", text="x"),
        "the page does not know the data of closed: field text",
    ),
    "an untyped event": (kind("refusal", event={}, id="a", why="b"), "event is not of the type"),
    "untold rows": (
        kind("decision", event={"type": "A"}, rows=[1], effects=[]),
        "rows is not of the type string[]",
    ),
    "a cause to come": (lambda pen: note(cause=pen.seq + 1)(pen), "cause 14 is no record before"),
    "a cause of none": (note(cause=0), "cause 0 is no record before"),
    "adopted by nobody": (kind("link", what="adopted", device="SHOE-9"), "adopted: the field two"),
    "adopted by one": (adopted(two=["Ann"]), "adopted: two is not of the type two"),
    "adopted by one, twice": (adopted(two=["Ann"] * 2), "adopted: two is not of the type two"),
    "adopted by three": (adopted(two=["A", "B", "C"]), "adopted: two is not of the type two"),
    "adopted by numbers": (adopted(two=[1, 2]), "adopted: two is not of the type two"),
    "adopted, and no device": (adopted(device=["SHOE-9"]), "adopted: device is not of the type"),
    "a cursor too large": (cursors(2**32), "cursor: seq is not of the type u32"),
}
ORDER: dict[str, tuple[Write, str]] = {
    "mono goes back": (clock(0, -2_000_000), "mono goes back"),
    "utc goes back": (clock(-2_000, 0), "utc leaves the pace of mono, or goes back"),
    "utc leaps": (clock(600_000, 0), "utc leaves the pace of mono, or goes back"),
    "mono leaps": (clock(0, 600_000_000), "utc leaves the pace of mono, or goes back"),
    "utc goes back at a boot": (both(back, boot()), "utc leaves the pace of mono, or goes back"),
    "version 1 after 2": (older(Pen.open), "version 1 follows on version 2"),
    "version 1 in a boot of 2": (older(note()), "v, sw, conf or proc changes within a boot"),
    "no opened": (note(boot="f" * 16), "a boot begins with note, not with opened"),
    "a boot again": (both(boot(), note(boot=f"{1:016x}")), "the boot 0000000000000001 was over"),
    "opened twice": (
        lambda pen: pen.write("opened", {**(pen.opened or {}), "last": 0}),
        "the boot is opened twice",
    ),
    "after closed": (both(kind("closed"), note()), "note follows on closed"),
    "a snapshot amid": (lambda pen: pen.snapshot(), "a snapshot begins a segment, and only that"),
    "a segment without": (
        both(Pen.segment, lambda pen: pen.put(pen.line(pen.record("note", {"text": "x"})))),
        "the record is a note: a snapshot begins a segment",
    ),
    "a round back": (note(round=0), "the record is of round 0, not of round 1"),
    "a round ahead": (note(round=2), "the record is of round 2, not of round 1"),
    "the round before, in the next segment": (
        both(
            Pen.lock,
            Pen.next_segment,
            lambda pen: pen.write("note", {"text": "x"}, round=pen.round - 1, mono=pen.mono),
        ),
        "the record is of round 1, not of round 2",
    ),
    "a round that nothing locks": (
        lambda pen: pen.decide({"type": "CardDrawn"}, round=2),
        "the record is of round 2, not of round 1",
    ),
    "a round that is left out": (
        lambda pen: pen.decide(
            {"type": "CardDrawn"}, effects=[{"type": "WagersLocked", "round": 3}], round=3
        ),
        "the record is of round 3, not of round 2",
    ),
    "a round of another number": (
        lambda pen: pen.decide(
            {"type": "CardDrawn"}, effects=[{"type": "WagersLocked", "round": 7}], round=2
        ),
        "the record is of round 2, not of round 2",
    ),
    "a day that there is not": (note(day="2026-02-30"), "the gaming day 2026-02-30 is no date"),
    "a day a year back": (note(day="2025-01-01"), "the gaming day is 2025-01-01"),
    "a day too late": (note(day="2026-01-03"), "the gaming day is 2026-01-03"),
    "a cursor again": (cursors(80, 80), "the cursor of SHOE-9 does not go on from 80"),
    "a cursor back": (cursors(80, 79), "the cursor of SHOE-9 does not go on from 80"),
    "a cursor left out": (cursors(80, 82), "the cursor of SHOE-9 does not go on from 80"),
    "another log": (
        both(cursors(80), cursors(81, epoch=4)),
        "the epoch of SHOE-9 is another, and two people did not adopt it",
    ),
    "another log, for another device": (
        both(cursors(80), adopted(device="SHOE-8"), cursors(81, epoch=4)),
        "the epoch of SHOE-9 is another, and two people did not adopt it",
    ),
    "another log in the next segment": (
        both(cursors(80), Pen.next_segment, cursors(81, epoch=4)),
        "the epoch of SHOE-9 is another, and two people did not adopt it",
    ),
    "an adoption that served in the segment before": (
        both(
            *(cursors(80), adopted(), Pen.next_segment, again("SHOE-9")),
            *(Pen.next_segment, cursors(5)),
        ),
        "the cursor of SHOE-9 does not go on from 80",
    ),
    "the first log again after an adoption": (
        both(cursors(80), adopted(), cursors(5, epoch=4), cursors(81)),
        "the epoch of SHOE-9 is another, and two people did not adopt it",
    ),
    "a tail of nothing": (
        kind("tail", **ASIDE, verdict="torn"),
        "the tail record is of 5 bytes, opened of 0",
    ),
}
SNAPSHOTS: dict[str, tuple[Write, str]] = {
    "origin": (spoilt("origin", ORIGIN[:-1] + "0"), f"the snapshot's origin {NOT_SO}"),
    "number": (spoilt("segment", 5), f"the snapshot's segment {NOT_SO}"),
    "chain": (spoilt("chain", "0" * 64), f"the snapshot's chain {NOT_SO}"),
    "frontier": (spoilt("frontier", ["0" * 64]), f"the snapshot's frontier {NOT_SO}"),
    "certificate": (spoilt("certificate", "another"), f"the snapshot's certificate {NOT_SO}"),
    "cursors": (spoilt("cursors", {}), f"the snapshot's cursors {NOT_SO}"),
    "no opened": (segment(lambda data: data.pop("opened")), f"the snapshot's opened {NOT_SO}"),
    "no state": (spoilt("state", None), "the snapshot's state is null after a decision"),
    "another's cursor": (
        segment(lambda data: data.update(cursors={"S-1": data["cursors"]["SHOE-1"]})),
        "the cursor of S-1 is one of SHOE-1",
    ),
    "a bad cursor": (spoilt("cursors", {"S-1": {}}), "the cursor of S-1: the field device is"),
}
KEYS: dict[str, tuple[Write, str]] = {
    "another last": (boot(last=3), "opened found 3 as the last record, it was 13"),
    "another origin": (boot(origin=ORIGIN[:-1] + "0"), "opened names another origin"),
    "no vocabulary": (boot(vocabulary=0), "opened: vocabulary is not of the type positive"),
    "no release": (boot(release="x"), "release is not of the type hex64"),
    "what runs": (boot(runs="bytes"), "runs is not of the type runs"),
    "another game": (boot(game={**GAME, "decks": 8}), "proc in opened is not the hash of code"),
    "another code": (boot(code="0" * 64), "proc in opened is not the hash of code and game"),
    "another table's key": (
        boot(table_key=Signer(TABLE_KEY, "x").vkey()),
        "key is not the one bef",
    ),
    "another name of it": (boot(table_key=WITNESS.vkey()), "the table's key is named witness.ex"),
    "no key": (boot(table_key="none"), "a verifier key is NAME+KEY ID+BASE64"),
    "a stranger's certificate": (
        reopened(lambda pen, seq: pen.certify(seq, by=Signer(TABLE_KEY, "x"))),
        f"the certificate is not signed by {TABLE_KEY}",
    ),
    "another boot's": (
        reopened(lambda pen, seq: pen.certify(seq, boot="f" * 16)),
        "the certificate is not the one of this boot and its opened",
    ),
    "another opened's": (
        reopened(lambda pen, seq: pen.certify(seq - 1)),
        "the certificate is not the one of this boot and its opened",
    ),
    "another title": (certificate("holecard boot key 2"), "the certificate is none of a boot of"),
    "another record's certificate": (
        certificate("holecard boot key 1", ORIGIN[:-1] + "0"),
        "the certificate is none of a boot of this record",
    ),
    "a short boot key": (
        certificate("holecard boot key 1", public=b"short"),
        "the certificate is none of a boot of this record",
    ),
    "no seq": (certificate("holecard boot key 1", seq="x"), "the certificate's seq is no number"),
    "a second one": (lambda pen: pen.certify(2), "the certificate is not the one of this boot"),
    "no certificate": (
        reopened(lambda pen, seq: pen.checkpoint()),
        "a checkpoint stands before the certificate of its boot",
    ),
    "a checkpoint by another key": (
        lambda pen: pen.checkpoint(pen.note(by=Signer(ORIGIN, "x"))),
        "the checkpoint is not signed by",
    ),
    "a false signature": (
        lambda pen: pen.checkpoint(pen.note(5).replace("\n5\n", "\n6\n")),
        f"the checkpoint: the signature of {ORIGIN} is false",
    ),
    "another root": (
        signed(f"{ORIGIN}\n13\n{ROOT}\n"),
        "the checkpoint: the first 13 records have another root: rewritten",
    ),
    "another record's": (
        signed(f"{ORIGIN[:-1]}0\n13\n{ROOT}\n"),
        f"the checkpoint is of another record, {ORIGIN[:-1]}0",
    ),
    "what comes": (
        signed(f"{ORIGIN}\n14\n{ROOT}\n"),
        "the checkpoint is of 14 records, 13 stand before it",
    ),
    "a short root": (signed(f"{ORIGIN}\n13\nAAAA\n"), "the root is not base64 of 32 bytes"),
    "no number": (signed(f"{ORIGIN}\n013\n{ROOT}\n"), "the checkpoint: the size is no number"),
    "no note": (kind("checkpoint", note="x"), "the checkpoint is no signed note of 3 lines"),
    "no witness": (
        lambda pen: pen.write("witnessed", {"note": pen.note()}),
        "the witnessed checkpoint has no countersignature",
    ),
    "a witness of another": (
        lambda pen: pen.write(
            "witnessed", {"note": WITNESS.cosign(pen.key.sign(f"{ORIGIN}\n4\n{ROOT}\n"))}
        ),
        "the witnessed checkpoint: the first 4 records have another root",
    ),
}
HOLE: dict[str, tuple[Write, str]] = {
    "card told": (dealt(card=12), "HoleDealt tells the card that lies face down"),
    "opening told": (dealt(opening="00"), "HoleDealt tells the card that lies face down"),
    "card told in a refusal": (
        kind("refusal", event={"type": "HoleDealt", "card": 1}, id="a", why="b"),
        "HoleDealt tells the card that lies face down",
    ),
    "no commitment": (dealt(commitment=""), "HoleDealt: commitment is not of the type hex64"),
    "not sealed": (
        lambda pen: pen.decide({**HIDDEN, "type": "HoleDealt"}, cursor=pen.cursor()),
        "HoleDealt has not both sealed and cursor",
    ),
    "no cursor": (
        lambda pen: pen.decide(HIDDEN, sealed=b64(bytes(104))),
        "ErrorCardDrawn has not both sealed and cursor",
    ),
    "sealed in part": (
        lambda pen: pen.decide(HIDDEN, sealed=b64(bytes(103))),
        "sealed is not of the type sealed",
    ),
    "another card sealed": (
        lambda pen: pen.decide({"type": "CardDealt"}, sealed=b64(bytes(104))),
        "sealed does not belong to CardDealt",
    ),
    "never dealt": (
        both(next_round, Pen.reveal),
        "a hole card is revealed where no commitment lies on the table",
    ),
    "of the round before": (
        turned(12, rounds=1),
        "a hole card is revealed where no commitment lies on the table",
    ),
    "another opening": (turned(12, opening(12, nonce=8)), "does not give the commitment"),
    "exchanged": (turned(13), "the opening does not give the commitment of the hole card"),
    "misread": (turned(13, opening(12)), "the hole card is 13, in the opening 12"),
    "none of 52": (turned(52), "HoleRevealed: card is not of the type card"),
    "an opening cut short": (turned(12, b"short"), "opening is not of the type hex112"),
}
OLD: dict[str, tuple[Write, str]] = {
    "one missing": (mangled(f'"table":"{TABLE}",', ""), "the field table is missing"),
    "no day": (mangled('"day":"2026-01-01",', ""), "the field day is missing"),
    "another table": (note(table="BJ-08"), "the record's seq or table is not that"),
    "a hash in capitals": (note(sw="A" * 16), "sw is not of the type hex16"),
    "other software": (note(sw="a" * 16), "sw, conf or proc changes within a boot"),
    "another hash": (boot(sw="0" * 64), "sw, conf or proc is not the beginning of that in opened"),
    "a vocabulary": (boot(vocabulary=1), "the data of opened: the page knows no field vocabulary"),
    "no actor": (
        kind("decision", event={"type": "A"}, rows=[], effects=[]),
        "an event has an actor in records of version 1",
    ),
    "another actor": (
        lambda pen: pen.decide({"type": "A", "actor": {"role": "floor", "name": "Al", "seat": 0}}),
        "the actor of the event is not by of the record",
    ),
}
"""Errors in records of version 1."""
GROUPS = {"json": JSON, "fields": FIELDS, "order": ORDER, "snapshots": SNAPSHOTS}
GROUPS |= {"keys": KEYS, "hole": HOLE, "old": OLD}
CASES = [(group, name) for group, cases in GROUPS.items() for name in cases]
ONLY_WITH_REPLAY = {
    ("fields", "an untyped event"),
    ("fields", "untold rows"),
    ("hole", "another card sealed"),
    ("old", "no actor"),
    ("old", "another actor"),
}
"""Errors in the data of decisions, which only a verification with replay decodes."""


def filled(version: int = 2) -> Pen:
    """A valid record of 12 records."""
    pen = started(1 << 18, rounds=1, version=version)
    while pen.seq < 13:
        pen.write("note", {"text": "more"})
    return pen


def broken(group: str, name: str) -> Pen:
    """A record whose last record breaks one rule."""
    write, _ = GROUPS[group][name]
    pen = filled(1 if group == "old" else 2)
    write(pen)
    return pen
