#!/usr/bin/env python3
"""Checks the record of a table. Written from FORMAT.md alone; shares no code with what writes one.

One file that needs nothing but Python 3.9, so that it can be carried with a record; signatures need
the package `cryptography`. Give it a copy, or the record of a table that is off: what is being
written at the moment looks like a write that was cut off.

Exit codes: 0 right, 1 something is wrong, 2 usage, 3 right as far as it could be checked.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import os
import re
import struct
import sys
import time
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

VERDICTS = ("right", "wrong", "usage", "right as far as it could be checked")
MAGIC = b"holecard log 1\n\0"
HEADER, SMALLEST, LARGEST = 24, 4096, 1 << 30
HEAD = struct.Struct("<IIQQ32s")
LONGEST, SECTOR, PIECE, SEARCHED = 262144, 512, 1 << 20, 64 << 20
LONGEST_WRITE, WRITTEN_ZEROS, MOST_READ = 4 << 20, 20, 1 << 20  # the last: of another file
MOST_RETIRED = 64 << 20  # of the note of a retirement
LONGEST_NOTE, MOST_SIGNATURES = 131072, 100
KEPT = 16384  # how many trees and unsigned records are remembered, so that memory stays flat
KEPT_CARDS, MOST_TOLD = 64, 20  # the latter of files that are no part of the record
OURS = re.compile(  # what lies in a record's directory
    r"segments(/([0-9]{8}|spare)\.seg)?|tails(/.+\.json(\.new)?)?|lock|keys|index\.db(-wal|-shm)?|"
    r"cosigned(/(0|[1-9][0-9]{0,17})\.note(\.new)?)?|retired(/[0-9]{8}\.note(\.new)?)?"
)
TABLE_PUB = re.compile(
    r"# public key of a table \(Ed25519\); fingerprint ([0-9A-F-]{39})\n([^\n]{1,100})\n?"
)
SECOND, DAY = 1_000_000_000, 86_400_000_000  # of mono, of utc
Json = dict[str, Any]


class Wrong(Exception):
    """The record is not what the page says."""


# --- fields and types: NAME:TYPE in the page's order; ? may be absent, * more may follow ----------

INTEGERS = {"1": (1, 1), "integer": (0, 2**63 - 1), "u32": (0, 2**32 - 1), "card": (0, 51)}
STRINGS = {
    "string": r"[\s\S]*",
    "hex16": "[0-9a-f]{16}",
    "hex64": "[0-9a-f]{64}",
    "hex112": "[0-9a-f]{112}",
    "sealed": "[A-Za-z0-9+/]{138}[AEIMQUYcgkosw048]=",  # base64 of 104 bytes
    "date": "[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])",
    "clock": "synced|unsynced|unknown",
    "role": "dealer|floor|player|surveillance|technician|device",
    "verdict": "torn|accepted",
    "readback": "direct|cached",
}
RECORD = (
    "v:1 table:string boot:hex16 seq:integer day:date utc:integer mono:integer clock:clock "
    "round:integer kind:string by:object sw:hex16 conf:hex16 proc:hex16 cause?:integer "
    "cursor?:object data:object"
)
BY = "role:role name:string seat?:integer"
CURSOR = "device:string epoch:u32 seq:u32 chain:hex16 boot:string|integer t_us:integer"
DATA = {
    "snapshot": "origin:string segment:integer chain:hex64 frontier:hex64[] opened?:object "
    "certificate?:string cursors:object state:object|null",
    "opened": "origin:string software:string sw:hex64 conf:hex64 proc:hex64 code:hex64 game:object "
    "table_key:string last:integer torn:integer readback:readback hole?:string sealed_to?:string "
    "debuggable?:true",
    "certificate": "note:string",
    "checkpoint": "note:string",
    "decision": "event:typed rows:string[] effects:typed[] sealed?:sealed",
    "refusal": "event:typed id:string why:string",
    "device": "what:string *",
    "link": "what:string *",
    "person": "what:string *",
    "clock": "utc_was:integer mono:integer two?:two",
    "tail": "segment:integer offset:integer size:integer sha256:hex64 file:string verdict:verdict "
    "two?:two",
    "witnessed": "note:string",
    "unwitnessed": "since:integer",
    "fault": "what:string detail:any",
    "note": "text:string",
    "closed": "",
}
RETIRED = (
    "segments:integer[] records:integer[] rounds:integer[] days:date[] root:hex64 chain:hex64 "
    "tree:object[] checkpoint:string certificates:string[] hole:object|null drawn:object[] "
    "tails:string[] case:hex64 seal:hex64 utc:integer two:two"
)
STEP, DOWN = "size:integer hashes:hex64[]", "round:integer commitment:hex64 cursor:object|null"
HIDDEN, HASHES = ("HoleDealt", "ErrorCardDrawn"), ("sw", "conf", "proc")


def _fits(value: Any, kind: str) -> bool:
    if "|" in kind:
        return any(_fits(value, one) for one in kind.split("|"))
    if kind.endswith("[]"):
        return isinstance(value, list) and all(_fits(item, kind[:-2]) for item in value)
    if kind == "true":
        return value is True
    if kind == "two":  # different people
        return _fits(value, "string[]") and len(value) == 2 == len(set(value))
    if kind in INTEGERS:
        return type(value) is int and INTEGERS[kind][0] <= value <= INTEGERS[kind][1]
    if kind in STRINGS:
        return isinstance(value, str) and re.fullmatch(STRINGS[kind], value) is not None
    if kind == "typed":
        return isinstance(value, dict) and isinstance(value.get("type"), str)
    return kind == "any" or isinstance(value, dict if kind == "object" else type(None))


@lru_cache(maxsize=64)
def _fields(shape: str) -> tuple[tuple[str, str, str], ...]:
    parted = (field.partition(":") for field in shape.split() if field != "*")
    return tuple((name, name.rstrip("?"), kind) for name, _, kind in parted)


def _shaped(value: Any, what: str, shape: str, ordered: bool = True) -> None:
    """Refuses an object whose fields, their types or their order are not those of the shape."""
    if not isinstance(value, dict):
        raise Wrong(f"{what} is no object")
    known = []
    for name, bare, kind in _fields(shape):
        if bare in value:
            known.append(bare)
            if not _fits(value[bare], kind):
                raise Wrong(f"{what}: {bare} is not of the type {kind}")
        elif bare == name:
            raise Wrong(f"{what}: the field {bare} is missing")
    unknown = [name for name in value if name not in known]
    if unknown and not shape.endswith("*"):
        raise Wrong(f"{what}: the page knows no field {unknown[0]}")
    if ordered and list(value)[: len(known)] != known:
        raise Wrong(f"{what}: the fields are not in the page's order")


STRING, SPACE = re.compile(rb'"(?:[^"\\]|\\.)*"'), re.compile(rb"[ \t\r\n]")
DEEPEST, MOST_DIGITS = 100, 100  # of objects and lists in each other; of any integer


def _members(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Wrong("JSON: a name stands twice in one object")
    return found


def _no_integer(text: str) -> Any:  # one of 64 bits passes
    if not re.fullmatch("-?[0-9]+", text):
        raise Wrong(f"JSON: {text[:40]} is no integer")
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise Wrong(f"JSON: {text[:40]} is too large an integer")


def _whole(text: str) -> int:
    """How many characters the JSON value has that the text begins with; 0 where none is whole."""
    try:
        return json.JSONDecoder().raw_decode(text)[1]
    except ValueError:
        return 0


def _json(data: bytes) -> Any:
    """The JSON, read as strictly as the page has it, but for the range of its integers."""
    bare, deep = STRING.sub(b'"', data), 0
    if SPACE.search(bare):
        raise Wrong("JSON: a space stands between tokens")
    if b"-0" in bare or re.search(rb"[0-9]{%d}" % (MOST_DIGITS + 1), bare):
        raise Wrong(f"JSON: an integer is -0, or has more than {MOST_DIGITS} digits")
    if bare.count(b"[") + bare.count(b"{") > DEEPEST:
        for mark in re.findall(rb"[\[{}\]]", bare):
            deep += 1 if mark in b"[{" else -1
            if deep > DEEPEST:
                raise Wrong("JSON: it is nested too deeply")
    try:
        found = json.loads(
            data.decode(),
            object_pairs_hook=_members,
            parse_float=_no_integer,
            parse_constant=_no_integer,
        )
        if b"\\ud" in data.lower():  # half a character, escaped, is no text
            json.dumps(found, ensure_ascii=False).encode()
    except ValueError as problem:
        raise Wrong(f"JSON: {problem}") from None
    return found


def _record(data: bytes) -> Json:
    """The record, with fields of the page's types."""
    record = _json(data)
    _shaped(record, "the record", RECORD)
    kind, event = record["kind"], record["data"].get("event")
    if kind not in DATA:
        raise Wrong(f"the page knows no kind {kind}")
    if kind != "snapshot" and re.search(rb"[0-9]{19}", data):
        json.loads(data, parse_int=_no_integer)
    _shaped(record["by"], "by", BY)
    if "cursor" in record:
        _shaped(record["cursor"], "cursor", CURSOR)
    _shaped(record["data"], f"the data of {kind}", DATA[kind], ordered=False)
    for serial, cursor in record["data"].get("cursors", {}).items() if kind == "snapshot" else ():
        _shaped(cursor, f"the cursor of {serial}", CURSOR)
        if cursor["device"] != serial:
            raise Wrong(f"the cursor of {serial} is one of {cursor['device']}")
    opened = record["data"] if kind == "opened" else record["data"].get("opened")
    if kind in ("opened", "snapshot") and opened is not None:
        _shaped(opened, "opened", DATA["opened"], ordered=False)
        text, mark = data.decode(), f'"code":"{opened["code"]}","game":'
        _, _, rest = text.partition(mark)
        if text.count(mark) != 1:
            raise Wrong("game does not follow code in opened")
        game = rest[: _whole(rest)].encode()
        if _hash(bytes.fromhex(opened["code"]), game).hex() != opened["proc"]:
            raise Wrong("proc in opened is not the hash of code and game")
    if kind in ("decision", "refusal") and event["type"] in HIDDEN:
        if "card" in event or "opening" in event:
            raise Wrong(f"{event['type']} tells the card that lies face down")
        if kind == "decision":
            _shaped(event, event["type"], "type:string commitment:hex64 *", ordered=False)
    return dict(record)


def _utc(us: int) -> str:
    if us >= 253402300800_000000:  # the year 10000
        return f"{us} us"
    return time.strftime(f"%Y-%m-%d %H:%M:%S.{us % 1_000_000:06} UTC", time.gmtime(us // 1_000_000))


# --- hashes, keys and notes -----------------------------------------------------------------------


def _hash(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def _grown(tree: tuple[bytes, ...], size: int, leaf: bytes) -> tuple[bytes, ...]:
    """The roots of the whole subtrees over `size` leaves and one more, largest first."""
    while size & 1:
        tree, leaf, size = tree[:-1], _hash(b"\1", tree[-1], leaf), size >> 1
    return (*tree, leaf)


def _stepped(tree: tuple[bytes, ...], size: int, step: Json) -> tuple[bytes, ...]:
    """The same, grown to the step's size by the largest whole subtrees between the two."""
    hashes = deque(step["hashes"])
    while size < step["size"] and hashes:
        leaves = 1 << (step["size"] - size).bit_length() - 1
        leaves = min(leaves, size & -size) if size else leaves
        tree = _grown(tree, size // leaves, bytes.fromhex(hashes.popleft()))
        size += leaves
    if size != step["size"] or hashes:
        raise Wrong("the steps of its tree do not go on")
    return tree


def _root(tree: tuple[bytes, ...]) -> bytes:
    root = tree[-1] if tree else _hash()
    for left in reversed(tree[:-1]):
        root = _hash(b"\1", left, root)
    return root


def _unbase64(text: str) -> bytes:
    """The bytes; none where the text is not exactly the base64 of some."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        return b""
    return data if base64.b64encode(data).decode() == text else b""


def _ed25519() -> Callable[[bytes, bytes, bytes], bool] | None:
    """Whether a key made a signature of a text; None where this machine cannot tell."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        return None

    def made(public: bytes, signature: bytes, text: bytes) -> bool:
        try:
            Ed25519PublicKey.from_public_bytes(public).verify(signature, text)
        except (InvalidSignature, ValueError):
            return False
        return True

    return made


ED25519 = _ed25519()
SIGNED, COSIGNED = 1, 4


@dataclass(frozen=True)
class Key:
    name: str
    public: bytes

    def id(self, kind: int) -> bytes:
        return _hash(self.name.encode(), b"\n", bytes([kind]), self.public)[:4]


def _key(text: str, *kinds: int) -> Key:
    name, _, rest = text.partition("+")
    key_id, _, public = rest.partition("+")
    data = _unbase64(public)
    named = name and name.isprintable() and " " not in name
    if not named or len(data) != 33 or data[0] not in kinds:
        raise Wrong("a verifier key is NAME+KEY ID+BASE64 of an Ed25519 key")
    key = Key(name, data[1:])
    if key.id(data[0]).hex() != key_id:
        raise Wrong(f"the id of the key of {name} is {key.id(data[0]).hex()}, not {key_id}")
    return key


def _given(text: str, *kinds: int) -> Key:
    """A key as it is, or in a file: a verifier key, or table.pub, whose name is the record's."""
    if not os.path.isfile(text):
        return _key(text, *kinds)
    try:
        held = Path(text).read_bytes()[:4096].decode()
    except (OSError, UnicodeDecodeError) as problem:
        raise Wrong(f"{text}: cannot be read: {problem}") from None
    found = TABLE_PUB.fullmatch(held)
    if not found or SIGNED not in kinds or COSIGNED in kinds:
        return _key(held.strip(), *kinds)
    public = _unbase64(found[2])
    marks = _hash(public)[:16].hex().upper()
    if len(public) != 32 or found[1] != "-".join(re.findall("....", marks)):
        raise Wrong(f"{text}: is damaged: its key is not the one of its fingerprint")
    return Key("", public)


@dataclass(frozen=True)
class Note:
    what: str
    text: str
    signatures: list[tuple[str, bytes]]

    def prove(self, key: Key, kind: int = SIGNED) -> int:
        """Refuses a note that the key has not signed; when a witness did so, in seconds."""
        mine, text, seconds = (key.name, key.id(kind)), self.text, 0
        found = [data[4:] for name, data in self.signatures if (name, data[:4]) == mine]
        if not found:
            raise Wrong(f"{self.what} is not signed by {key.name} (key id {mine[1].hex()})")
        for data in found:
            if kind == COSIGNED:
                seconds = int.from_bytes(data[:8], "big")
                text = f"cosignature/v1\ntime {seconds}\n{self.text}"
            signature = data[8:] if kind == COSIGNED else data
            if ED25519 and not ED25519(key.public, signature, text.encode()):
                raise Wrong(f"{self.what}: the signature of {key.name} is false")
        return seconds


def _note(note: str, what: str, lines: int) -> Note:
    text, gap, rest = note.rpartition("\n\n")
    if not gap or not rest.endswith("\n") or text.count("\n") != lines - 1:
        raise Wrong(f"{what} is no signed note of {lines} lines")
    if len(note.encode()) > LONGEST_NOTE or rest.count("\n") > MOST_SIGNATURES:
        raise Wrong(f"{what} is too long")
    if re.search("[\0-\t\v-\x1f]", note):
        raise Wrong(f"{what} has a control character")
    signatures = []
    for line in rest[:-1].split("\n"):
        found = re.fullmatch("\u2014 ([^\\s+]+) ([^ ]+)", line)
        if not found or len(_unbase64(found[2])) < 5:
            raise Wrong(f"{what}: a line of its signatures is none")
        signatures.append((found[1], _unbase64(found[2])))
    return Note(what, text + "\n", signatures)


def _number(text: str, what: str) -> int:
    if not re.fullmatch("0|[1-9][0-9]{0,18}", text) or int(text) >= 2**63:
        raise Wrong(f"{what} is no number")
    return int(text)


def _checkpoint(text: str, what: str) -> tuple[Note, str, int, bytes]:
    """The note, and the origin, size and root in it."""
    note = _note(text, what, 3)
    origin, size, root = note.text[:-1].split("\n")
    if len(_unbase64(root)) != 32:
        raise Wrong(f"{what}: the root is not base64 of 32 bytes")
    return note, origin, _number(size, f"{what}: the size"), _unbase64(root)


def _bound(table: str, cursor: Json) -> bytes:
    """What is hashed before the opening of a card."""
    numbers = struct.pack("<II", cursor["epoch"], cursor["seq"])
    return b"\0".join((b"holecard-v1", table.encode(), cursor["device"].encode(), numbers))


# --- segments, frames and tails -------------------------------------------------------------------


@dataclass(frozen=True)
class Frame:
    seq: int
    durable: int
    chain: bytes
    record: bytes
    end: int


LIKE_A_HEAD = re.compile(rb"(?s)(?!\0\0\0)(?=..[\0-\4]\0)")
TEXT = re.compile(rb"[\x20-\xff]*")


@dataclass(frozen=True)
class Segment:
    number: int
    file: BinaryIO
    size: int

    def at(self, offset: int, size: int) -> bytes:
        self.file.seek(offset)
        return self.file.read(size)

    def check_header(self) -> None:
        head = self.at(0, HEADER)
        if len(head) < HEADER or head[:16] != MAGIC:
            raise Wrong("the segment does not begin as one of a record")
        number, size = struct.unpack_from("<II", head, 16)
        if number != self.number:
            raise Wrong(f"the segment's header says that it is number {number}")
        if not SMALLEST <= size <= LARGEST or size != self.size:
            raise Wrong(f"the segment has {self.size} bytes, its header says {size}")

    def frame(self, offset: int) -> Frame | str:
        """The whole frame that stands there, or why none does."""
        head = self.at(offset, HEAD.size)
        if len(head) < HEAD.size:
            return "something stands where no frame has room"
        n, crc, seq, durable, chain = HEAD.unpack(head)
        if not 1 <= n <= LONGEST:
            return f"the frame's length is {n}, not 1 to {LONGEST}"
        record = self.at(offset + HEAD.size, n)
        if len(record) < n:
            return "the frame runs past the end of the segment"
        if zlib.crc32(record, zlib.crc32(head[8:], zlib.crc32(head[:4]))) != crc:
            return "the frame is damaged: its CRC is false"
        return Frame(seq, durable, chain, record, offset + HEAD.size + n)

    def used(self, start: int) -> int:
        """From where on all is zero; `start` at the least."""
        for at in range(start + (self.size - start) // PIECE * PIECE, start - 1, -PIECE):
            data = self.at(at, PIECE).rstrip(b"\0")
            if data:
                return at + len(data)
        return start

    def heads(self, start: int, end: int, seq: int) -> Iterator[tuple[int, int, int, int]]:
        """Offset, length, seq, durable of what looks like a head that knew of more than `seq`."""
        most = seq + 1 + (end - start) // HEAD.size
        for at in range(start, end, PIECE):
            data = self.at(at, PIECE + HEAD.size)
            for match in LIKE_A_HEAD.finditer(data, 0, min(PIECE, end - at) + 3):
                if match.start() + HEAD.size <= len(data):
                    n, _, its_seq, durable, _ = HEAD.unpack_from(data, match.start())
                    if 1 <= n <= LONGEST and seq < durable < its_seq <= most:
                        yield at + match.start(), n, its_seq, durable

    def tail(self, start: int, end: int, seq: int) -> str:
        """Case 2 or 4 of the bytes past the last good frame, in words; none for a write cut off."""
        effort = SEARCHED + 8 * (end - start)  # what is made to be slow is unexplained indeed
        for offset, n, its_seq, durable in self.heads(start, end, seq):
            effort -= HEAD.size + n
            if effort < 0:
                break
            if isinstance(self.frame(offset), Frame):
                what = f"at offset {offset} stands record {its_seq}, written when {durable} was"
                return f"{what} on the disk: records that were acknowledged cannot be read"
        torn = effort >= 0 and end - start <= LONGEST_WRITE and self.torn(start, end, seq)
        return "" if torn else "no write that was cut off leaves this: the tail is unexplained"

    def torn(self, start: int, end: int, seq: int) -> bool:
        """Case 3: frames that follow, whole pieces of them zero, or all from some byte on."""
        offset, due = start, seq + 1
        while offset < end:
            frame = self.frame(offset)
            if isinstance(frame, Frame):
                # The first is whole, and was no good; those behind it must come in their turn.
                wrong = offset == start or frame.seq != due or frame.durable > seq
                stop = -1 if wrong else frame.end
            else:
                stop = self.cut(offset, end, due, seq)
            if stop < 0:
                return False
            if stop == offset:
                break  # where the frame ends cannot be told
            offset, due = stop, due + 1
        data = self.at(start, end - start)
        for zeros in re.finditer(rb"\0{40,}(?=[^\0])", data):
            first, last = start + zeros.start(), start + zeros.end()
            before = 0 if first == start else -first % SECTOR
            if max(before, last % SECTOR) > WRITTEN_ZEROS:
                return False
        return True

    def cut(self, offset: int, end: int, due: int, seq: int) -> int:
        """Where the frame stops that this is left of: `offset` if untold, -1 if of none."""
        head, edge = self.at(offset, HEAD.size).ljust(HEAD.size, b"\0"), SECTOR - offset % SECTOR
        n, _, _, durable, _ = HEAD.unpack(head)
        body, stop, wanted = offset + HEAD.size, offset + HEAD.size + n, struct.pack("<Q", due)
        shown = [part for part in ((0, edge), (edge, HEAD.size)) if any(head[slice(*part)])]
        for part in shown:
            first, last = max(part[0], 8), min(part[1], 16, end - offset)
            if first < last and head[first:last] != wanted[first - 8 : last - 8]:
                return -1
        told = (0, edge) in shown and (edge >= 4 or len(shown) == 2) and end - offset >= 4
        if durable > seq or n > LONGEST or stop > self.size or (told and not n):
            return -1
        if not told or end < body or (edge < HEAD.size and len(shown) < 2):
            return offset
        if body < end and self.at(body, 1) not in (b"{", b"\0"):
            return -1
        zero = end < stop
        for at in (offset, *range(offset // SECTOR * SECTOR + SECTOR, min(stop, end), SECTOR)):
            data = self.at(at, min(SECTOR - at % SECTOR, stop - at))
            zero = zero or not any(data)
            text = data[max(0, body - at) : max(0, end - at)]
            if any(data) and not TEXT.fullmatch(text):
                return -1
        whole = _whole(self.at(body, n).partition(b"\0")[0].decode(errors="replace"))
        return stop if zero and not whole else -1


# --- the record -----------------------------------------------------------------------------------


@dataclass
class Boot:
    """One start of the controller, as far as it was read."""

    name: str
    last: int  # the last record before it
    end: tuple[int, int]  # the segment and the offset where that one ends
    hashes: list[str]
    mono: int
    timed: bool = False  # whether a record of it has a pace to keep
    kind: str = ""
    durable: int = 0
    opened: int = 0  # -1 where `opened` may stand in a segment that is not here
    key: Key | None = None
    torn: int = 0
    starts: tuple[int, int] = (0, DAY - 1)  # when its gaming day may start, after midnight


def _day_starts(starts: tuple[int, int], day: str, utc: int) -> tuple[int, int]:
    """The first and the last microsecond after midnight at which the gaming day may start."""
    try:
        since = utc - (date.fromisoformat(day) - date(1970, 1, 1)).days * DAY
    except ValueError:
        raise Wrong(f"the gaming day {day} is no date") from None
    found = max(starts[0], since - DAY + 1), min(starts[1], since)
    if found[0] > found[1]:
        raise Wrong(f"the gaming day is {day}, utc is of another one")
    return found


class Reading:
    """What was read of a record so far: what the next record must go on from."""

    def __init__(self, root: Path, table_key: Key | None, given: Path | None) -> None:
        self.root, self.table_key, self.proven = root, table_key, table_key is not None
        self.given, self.held = given, False  # the checkpoint of a witness; whether it is of this
        self.seen: deque[tuple[int, str, Path]] = deque()  # by witnesses: size, name, file
        self.met: list[Note] = []  # those of them that the record has come to
        self.keys: dict[bytes, Key] = {}  # of all boots, by their ids
        self.origin, self.chain, self.utc = "", b"", -1
        self.timed: Json = {"utc": 0, "kind": "clock"}  # the last record that is no snapshot
        self.segments = self.number = self.offset = self.base = self.seq = self.round = 0
        self.began = -1  # `mono` of the decision that locked the wagers
        self.end, self.signed, self.decided = (0, HEADER), 0, False
        self.over = False  # the last record is the checkpoint of a boot that was closed
        self.trees: deque[tuple[bytes, ...]] = deque([()], KEPT)
        self.unsigned: deque[tuple[int, int]] = deque(maxlen=KEPT)  # seq and mono in this boot
        self.cursors: Json = {}
        self.adopted: set[str] = set()  # devices whose next cursor may be any
        self.opened: Json | None = None
        self.certificate: str | None = None
        self.boot: Boot | None = None
        self.boots: set[str] = set()
        # The hole card on the table: round, commitment and what is hashed before the opening;
        # the latter by commitment for cards drawn in error, which may become hole cards.
        self.hole: tuple[int, str, bytes] = (-1, "", b"")
        self.drawn: dict[str, bytes] = {}
        self.told: set[str] = set()  # files of what was set aside
        self.retired: list[tuple[str, Json, Note]] = []  # of each retirement: name, what it says
        self.ends = self.kept = 0  # the last segment and record that were retired
        self.grown_to = 0  # how many records were there when they were
        self.old: dict[int, bytes] = {}  # roots of the tree that were kept of it, by size
        self.words: list[str] = []
        self.remarks: Counter[str] = Counter()
        self.unchecked: Counter[str] = Counter()

    def remark(self, words: str, unchecked: bool = False) -> None:
        (self.unchecked if unchecked else self.remarks)[words] += 1

    def read(self, tell: Callable[[str], None]) -> None:
        """All there is, in order; the first thing that is wrong ends it."""
        names = sorted(path.name for path in (self.root / "segments").glob("*.seg"))
        numbers = [int(name[:8]) for name in names if re.fullmatch(r"[0-9]{8}\.seg", name)]
        self.read_retired()
        over = [number for number in numbers if 0 < number <= self.ends]
        if over:
            self.remark(f"segments {over[0]} to {over[-1]} are left of what was retired")
        if over and over != list(range(1, self.ends + 1)) and over != numbers:
            numbers = numbers[len(over) :]
        for path in (self.root / "cosigned").glob("*.note"):
            if re.fullmatch("0|[1-9][0-9]{0,17}", path.stem):
                self.seen.append((int(path.stem), f"cosigned/{path.name}", path))
        self.seen = deque(sorted(self.seen))
        for number in numbers:
            self.number = self.number + 1 if self.segments else max(1, number)
            self.offset = 0
            path = self.root / "segments" / f"{number:08}.seg"
            if number != self.number or not path.is_file():
                raise Wrong("the segment is missing")
            tell(f"segment {number} of {numbers[-1]}")
            with path.open("rb", PIECE) as file:
                size = os.fstat(file.fileno()).st_size
                self.read_segment(Segment(number, file, size), number == numbers[-1])
            self.segments += 1
        if not self.origin:
            raise Wrong("there is no record")
        if self.seen:
            size, what, _ = self.seen[0]
            raise Wrong(f"cut off: {what} is of {size} records, {self.seq} are here")
        self.prove_met()
        if self.retired and not self.words:  # it begins further on, or ends before that
            self.prove_retired(joined=False)
        if self.seq < self.grown_to:
            raise Wrong(f"cut off: {self.grown_to} records are told of, {self.seq} are here")
        self.look_for_strangers()
        if self.boot and self.boot.kind != "closed":
            self.remark("it does not end with closed: it runs, lost its power, or more follows")

    def read_retired(self) -> None:
        """What stands for segments that were taken out; proven once the table's key is known."""
        for path in sorted((self.root / "retired").glob("*.note")):
            if not re.fullmatch(r"[0-9]{8}\.note", path.name):
                continue
            name = f"retired/{path.name}"
            line, _, rest = _text(path, MOST_RETIRED).partition("\n")
            try:
                said = json.loads(line, object_pairs_hook=_members, parse_float=_no_integer)
            except ValueError as problem:
                raise Wrong(f"{name}: JSON: {problem}") from None
            _shaped(said, name, RETIRED)
            for shape, parts in ((STEP, said["tree"]), (DOWN, [*said["drawn"], said["hole"]])):
                for part in parts:
                    if part is not None:
                        _shaped(part, name, shape)
                        if part.get("cursor"):
                            _shaped(part["cursor"], name, CURSOR)
            pairs = (said["segments"], said["records"], said["rounds"], said["days"])
            if any(len(pair) != 2 for pair in pairs) or not said["tree"]:
                raise Wrong(f"{name}: a first and a last are two, and its tree has a step")
            note = _note(rest, name, 3)
            title, _, digest = note.text[:-1].split("\n")
            if title != "holecard retired 1" or digest != _hash(line.encode()).hex():
                raise Wrong(f"{name} is not what was signed")
            segment, seq = self.ends + 1, self.kept + 1
            if said["segments"][0] != segment or said["records"][0] != seq:
                raise Wrong(f"{name} does not go on from segment {segment - 1}, record {seq - 1}")
            if int(path.stem) != said["segments"][1]:
                raise Wrong(f"{name} is of other segments than its name says")
            self.ends, self.kept = said["segments"][1], said["records"][1]
            self.grown_to = said["tree"][-1]["size"]
            self.retired.append((name, said, note))

    def prove_retired(self, joined: bool = True) -> None:
        """Holds all that was retired against the table's key and what the record has come to,
        where the last of it ends."""
        tree: tuple[bytes, ...] = ()
        size = 0
        for name, said, note in self.retired:
            if note.text.split("\n")[1] != self.origin or not self.table_key:
                raise Wrong(f"{name} is of another record")
            note.prove(self.table_key)
            last = said["records"][1]
            if last not in [step["size"] for step in said["tree"]]:
                raise Wrong(f"{name}: its tree has no step at record {last}")
            grown = tree
            for step in said["tree"]:
                grown, size = _stepped(grown, size, step), step["size"]
                if size <= last:
                    self.old[size], tree = _root(grown), grown
            if self.old[last].hex() != said["root"]:
                raise Wrong(f"{name}: its tree has another root at record {last}")
            for text in said["certificates"]:
                self.certified(text)
            self.sign_over(name, said["checkpoint"], size, _root(grown))
            size = last
            (first, last), who = said["records"], " and ".join(said["two"])
            what = (
                f"records {first} to {last} were retired on {_utc(said['utc'])[:19]} UTC by {who}"
            )
            self.words.append(f"{what}, root {said['root']}; case sha256 {said['case']}")
            self.told.update(said["tails"])
        if joined and (self.trees[-1], self.chain.hex()) != (tree, said["chain"]):
            raise Wrong("the record does not go on from what was retired")

    def sign_over(self, name: str, text: str, size: int, root: bytes) -> None:
        """Refuses a checkpoint over another tree, or that no boot has signed whose key is known."""
        note, origin, its_size, its_root = _checkpoint(text, f"{name}: its checkpoint")
        if (origin, its_size, its_root) != (self.origin, size, root):
            raise Wrong(f"{note.what} is over another tree")
        ours = [data[:4] for who, data in note.signatures if who == origin]
        keys = [key for key in map(self.keys.get, ours) if key]
        if not keys:
            raise Wrong(f"{note.what} is signed by no boot of the record")
        for key in keys:
            note.prove(key)

    def look_for_strangers(self) -> None:
        """What lies in the record's directory and is named neither by the page nor by a tail."""
        folders = ("*", "segments/*", "tails/*", "cosigned/*")
        paths = (path for folder in folders for path in self.root.glob(folder))
        names = sorted(path.relative_to(self.root).as_posix() for path in paths)
        found = [name for name in names if not OURS.fullmatch(name) and name not in self.told]
        for name in found[:MOST_TOLD]:
            self.remark(f"{name} is no part of the record")

    def read_segment(self, segment: Segment, last: bool) -> None:
        segment.check_header()
        self.offset = HEADER
        while True:
            frame = segment.frame(self.offset)
            why = frame if isinstance(frame, str) else self.refused(frame)
            if isinstance(frame, str) or why:
                break
            self.take(frame)
            self.offset = frame.end
            self.end = (self.number, self.offset)
            self.meet()
        used = segment.used(self.offset)
        if used == self.offset:
            if self.offset == HEADER and not last:
                raise Wrong("the segment holds no record")
            return
        if not last:
            raise Wrong(why)
        tail = segment.tail(self.offset, used, self.seq)
        if tail:
            raise Wrong(f"{why}; {tail}")
        if self.over and not self.begins_boot(segment, used):
            raise Wrong("the record is closed, and what is behind its end is no start of a boot")
        self.remark(f"a write was cut off at offset {self.offset}: nothing acknowledged is missing")

    def begins_boot(self, segment: Segment, used: int) -> bool:
        """Whether another boot has written the first bytes behind the end: at least the length and
        the seq of a frame, and the beginning of its record as far as it is there."""
        edge = self.offset + SECTOR - self.offset % SECTOR
        piece = segment.at(self.offset, min(used, edge) - self.offset)
        n, seq = (int.from_bytes(piece[at], "little") for at in (slice(4), slice(8, 16)))
        table = json.dumps(self.origin[9:-17], ensure_ascii=False)
        start, shown = f'{{"v":1,"table":{table},"boot":"'.encode(), piece[HEAD.size :]
        ours = self.boot.name.encode() if self.boot else b""
        begins = start.startswith(shown[: len(start)]) and shown[len(start) :][:16] != ours
        return 1 <= n <= LONGEST and seq == self.seq + 1 and begins

    def refused(self, frame: Frame) -> str:
        """Why a whole frame is not the next one; nothing where it is."""
        if not self.origin:
            self.begin(frame)
        if frame.seq != self.seq + 1:
            return f"the frame's seq is {frame.seq} where {self.seq + 1} is due"
        if frame.durable >= frame.seq:
            return f"durable before is {frame.durable}, not less than seq"
        if frame.chain != _hash(self.chain, _hash(b"\0", frame.record)):
            return "the chain does not go on from the record before"
        return ""

    def begin(self, frame: Frame) -> None:
        """Takes from the first snapshot what there is to go on from."""
        record = _record(frame.record)
        data = record["data"]
        if record["kind"] != "snapshot":
            raise Wrong("the first record of the segment is no snapshot")
        if not re.fullmatch(r"holecard/[^\s+]+/[0-9a-f]{16}", data["origin"]):
            raise Wrong("the origin is not holecard/TABLE/16 HEX")
        self.origin = data["origin"]
        self.chain = _hash(b"holecard-record/1\n", self.origin.encode())
        if self.number > 1:
            joins = self.ends == self.number - 1
            if not joins:
                self.remark(f"from segment {self.number}: what came before is not here", True)
            self.base = self.seq = frame.seq - 1
            self.trees[0] = tuple(bytes.fromhex(root) for root in data["frontier"])
            if self.base < 1 or f"{self.base:b}".count("1") != len(self.trees[0]):
                raise Wrong("the snapshot's frontier does not fit its seq")
            if "opened" not in data or "certificate" not in data:
                raise Wrong("the snapshot has not both opened and certificate")
            self.chain, self.decided = bytes.fromhex(data["chain"]), data["state"] is not None
            self.cursors, self.opened = data["cursors"], data["opened"]
            self.adopted = set(self.cursors)
            self.certificate, self.hole = data["certificate"], (record["round"], "", b"")
            self.trust(data["opened"]["table_key"])
            if joins:
                self.prove_retired()
                self.lay_down(record["table"], self.retired[-1][1])

    def lay_down(self, table: str, said: Json) -> None:
        """The cards that lie face down where the record begins."""
        for card in (*said["drawn"], said["hole"]):
            cursor = card and card["cursor"]
            to_hash = _bound(table, cursor) if cursor else b""
            if card is said["hole"] and card:
                self.hole = (card["round"], card["commitment"], to_hash)
            elif card:
                self.drawn[card["commitment"]] = to_hash

    def take(self, frame: Frame) -> None:
        """A record in its place: holds it against what was before, and goes on."""
        record = _record(frame.record)
        kind, cursor = record["kind"], record.get("cursor")
        if record["seq"] != frame.seq or record["table"] != self.origin[9:-17]:
            raise Wrong("the record's seq or table is not that of the frame or the origin")
        if "cause" in record and not 1 <= record["cause"] < frame.seq:
            raise Wrong(f"cause {record['cause']} is no record before")
        if (kind == "snapshot") != (self.offset == HEADER):
            raise Wrong(f"the record is a {kind}: a snapshot begins a segment, and only that")
        boot = self.booted(record, frame.durable)
        self.check_round(record)
        boot.starts = _day_starts(boot.starts, record["day"], record["utc"])
        if kind in CHECKS:
            CHECKS[kind](self, boot, record, record["data"])
        adopts = kind == "link" and record["data"].get("what") == "adopted"
        if cursor:
            self.advance(cursor, adopts)
        if adopts:
            self.adopted.add(str(record["data"].get("device")))
        boot.mono, boot.durable = record["mono"], frame.durable
        if boot.kind != "closed":
            boot.kind = kind
        self.over = kind == "checkpoint" and boot.kind == "closed"
        if kind != "checkpoint":
            self.unsigned.append((frame.seq, record["mono"]))
        self.trees.append(_grown(self.trees[-1], self.seq, _hash(b"\0", frame.record)))
        self.seq, self.chain = frame.seq, frame.chain
        self.utc = record["utc"]

    def check_round(self, record: Json) -> None:
        """Refuses a round that is not the one that goes on or begins."""
        kind, number = record["kind"], record["round"]
        effects = record["data"]["effects"] if kind == "decision" else ()
        locked = [one.get("round") for one in effects if one["type"] == "WagersLocked"]
        due = self.round + len(locked) if self.seq > self.base or self.number == 1 else number
        if kind != "decision" and not self.decided:
            due = max(due, number)  # the first decision shows whether that is right
        if locked:
            self.began = record["mono"]
        with_it = record["mono"] == self.began and kind not in ("decision", "refusal")
        if with_it and number == due - 1:
            pass  # what was written together with that decision
        elif number != due or locked not in ([], [number]):
            raise Wrong(f"the record is of round {number}, not of round {due}")
        self.round = due

    def advance(self, cursor: Json, adopts: bool) -> None:
        """Refuses a cursor that does not follow the last one of its device by one."""
        device, last = cursor["device"], self.cursors.get(cursor["device"])
        known = last and last["epoch"] == cursor["epoch"] and not adopts
        if last and known and device not in self.adopted and cursor["seq"] != last["seq"] + 1:
            raise Wrong(f"the cursor of {device} does not go on from {last['seq']}")
        self.adopted.discard(device)
        self.cursors[device] = cursor

    def booted(self, record: Json, durable: int) -> Boot:
        """The boot of the record, which may begin with it."""
        boot, kind, utc, mono = self.boot, record["kind"], record["utc"], record["mono"]
        hashes = [record[name] for name in HASHES]
        if boot is None or boot.name != record["boot"]:
            if record["boot"] in self.boots:
                raise Wrong(f"the boot {record['boot']} was over")
            self.boots.add(record["boot"])
            self.unsigned.clear()
            boot = self.boot = Boot(record["boot"], self.seq, self.end, hashes, mono)
        if mono < boot.mono:
            raise Wrong(f"mono goes back from {boot.mono} to {mono}")
        if kind != "snapshot":
            was = self.timed
            leap = abs((utc - was["utc"]) * 1000 - (mono - was["mono"])) if boot.timed else 0
            if (utc < was["utc"] or leap > SECOND // 2) and "clock" not in (kind, was["kind"]):
                raise Wrong("utc leaves the pace of mono, or goes back, without a clock record")
            self.timed, boot.timed = record, True
        if hashes != boot.hashes:
            raise Wrong("sw, conf or proc changes within a boot")
        if not boot.opened and kind not in ("opened", "snapshot", "clock"):
            raise Wrong(f"a boot begins with {kind}, not with opened")
        if boot.kind == "closed" and kind not in ("checkpoint", "snapshot", "clock", "witnessed"):
            raise Wrong(f"{kind} follows on closed")
        if boot.torn and kind in ("decision", "refusal"):
            raise Wrong("no tail record says what became of the bytes that were set aside")
        if durable < boot.durable:
            raise Wrong(f"durable before goes back from {boot.durable} to {durable}")
        return boot

    def trust(self, table_key: str) -> None:
        key = _key(table_key, SIGNED)
        if key.name != f"{self.origin}/table":
            raise Wrong(f"the table's key is named {key.name}")
        if self.table_key and not self.table_key.name:
            self.table_key = Key(key.name, self.table_key.public)
        self.table_key = self.table_key or key
        if key != self.table_key:
            raise Wrong("the table's key is not the one " + ("given" if self.proven else "before"))

    def hold(self, what: str, origin: str, size: int, root: bytes) -> bool:
        """Refuses a checkpoint that is not of this record; whether that could be told."""
        back = self.seq - size
        if origin != self.origin:
            raise Wrong(f"{what} is of another record, {origin}")
        if back < 0:
            raise Wrong(f"{what} is of {size} records, {self.seq} stand before it")
        known = _root(self.trees[-1 - back]) if back < len(self.trees) else self.old.get(size)
        if known is None:
            self.remark("a checkpoint is of records too far back", True)
        elif known != root:
            raise Wrong(f"{what}: the first {size} records have another root: rewritten")
        return known is not None

    def meet(self) -> None:
        """Holds the record against what was seen or kept of it when it had this size."""
        if self.retired and self.seq == self.kept and not self.words:
            self.prove_retired()
        while self.seen and self.seen[0][0] <= self.seq:
            size, what, path = self.seen.popleft()
            note, origin, its_size, root = _checkpoint(_text(path), what)
            if its_size != size:
                raise Wrong(f"{what} is of {its_size} records")
            if self.hold(what, origin, size, root):
                self.held |= path == self.given
                self.met.append(note)

    def prove_met(self) -> None:
        """Refuses what a witness saw where no boot of the table has signed it."""
        for note in self.met:
            ours = [data[:4] for name, data in note.signatures if name == self.origin]
            for key in map(self.keys.get, ours or [b""]):
                if not key:
                    raise Wrong(f"{note.what} is not signed by a boot of the record")
                note.prove(key)

    # What the kinds of records ask for.

    def snapshot(self, boot: Boot, record: Json, data: Json) -> None:
        due = {"origin": self.origin, "segment": self.number, "chain": self.chain.hex()}
        due["frontier"] = [root.hex() for root in self.trees[-1]]
        due.update(opened=self.opened, certificate=self.certificate, cursors=self.cursors)
        for name, value in due.items():
            if json.dumps(data.get(name), sort_keys=True) != json.dumps(value, sort_keys=True):
                raise Wrong(f"the snapshot's {name} is not what came before it")
        if (data["state"] is not None) != self.decided:
            raise Wrong("the snapshot's state is null after a decision, or is not before the first")
        if self.segments == 0 and self.opened:
            name, seq, key = self.certified(data["certificate"])
            boot.opened = -1
            if name == boot.name:
                boot.opened, boot.key = seq, key
                self.check_hashes(boot, self.opened)

    def check_hashes(self, boot: Boot, opened: Json) -> None:
        if boot.hashes != [opened[name][:16] for name in HASHES]:
            raise Wrong("sw, conf or proc is not the beginning of that in opened")

    def open(self, boot: Boot, record: Json, data: Json) -> None:
        if boot.opened > 0:
            raise Wrong("the boot is opened twice")
        if data["last"] != boot.last:
            raise Wrong(f"opened found {data['last']} as the last record, it was {boot.last}")
        if data["origin"] != self.origin:
            raise Wrong("opened names another origin")
        self.check_hashes(boot, data)
        self.trust(data["table_key"])
        self.opened, boot.opened, boot.torn = data, record["seq"], data["torn"]

    def certified(self, text: str) -> tuple[str, int, Key]:
        note = _note(text, "the certificate", 5)
        title, origin, name, public, seq = note.text[:-1].split("\n")
        if title != "holecard boot key 1" or origin != self.origin or len(_unbase64(public)) != 32:
            raise Wrong("the certificate is none of a boot of this record")
        if self.table_key:
            note.prove(self.table_key)
        key = Key(self.origin, _unbase64(public))
        self.keys[key.id(SIGNED)] = key
        return name, _number(seq, "the certificate's seq"), key

    def certify(self, boot: Boot, record: Json, data: Json) -> None:
        name, seq, key = self.certified(data["note"])
        if boot.key or name != boot.name or boot.opened not in (seq, -1):
            raise Wrong("the certificate is not the one of this boot and its opened")
        self.certificate, boot.key = data["note"], key

    def checkpoint(self, boot: Boot, record: Json, data: Json) -> None:
        note, origin, size, root = _checkpoint(data["note"], "the checkpoint")
        if not boot.key:
            raise Wrong("a checkpoint stands before the certificate of its boot")
        note.prove(boot.key)
        self.hold(note.what, origin, size, root)
        self.signed = max(self.signed, size)
        if self.unsigned and record["mono"] - self.unsigned[0][1] > SECOND:
            self.remark("a checkpoint stands more than a second after what it signs")
        while self.unsigned and self.unsigned[0][0] <= size:
            self.unsigned.popleft()

    def decide(self, boot: Boot, record: Json, data: Json) -> None:
        event, self.decided = data["event"], True
        if event["type"] in HIDDEN:
            self.deal(record, event, data.get("sealed"))
        elif "sealed" in data:
            raise Wrong(f"sealed does not belong to {event['type']}")
        elif event["type"] == "HoleRevealed":
            self.reveal(record, event)

    def deal(self, record: Json, event: Json, sealed: str | None) -> None:
        digest, cursor, to_hash = event["commitment"], record.get("cursor"), b""
        if sealed and cursor:
            to_hash = _bound(record["table"], cursor)
        elif event["type"] == "HoleDealt" and (digest in self.drawn or self.base):
            to_hash = self.drawn.pop(digest, b"")
        else:
            raise Wrong(f"{event['type']} has not both sealed and cursor")
        if event["type"] == "HoleDealt":
            self.hole = (record["round"], digest, to_hash)
        else:
            self.drawn[digest] = to_hash
            if len(self.drawn) > KEPT_CARDS:
                del self.drawn[next(iter(self.drawn))]

    def reveal(self, record: Json, event: Json) -> None:
        _shaped(event, "HoleRevealed", "type:string card:card opening:hex112 *", ordered=False)
        dealt, digest, to_hash = self.hole
        opening = bytes.fromhex(event["opening"])
        if dealt != record["round"]:
            raise Wrong("a hole card is revealed where no commitment lies on the table")
        if not to_hash:
            self.remark("a hole card's commitment lies in a segment that is not here", True)
        elif _hash(to_hash, opening).hex() != digest:
            raise Wrong("the opening does not give the commitment of the hole card")
        if opening[32 + 6] != event["card"]:
            raise Wrong(f"the hole card is {event['card']}, in the opening {opening[32 + 6]}")

    def set_aside(self, boot: Boot, record: Json, data: Json) -> None:
        place, (segment, end) = (data["segment"], data["offset"]), boot.end
        untold = self.base and boot.last == self.base and not boot.torn  # opened is not here
        if not untold and not 0 < data["size"] <= boot.torn:
            raise Wrong(f"the tail record is of {data['size']} bytes, opened of {boot.torn}")
        if segment and not (segment, end) <= place <= (segment + 1, LARGEST):
            raise Wrong(f"the tail record is of {place}, the records before end at {boot.end}")
        if ("two" in data) != (data["verdict"] == "accepted"):
            raise Wrong("two people are named where they accept a tail, and only there")
        name = data["file"].rpartition("/")[2]
        if data["file"] != f"tails/{name}" or name in ("", ".", "..") or "\0" in name:
            raise Wrong("the tail's file is none in tails")
        self.told.add(f"tails/{name}")
        boot.torn, path = max(0, boot.torn - data["size"]), self.root / "tails" / name
        try:
            kept = json.loads(_text(path, MOST_READ + min(data["size"], LARGEST) * 4 // 3))
        except ValueError:
            raise Wrong(f"tails/{name} is not JSON") from None
        _shaped(kept, f"tails/{name}", "bytes:string *", ordered=False)
        lost = _unbase64(kept["bytes"])
        said = {field: value for field, value in kept.items() if field != "bytes"}
        if {**said, "file": data["file"]} != data:
            raise Wrong(f"tails/{name} says something else than the tail record")
        if len(lost) != data["size"] or hashlib.sha256(lost).hexdigest() != data["sha256"]:
            raise Wrong(f"tails/{name} does not hold what was set aside")

    def witnessed(self, boot: Boot, record: Json, data: Json) -> None:
        note, origin, size, root = _checkpoint(data["note"], "the witnessed checkpoint")
        if not any(len(found) == 76 for _, found in note.signatures):
            raise Wrong("the witnessed checkpoint has no countersignature")
        self.hold(note.what, origin, size, root)


CHECKS: dict[str, Callable[[Reading, Boot, Json, Json], None]] = {
    "snapshot": Reading.snapshot,
    "opened": Reading.open,
    "certificate": Reading.certify,
    "checkpoint": Reading.checkpoint,
    "decision": Reading.decide,
    "tail": Reading.set_aside,
    "witnessed": Reading.witnessed,
}


# --- the command ----------------------------------------------------------------------------------


def _text(path: Path, most: int = MOST_READ) -> str:
    if not path.is_file():
        raise Wrong(f"{path.parent.name}/{path.name} is gone, or no file")
    with path.open("rb") as file:
        try:
            return file.read(most).decode()
        except UnicodeDecodeError:
            raise Wrong(f"{path.name} is no text") from None


def _plain(words: str) -> str:
    """Without what a terminal would take as a command."""
    return "".join(x if x.isprintable() else f"\\x{ord(x):02x}" for x in words)


def verify(reading: Reading, witness: Key | None, tell: Callable[[str], None]) -> Json:
    """What a reading of the whole record comes to."""
    bad, seen_at, name = None, 0, "the witness's checkpoint"
    try:
        if reading.given and witness:
            note, _, size, _ = _checkpoint(_text(reading.given), name)
            seen_at = note.prove(witness, COSIGNED)
            reading.seen.append((size, name, reading.given))
        reading.read(tell)
    except (Wrong, OSError, RecursionError) as problem:
        what = f"cannot be read: {problem}" if isinstance(problem, OSError) else str(problem)
        what = "JSON: it is nested too deeply" if isinstance(problem, RecursionError) else what
        bad = {
            "segment": f"{reading.number:08}.seg" if reading.number else None,
            "offset": reading.offset,
            "seq": reading.seq + 1,
            "round": reading.round,
            "what": _plain(what),
            "last_good_seq": reading.seq,
            "last_good_utc": _utc(reading.utc) if reading.utc >= 0 else None,
        }
    if not ED25519:
        reading.remark("SIGNATURES WERE NOT CHECKED: Python's package cryptography is absent", True)
    key, code = reading.table_key, 1 if bad else 3 if reading.unchecked else 0
    return {
        "origin": _plain(reading.origin),
        "segments": reading.segments,
        "first_seq": reading.base + 1,
        "last_seq": reading.seq,
        "boots": len(reading.boots),
        "signed_through": reading.signed,
        "table_key": _plain(f"{key.name}+{key.id(SIGNED).hex()}") if key else None,
        "table_key_proven": reading.proven,
        "held_by_witness_at": _utc(seen_at * 1_000_000) if reading.held else None,
        "retired": [_plain(words) for words in reading.words],
        "remarks": {_plain(words): count for words, count in reading.remarks.items()},
        "not_checked": {_plain(words): count for words, count in reading.unchecked.items()},
        "wrong": bad,
        "verdict": VERDICTS[code],
        "exit": code,
    }


def _show(found: Json) -> None:
    lists, bad = ("remarks", "not_checked"), found["wrong"]
    for name, value in found.items():
        if name not in (*lists, "retired", "wrong", "verdict", "exit"):
            print(f"{name.replace('_', ' ')}: {'none' if value in (None, '') else value}")
    for words in found["retired"]:
        print(f"retired: {words}")
    if not found["table_key_proven"]:
        print("THE TABLE'S KEY IS NOT PROVEN: it is the record's own word (--table-key)")
    for name in lists:
        for words, count in found[name].items():
            print(f"{name.replace('_', ' ')}: {words}" + f" ({count} times)" * (count > 1))
    if bad:
        where = f"segment {bad['segment']}, offset {bad['offset']}, record {bad['seq']}"
        print(f"wrong: {where}, round {bad['round']}: {bad['what']}")
        print(f"last good: record {bad['last_good_seq']} of {bad['last_good_utc']}")
    print(found["verdict"].upper())


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("record", type=Path, metavar="RECORD_DIR")
    parser.add_argument("--table-key", metavar="VKEY|FILE", help="the table's key, from elsewhere")
    parser.add_argument("--checkpoint", type=Path, metavar="FILE", help="what a witness saw")
    parser.add_argument("--witness-key", metavar="VKEY|FILE", help="the key of that witness")
    parser.add_argument("--json", action="store_true", help="tell it in JSON")
    args = parser.parse_args(arguments)
    if (args.checkpoint is None) != (args.witness_key is None):
        parser.error("--checkpoint and --witness-key go together")
    if not (args.record / "segments").is_dir():
        parser.error(f"{args.record}: no record, for it has no folder segments")
    if args.checkpoint and not args.checkpoint.is_file():
        parser.error(f"--checkpoint: {args.checkpoint} is no file")
    try:
        table_key = _given(args.table_key, SIGNED) if args.table_key else None
        witness = _given(args.witness_key, SIGNED, COSIGNED) if args.witness_key else None
    except Wrong as problem:
        parser.error(str(problem))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    shown = sys.stderr is not None and sys.stderr.isatty()

    def tell(words: str) -> None:
        if shown:
            print(f"\r{words}", end="", file=sys.stderr, flush=True)

    found = verify(Reading(args.record, table_key, args.checkpoint), witness, tell)
    tell(" " * 40 + "\r")
    _show(found) if not args.json else print(json.dumps(found))
    return int(found["exit"])


if __name__ == "__main__":
    sys.exit(main())
