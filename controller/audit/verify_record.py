#!/usr/bin/env python3
"""Verifies the record of a table: bytes, chain, signatures, cards, and every payment.

Written from FORMAT.md and the rule sheets alone; it shares no code with the controller. Each hand
and side bet is settled again from the recorded cards, wagers, decisions and options. One file for
Python 3.9, so that it can be shipped with a record; signatures need the package `cryptography`.
Verify a copy, or a record that no controller writes: a write in progress looks like an incomplete
one.

Exit codes: 0 right, 1 something is wrong, 2 usage, 3 right as far as it could be checked, 74 the
output cannot be written, 130 interrupted, 141 the reader of the output has gone.
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
from copy import copy, deepcopy
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

VERDICTS = ("right", "wrong", "usage", "right as far as it could be checked")
MAGIC = b"holecard log 1\n\0"
HEADER, SMALLEST, LARGEST = 24, 4096, 1 << 30
HEAD = struct.Struct("<IIQQ32s")
LONGEST, SECTOR, PIECE, SEARCHED = 262144, 512, 1 << 20, 64 << 20
LONGEST_RECORD, VOCABULARY = 65535, 1  # of version 2; the kinds and fields that are known here
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
SECOND, MINUTE, DAY = 1_000_000_000, 60_000_000, 86_400_000_000  # of mono, of utc
Json = dict[str, Any]


class Wrong(Exception):
    """The record contradicts FORMAT.md."""


# --- fields and types: NAME:TYPE in the page's order; ? may be absent, * more may follow ----------

INTEGERS = {
    "positive": (1, 2**63 - 1),
    "int": (-(2**63), 2**63 - 1),
    "integer": (0, 2**63 - 1),
    "u32": (0, 2**32 - 1),
    "card": (0, 51),
}
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
    "runs": "source|compiled",
}
RECORDS = {  # by version
    1: "v:integer table:string boot:hex16 seq:integer day:date utc:integer mono:integer "
    "clock:clock round:integer kind:string by:object sw:hex16 conf:hex16 proc:hex16 cause?:integer "
    "cursor?:object data:object",
    2: "v:integer boot:hex16 seq:integer day?:date utc:integer mono:integer clock:clock "
    "round:integer kind:string by?:object cause?:integer cursor?:object data:object",
}
BY, PERSON = "role:role name:string seat?:integer", "role:role name:string seat?:int"
CURSOR = "device:string epoch:u32 seq:u32 chain:hex16 boot:integer t_us:integer"
DATA = {
    "snapshot": "origin:string segment:integer chain:hex64 frontier:hex64[] opened?:object "
    "certificate?:string cursors:object state:object|null",
    "opened": "origin:string software:string sw:hex64 conf:hex64 proc:hex64 code:hex64 game:object "
    "table_key:string last:integer torn:integer readback:readback hole?:string sealed_to?:string",
    "opened 2": "origin:string software:string sw:hex64 conf:hex64 proc:hex64 code:hex64 "
    "game:object table_key:string last:integer torn:integer readback:readback hole?:string "
    "sealed_to?:string vocabulary:positive release:hex64 dependencies:hex64 runs:runs "
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
    types = {"object": dict, "bool": bool}
    return kind == "any" or isinstance(value, types.get(kind, type(None)))


@lru_cache(maxsize=256)
def _fields(shape: str) -> tuple[tuple[str, str, str], ...]:
    parted = (field.partition(":") for field in shape.split() if field != "*")
    return tuple((name, name.rstrip("?"), kind) for name, _, kind in parted)


def _shaped(
    value: Any, what: str, shape: str, ordered: bool = True, later: list[str] | None = None
) -> None:
    """Refuses an object whose fields, their types or their order are not those of the shape; fields
    that it does not know go to `later`, if given."""
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
    if unknown and later is not None:
        later += [f"{what}: field {name}" for name in unknown if not shape.endswith("*")]
    elif unknown and not shape.endswith("*"):
        raise Wrong(f"{what}: the page knows no field {unknown[0]}")
    if ordered and list(value)[: len(known)] != known:
        raise Wrong(f"{what}: the fields are not in the page's order")


STRING, SPACE = re.compile(rb'"(?:[^"\\]|\\.)*"'), re.compile(rb"[ \t\r\n]")
DEEPEST, MOST_DIGITS = 100, 100  # of objects and lists in each other; of any integer


def _members(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Wrong("JSON: a name is repeated in one object")
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
        raise Wrong("JSON: there is whitespace between tokens")
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


def _versioned(record: Any, data: bytes, later: list[str]) -> None:
    """Refuses a record whose fields are not those of its version; adds what has a default."""
    version = record.get("v") if isinstance(record, dict) else None
    if type(version) is not int or version not in RECORDS:
        raise Wrong("the page knows no such version of a record")
    if version > 1 and len(data) > LONGEST_RECORD:
        raise Wrong(f"the record has {len(data)} bytes, more than {LONGEST_RECORD}")
    _shaped(record, "the record", RECORDS[version], later=later if version > 1 else None)
    old = [name for name in ("table", *HASHES) if name in record and version > 1]
    if old:
        raise Wrong(f"the field {old[0]} belongs to version 1")
    record.setdefault("by", {"role": "device", "name": "controller"})
    record.setdefault("day", _date(record["utc"]))


def _record(data: bytes, later: list[str]) -> Json:
    """The record, with fields of the page's types; `later` gets what the page does not know."""
    record = _json(data)
    _versioned(record, data, later)
    kind, event, version = record["kind"], record["data"].get("event"), record["v"]
    if kind not in DATA or kind == "opened 2":
        later.append(f"kind {kind}")
    if kind != "snapshot" and re.search(rb"[0-9]{19}", data):
        json.loads(data, parse_int=_no_integer)
    _shaped(record["by"], "by", BY)
    if "cursor" in record:
        _shaped(record["cursor"], "cursor", CURSOR)
    shape = DATA.get("opened 2" if kind == "opened" and version > 1 else kind, "*")
    more = later if version > 1 else None
    _shaped(record["data"], f"the data of {kind}", shape, ordered=False, later=more)
    for serial, cursor in record["data"].get("cursors", {}).items() if kind == "snapshot" else ():
        _shaped(cursor, f"the cursor of {serial}", CURSOR, ordered=False)
        if cursor["device"] != serial:
            raise Wrong(f"the cursor of {serial} is one of {cursor['device']}")
    if kind in ("opened", "snapshot"):
        _check_opened(record["data"] if kind == "opened" else record["data"].get("opened"), data)
    if kind == "link" and record["data"]["what"] == "adopted":
        _shaped(record["data"], "adopted", "device:string two:two *", ordered=False)
    if kind in ("decision", "refusal") and ("actor" in event) != (version == 1):
        raise Wrong("an event has an actor in records of version 1, and only there")
    if version == 1 and event and event["actor"] != {"seat": 0, **record["by"]}:
        raise Wrong("the actor of the event is not by of the record")
    if kind in ("decision", "refusal") and event["type"] in HIDDEN:
        if "card" in event or "opening" in event:
            raise Wrong(f"{event['type']} tells the card that lies face down")
        if kind == "decision":
            _shaped(event, event["type"], "type:string commitment:hex64 *", ordered=False)
    return dict(record)


def _check_opened(opened: Any, data: bytes) -> None:
    """Refuses the data of an opened record, or that in a snapshot, where it is not of one shape."""
    if opened is None:
        return
    shape = DATA["opened 2" if "vocabulary" in opened else "opened"]
    _shaped(opened, "opened", shape, ordered=False, later=[])
    text, mark = data.decode(), f'"code":"{opened["code"]}","game":'
    _, _, rest = text.partition(mark)
    if text.count(mark) != 1:
        raise Wrong("game does not follow code in opened")
    game = rest[: _whole(rest)].encode()
    if _hash(bytes.fromhex(opened["code"]), game).hex() != opened["proc"]:
        raise Wrong("proc in opened is not the hash of code and game")


def _date(utc: int) -> str:
    """The date of a time; empty after the year 9999."""
    days = utc // DAY
    return (date(1970, 1, 1) + timedelta(days)).isoformat() if days < 2932897 else ""


def _utc(us: int) -> str:
    if us >= 253402300800_000000:  # the year 10000
        return f"{us} us"
    return time.strftime(f"%Y-%m-%d %H:%M:%S.{us % 1_000_000:06} UTC", time.gmtime(us // 1_000_000))


# --- hashes, keys and notes -----------------------------------------------------------------------


def _hash(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def _grown(tree: tuple[bytes, ...], size: int, leaf: bytes) -> tuple[bytes, ...]:
    """The frontier after one more leaf: the roots of the complete subtrees, largest first."""
    while size & 1:
        tree, leaf, size = tree[:-1], _hash(b"\1", tree[-1], leaf), size >> 1
    return (*tree, leaf)


def _stepped(tree: tuple[bytes, ...], size: int, step: Json) -> tuple[bytes, ...]:
    """The frontier at the size of a step, from the complete subtrees in between."""
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
    """Decodes base64; empty if the text is not canonical base64."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        return b""
    return data if base64.b64encode(data).decode() == text else b""


def _ed25519() -> Callable[[bytes, bytes, bytes], bool] | None:
    """The function that verifies a signature; None without the package `cryptography`."""
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
    """A key from an argument: a verifier key, or a file with one, or table.pub."""
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
        """Raises Wrong if the key did not sign the note; returns the time of a cosignature."""
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
    """Parses a checkpoint: the note, and its origin, size and root."""
    note = _note(text, what, 3)
    origin, size, root = note.text[:-1].split("\n")
    if len(_unbase64(root)) != 32:
        raise Wrong(f"{what}: the root is not base64 of 32 bytes")
    return note, origin, _number(size, f"{what}: the size"), _unbase64(root)


def _bound(table: str, cursor: Json) -> bytes:
    """The bytes that a commitment binds before the opening of a card."""
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
        """The complete frame at an offset, or why there is none."""
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
        """The offset after the last byte that is not zero; at least `start`."""
        for at in range(start + (self.size - start) // PIECE * PIECE, start - 1, -PIECE):
            data = self.at(at, PIECE).rstrip(b"\0")
            if data:
                return at + len(data)
        return start

    def heads(self, start: int, end: int, seq: int) -> Iterator[tuple[int, int, int, int]]:
        """Possible heads with a durable above `seq`: offset, length, seq, durable."""
        most = seq + 1 + (end - start) // HEAD.size
        for at in range(start, end, PIECE):
            data = self.at(at, PIECE + HEAD.size)
            for match in LIKE_A_HEAD.finditer(data, 0, min(PIECE, end - at) + 3):
                if match.start() + HEAD.size <= len(data):
                    n, _, its_seq, durable, _ = HEAD.unpack_from(data, match.start())
                    if 1 <= n <= LONGEST and seq < durable < its_seq <= most:
                        yield at + match.start(), n, its_seq, durable

    def tail(self, start: int, end: int, seq: int) -> str:
        """Why bytes after the last valid frame are case 2 or 4; empty for an incomplete write."""
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
        """Whether the bytes are case 3: the next frames with pieces of zeros, or truncated."""
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
                break  # the end of the frame is unknown
            offset, due = stop, due + 1
        data = self.at(start, end - start)
        for zeros in re.finditer(rb"\0{40,}(?=[^\0])", data):
            first, last = start + zeros.start(), start + zeros.end()
            before = 0 if first == start else -first % SECTOR
            if max(before, last % SECTOR) > WRITTEN_ZEROS:
                return False
        return True

    def cut(self, offset: int, end: int, due: int, seq: int) -> int:
        """The end of an incomplete frame: `offset` if it is unknown, -1 if this is no frame."""
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


# --- settlement: the rule sheets as data ----------------------------------------------------------

MAX_MONEY, FACE_DOWN = 10**12, -1
SIDE_BETS = ("diamond", "buster", "toke_main", "toke_buster")
BETS = ("main", *SIDE_BETS)
BEFORE_CARDS = ("shuffle_needed", "shuffling", "loading")
BETWEEN_ROUNDS = (*BEFORE_CARDS, "burning", "wagering")
TAKES_CARD = ("dealing", "hand_card", "dealer_late", "dealer_card")
NO_CARD = (
    *("naturals", "insurance", "insurance_confirm", "insurance_close", "check", "turn"),
    *("double_confirm", "split_confirm", "reveal", "paying", "clearing"),
)
IN_ROUND = (*TAKES_CARD, *NO_CARD)
STOPPED = ("held", "card_entry", "card_confirm", "device", "felt")
OPEN = (*BETWEEN_ROUNDS, *IN_ROUND, *STOPPED, "refill", "relief_burn")
CHOICES = ("hit", "stand", "double", "split", "surrender")

# How each bet is settled at each moment: conditions, outcome, odds, why. The first row applies
# whose conditions hold: facts of the hand and the dealer's cards, or options with a value (without
# one: the game has the option); `!` negates. Odds are written out, or the option that has them.
# `rest` gives back what doubles added; otherwise the outcome says what is given back.
PAY_ROWS = """
main card:
bust | lose | - | bust
instant21 | instant21 | instant.pays_21 | instant21
instant6 | instant6 | instant.pays_count | instant6
main surrender:
doubled surrender.of_doubled=original_bet | surrender | rest | surrender
| surrender | - | surrender
main even_money:
| even_money | 1:1 | even_money
main blackjack:
suited | blackjack | blackjack.pays_diamonds | blackjack_in_diamonds
| blackjack | blackjack.pays | blackjack
main end:
original_only !natural first | lose | rest | dealer_blackjack
original_only !natural | push | - | original_bets_only
dealer_blackjack !natural | lose | - | dealer_blackjack
dealer_blackjack blackjack.tie=push | push | - | dealer_blackjack
natural pushes_22 blackjack.paid=at_settlement | push | - | dealer_22
natural pushes_many blackjack.paid=at_settlement | push | - | dealer_bust_push
natural suited | blackjack | blackjack.pays_diamonds | blackjack_in_diamonds
natural | blackjack | blackjack.pays | blackjack
pushes_22 | push | - | dealer_22
pushes_many | push | - | dealer_bust_push
wins total_21 !wins.pays_21=1:1 | win | wins.pays_21 | wins_21
wins dealer_bust | win | 1:1 | dealer_busts
wins | win | 1:1 | against_total
ties | push | - | against_total
| lose | - | against_total
diamond deal:
ace_and_ten diamonds | win | bonus.diamond.pays | diamond_blackjack
| lose | - | no_diamond_blackjack
insurance check:
| lose | - | no_dealer_blackjack
insurance end:
| win | insurance.pays | dealer_blackjack
buster end:
dealer_bust count_pays | win | bonus.buster.pays | dealer_busts
dealer_bust | lose | - | dealer_busts
| lose | - | dealer_stands
"""
SETTLED_LIKE = {"toke_buster": "buster"}
# The outcome of a toke bet that rides on a hand, by the outcome of the hand.
RIDES_AS = dict.fromkeys(("blackjack", "even_money", "instant21", "instant6"), "win")
RIDES_AS["surrender"] = "lose"
# What the floor may rule after an irregularity for which the jurisdiction lists no ways.
WAYS = """
face_up_card discard void; error_card use_next burn void; error_card_exposed deal_on burn void;
dealer_overdrew burn; dealer_card_missed dealer_last void; shoe_ran_out reshuffle void;
seat_missed dead_hand void; seat_shorted second_card_last void;
card_unreadable enter_card burn void; deck_suspect decks_out resume;
hole_exposed resume void; hole_unchecked resume void;
out_of_turn resume void; insurance_dispute resume reopen_insurance void; misdeal void resume;
device_lost device_check void; restarted felt_check void; player_absent stand_hand resume void;
hole_mismatch resume void decks_out; unknown_card decks_out enter_card discard;
dealer_relieved burn resume; floor_called resume void
"""
RULINGS = {what: ways for what, *ways in map(str.split, WAYS.split(";"))}
OUTLIVE_VOID = ("deck_suspect", "unknown_card", "dealer_relieved")
DUPLICATE_HOLE = "the hole card is a duplicate"

# Options that settlement reads or that do not concern it; another one that is set is unknown.
OPTIONS = """
decks decisions.by dealer.soft_17 dealer.peek dealer.push_22 dealer.push_bust_cards
dealer.no_peek_takes blackjack.pays blackjack.pays_diamonds blackjack.tie blackjack.ten_up
blackjack.paid wins.pays_21 split.max_hands split.match split.aces_one_card split.aces_again
double.on double.max_total double.ace_is_one_with_ten double.times double.after_split
double.natural double.for_less surrender.when surrender.of_doubled instant.pays_21
instant.cards_21 instant.pays_count instant.cards_count instant.on_split insurance.offered
insurance.pays insurance.max even_money.offered bonus.diamond.pays bonus.diamond.first_round_only
bonus.buster.pays toke.allowed money.rounding money.unit limits.table_payout
shuffle.cut_cards_behind shuffle.max_rounds burn.on_shuffle burn.on_dealer settle.order
payout.floor_from chips
"""
DEFAULTS: Json = {  # of options that are absent in version 2, where they are not none, false or 0
    "blackjack.tie": "push",
    "blackjack.ten_up": "check_first",
    "blackjack.paid": "at_check",
    "decisions.by": "both",
    "dealer.soft_17": "hit",
    "dealer.peek": ["A", "T"],
    "wins.pays_21": {"pays": 1, "on": 1},
    "split.max_hands": 4,
    "split.match": "value",
    "split.aces_again": True,
    "double.on": "two_cards",
    "double.max_total": 21,
    "double.times": 1,
    "double.after_split": True,
    "surrender.when": "never",
    "money.rounding": "floor",
    "money.unit": 1,
    "settle.order": "last_seat",
}
RULES: Json = {  # the same of the jurisdiction
    "rounds_after_cut": 1,
    "two_people": ["void", "correct", "pairing", "counters", "decks_out"],
}
NEEDED = ("decks", "blackjack.pays", "blackjack.tie", "dealer.soft_17", "split.max_hands")


class NotJudged(Exception):
    """Settlement cannot be checked: the record uses something that this file does not know."""


def _flat(options: Json, above: str = "") -> Json:
    """The options by their dotted paths. Odds and pay tables are values."""
    found: Json = {}
    for name, value in options.items():
        inner = isinstance(value, dict) and value.keys() != {"pays", "on"}
        if inner and not all(key.isdecimal() for key in value):
            found.update(_flat(value, f"{above}{name}."))
        else:
            found[above + name] = value
    return found


def _value(card: int) -> int:
    """An ace is 1, a picture card 10."""
    return min(card % 13 + 1, 10)


def _total(cards: list[int]) -> tuple[int, bool]:
    """The best total, and whether an ace counts 11 in it."""
    hard = sum(map(_value, cards))
    soft = hard <= 11 and any(_value(card) == 1 for card in cards)
    return hard + 10 * soft, soft


def _blackjack(cards: list[int]) -> bool:
    return len(cards) == 2 and _total(cards)[0] == 21


class Game:
    """The game in `opened`: options, jurisdiction, pay rows."""

    def __init__(self, data: Json) -> None:
        options, rules = data.get("options"), data.get("jurisdiction")
        if not isinstance(options, dict) or not isinstance(rules, dict) or "ways" not in rules:
            raise NotJudged("the game in opened has no options and jurisdiction as known here")
        old = "format" not in data  # version 1: nothing is absent
        self.options = {**({} if old else DEFAULTS), **_flat(options)}
        self.rules = {**({} if old else RULES), **rules}
        self.seats = data.get("seats", 7)
        limits = [f"limits.{bet}.{end}" for bet in BETS for end in ("min", "max", "step")]
        unknown = self.options.keys() - {*OPTIONS.split(), *limits}
        unknown = {path for path in unknown if self.options[path] not in (None, False, 0, [])}
        unknown |= {path for path in NEEDED if self.options.get(path) is None}
        if unknown:
            raise NotJudged(f"options are unknown here or missing: {', '.join(sorted(unknown))}")
        key = ""
        self.rows: dict[str, list[Any]] = {}  # by bet and moment: conditions, outcome, odds, why
        for line in PAY_ROWS.strip().split("\n"):
            if line.endswith(":"):
                key = line[:-1]
                self.rows[key] = []
                continue
            conditions, *found = (cell.strip() for cell in line.split("|"))
            asked = [word for word in conditions.split() if not self.holds(word)]
            if not any("." in word for word in asked):
                self.rows[key].append((asked, *found))

    def __getitem__(self, path: str) -> Any:
        return self.options.get(path)

    def holds(self, condition: str) -> bool:
        """Whether the condition is about an option, and is met."""
        path, _, value = condition.lstrip("!").partition("=")
        had = self.options.get(path)
        text = f"{had['pays']}:{had['on']}" if isinstance(had, dict) and "on" in had else had
        met = text == value if value else bool(had)
        return "." in path and met != condition.startswith("!")

    def odds(self, text: str, count: int) -> Json | None:
        """The odds of a pay row; of a pay table those for so many cards."""
        if text in ("-", "rest"):
            return None
        found = self.options.get(text) if "." in text else None
        if isinstance(found, dict) and "on" not in found:
            found = found.get(str(min(count, max(map(int, found)))))
        pays, _, on = text.partition(":")
        if isinstance(found, int) or found is None:
            return {"pays": int(pays if found is None else found), "on": int(on or 1)}
        return dict(found)

    def rounded(self, amount: int, times: int, over: int) -> int:
        """The amount x times / over in whole units, rounded as the house rounds."""
        unit, how = self["money.unit"] or 1, self["money.rounding"] or "floor"
        whole, rest = divmod(amount * times, over * unit)
        up = how == "ceil" or (how == "half_up" and 2 * rest >= over * unit)
        return (whole + (rest > 0 and up)) * unit

    def chips(self, amount: int) -> list[Any]:
        """The amount in the house's chips, largest first; none if they cannot make it."""
        counts = []
        for chip in sorted(self["chips"] or (), key=lambda chip: -chip["value"]):
            count, amount = divmod(amount, chip["value"])
            counts += [[count, chip["name"]]] if count else []
        return counts if amount == 0 else []

    def offers(self, bet: str) -> bool:
        side = bet.removeprefix("toke_")
        taken = side == "main" or self[f"bonus.{side}.pays"] is not None
        return taken and (not bet.startswith("toke_") or bool(self["toke.allowed"]))

    def peeks(self, up: int) -> bool:
        return {1: "A", 10: "T"}.get(up) in (self["dealer.peek"] or ())

    def needs_two(self, what: str, way: str) -> bool:
        ruling = self.rules["ways"][what]
        return bool(ruling.get("two_people")) or way in self.rules["two_people"]


# --- settlement: the state of a table -------------------------------------------------------------

# The parts of the `state` of a snapshot with the values of absent fields; what follows from other
# fields (totals, choices) is left out. `seen` has four bits a card, `bets` of a seat are by name.
PARTS = """
state step:"closed" round:0 shoe:{} seen:0 seats:[] hands:[] dealer:[] hole:"" checked:null
    places:[] dealt:0 turn:0 verdict:0 asked:0 asking:0 due:[] after:"clearing" approved:false won:0
    burn:0 late:0 quiet:[] spare:null read:-1 holds:[] lost:[] closing:false
shoe loaded:false rounds:0 rounds_left:-1 decks_out:false
seats number:0 bets:{} answer:""
hands seat:0 wager:0 bet:0 number:0 cards:[] doubles:0 split:false natural:false kept:false
    done:false out:false
places kind:"hand" seat:0 hand:0 turn:-1
due seat:0 turn:-1 hand:-1 bet:"" outcome:"" odds:null stake:0 returned:0 why:"" cards:[]
    floor:false
spare commitment:"" card:-1 exposed:false entered:false
holds what:"" back:"" chosen:null options:[] seat:0 card:-1 commitment:"" detail:"" device:"" by:""
    ruled_by:"" ruled_with:""
"""
FIELDS: dict[str, Json] = {}
for _line in PARTS.replace("\n    ", " ").strip().split("\n"):
    _name, *_fields_of = _line.split()
    _pairs = (one.partition(":") for one in _fields_of)
    FIELDS[_name] = {name: json.loads(value) for name, _, value in _pairs}
TYPES = {"spare": "object|null", "odds": "object|null", "checked": "bool|null"}
TYPES |= {"chosen": "string|null", "cards": "card[]", "dealer": "card[]"}
TYPES |= {"quiet": "int[]", "lost": "string[]"}
PLAYS, STANDS, BUST, INSTANT_21, INSTANT_COUNT = range(5)


def _new(part: str, **given: Any) -> Any:
    """A part of a state with these fields; the others have the values of absent ones."""
    usual = {name: copy(value) for name, value in FIELDS[part].items()}
    if part == "state":
        usual["shoe"] = _new("shoe")
    return SimpleNamespace(**{**usual, **given})


def _loaded(part: str, data: Any) -> Any:
    """A part of a state as recorded in a snapshot, its types checked."""
    if not isinstance(data, dict):
        raise Wrong("the snapshot's state has a part that is no object")
    if part == "state" and data.get("format", 1) not in (1, 2):
        raise NotJudged(f"a state of the format {data['format']} is not known here")
    given: Json = {}
    if part == "seats":  # a bet is a field of its own, or one of the pairs in `bets`
        pairs = data.get("bets", [])
        if not _fits(pairs, "any[]") or any(not _fits(one, "any[]") for one in pairs):
            raise Wrong("the snapshot's state: bets is of another type")
        bets = {bet: data.get(bet, 0) for bet in (*BETS, "insurance")}
        bets |= {str(pair[0]): pair[-1] for pair in pairs if pair}
        data = {**data, "bets": {bet: amount for bet, amount in bets.items() if amount}}
    for name, usual in FIELDS[part].items():
        value = given[name] = data.get(name, usual)
        fits = _fits(value, TYPES[name]) if name in TYPES else type(value) is type(usual)
        if name in ("card", "read"):
            fits = fits and -1 <= value < 52
        if not fits:
            raise Wrong(f"the snapshot's state: {name} is of another type")
        if name in FIELDS and isinstance(value, dict):
            given[name] = _loaded(name, value)
        elif name in FIELDS and isinstance(value, list):
            given[name] = [_loaded(name, one) for one in value]
    return _new(part, **given)


def _due(seat: int, bet: str, outcome: str, odds: Any, stake: int, back: int, why: str) -> Any:
    """A payment, collection or return that the dealer is to make; `turn` is the hand's index."""
    fields = {"odds": odds, "stake": stake, "returned": back, "why": why}
    return _new("due", seat=seat, bet=bet, outcome=outcome, **fields)


def _moved(due: Any) -> int:
    """The amount that the dealer moves."""
    won = due.returned - due.stake
    return int(won if won > 0 else due.returned or due.stake)


class Table:
    """Plays the recorded events again and makes the effects that each of them must have."""

    def __init__(self, game: Game, state: Any) -> None:
        self.game, self.state = game, state
        self.made: list[Json] = []  # the effects of the event that was taken last

    def take(self, event: Json, by: Json) -> None:
        """Applies an accepted event; raises Wrong if the rules refuse it."""
        self.made, self.by = [], by
        roles, _, act = EVENTS[event["type"]]
        if roles == "decision":
            roles = {"signals": "dealer", "buttons": "player"}.get(
                self.game["decisions.by"], "dealer player"
            )
        own = by["role"] != "player" or event.get("seat", 0) in (0, by.get("seat", 0))
        self.need(by["role"] in roles.split() and own, f"is not for the {by['role']} to do")
        getattr(self, act)(self.state, event)
        while self.state.step in PASSING:
            getattr(self, self.state.step)(self.state)

    def need(self, holds: bool, why: str) -> None:
        if not holds:
            raise Wrong(why)

    def at(self, *steps: str) -> None:
        if self.state.step not in steps:
            raise Wrong(f"has no place at the step {self.state.step}")

    def fact(self, kind: str, **fields: Any) -> None:
        self.made.append({"type": kind, **fields})

    def second(self, event: Json) -> str:
        """The name of the second person; raises Wrong if there is no other member of staff."""
        other = event.get("second") or {}
        staff = other.get("role") in ("dealer", "floor", "surveillance")
        self.need(staff and other.get("name") != self.by["name"], "needs a second person")
        return str(other["name"])

    # Opening, shuffle and shoe.

    def open_or_close(self, s: Any, event: Json) -> None:
        opens = event["type"] == "TableOpened"
        bank, other = event.get("bank", 0), self.second(event)
        self.need(event.get("counted_again") in (None, bank), "counts two different banks")
        self.need(0 <= bank <= MAX_MONEY, "counts an impossible bank")
        self.at(*(("closed",) if opens else OPEN))
        if opens or s.step in BETWEEN_ROUNDS:
            self.need(opens or not s.seats, "closes the table over a wager")
            self.shut("shuffle_needed" if opens else "closed")
        else:
            s.closing = True
        self.fact("BankCounted", bank=bank, by=self.by["name"], second=other)

    def shut(self, step: str = "closed") -> None:
        s = self.state
        shoe = _new("shoe", decks_out=s.shoe.decks_out)
        self.state = _new("state", step=step, round=s.round, shoe=shoe, lost=s.lost)

    def fresh_felt(self, step: str) -> None:
        s = self.state
        spare = None if s.spare and s.spare.exposed else s.spare
        kept = {name: getattr(s, name) for name in ("round", "shoe", "seen", "lost", "closing")}
        self.state = _new("state", step=step, spare=spare, **kept)

    def call_shuffle(self, s: Any, event: Json) -> None:
        self.at("wagering")
        self.need(not s.seats, "calls a shuffle over a wager")
        s.step = "shuffle_needed"

    def start_shuffle(self, s: Any, event: Json) -> None:
        self.at("shuffle_needed", "refill")
        if "shuffler" in s.lost and not s.shoe.decks_out:
            self.hold("device_lost", device="shuffler")
        elif s.step == "shuffle_needed":
            self.need(not s.shoe.decks_out, "shuffles decks that are out of play")
            s.step, s.shoe, s.seen, s.spare = "shuffling", _new("shoe"), 0, None

    def end_shuffle(self, s: Any, event: Json) -> None:
        self.at("shuffling", "refill")
        missing, extra = event.get("missing", 0), event.get("extra", 0)
        if missing or extra:
            self.hold("deck_suspect", detail=f"{missing} missing, {extra} extra")
        elif s.step == "shuffling":
            s.step = "loading"

    def load_shoe(self, s: Any, event: Json) -> None:
        count, full = event["count"], self.game["decks"] * 52
        self.at("loading", "refill")
        if s.step == "refill":
            self.need(count == self.discards(), "loads another number of discards")
            known = [s.spare.card] if s.spare and s.spare.card >= 0 else []
            s.seen = sum(1 << 4 * card for card in self.on_felt() + known)
            s.shoe.rounds_left, s.step = 0, "resuming"
        elif "shoe" in s.lost:
            self.hold("device_lost", device="shoe")
        elif count != full:
            self.hold("deck_suspect", detail=f"{count} cards of {full}")
        else:
            s.shoe, s.seen, s.burn = _new("shoe", loaded=True), 0, self.game["burn.on_shuffle"] or 0
            s.step = "burning" if s.burn else "wagering"

    def change_decks(self, s: Any, event: Json) -> None:
        self.at("shuffle_needed")
        self.need(s.shoe.decks_out, "changes decks that are in play")
        self.second(event)
        s.shoe = _new("shoe")

    def burn_card(self, s: Any, event: Json) -> None:
        self.at("burning", "relief_burn")
        s.burn -= 1
        if not s.burn:
            s.step = "wagering" if s.step == "burning" else "resuming"
        self.fact("Burned", card=FACE_DOWN)

    def cut_card(self, s: Any, event: Json) -> None:
        self.at(*(step for step in OPEN if step not in BEFORE_CARDS))
        self.need(s.shoe.rounds_left < 0, "is the second cut card")
        left = self.game.rules["rounds_after_cut"]
        s.shoe.rounds_left = max(1, left) if s.step in ("wagering", "burning") else left

    def relieve(self, s: Any, event: Json) -> None:
        self.at(*OPEN)
        burns = self.game["burn.on_dealer"] and s.spare is None
        if burns and s.step == "wagering":
            self.hold("dealer_relieved")

    # Wagers.

    def seat(self, number: int) -> Any:
        return next((seat for seat in self.state.seats if seat.number == number), None)

    def bets_open(self) -> list[str]:
        """The bets that may be placed on this round."""
        first_only = self.game["bonus.diamond.first_round_only"] and self.state.shoe.rounds > 0
        offered = [bet for bet in BETS if self.game.offers(bet)]
        return [bet for bet in offered if bet != "diamond" or not first_only]

    def place_wager(self, s: Any, event: Json) -> None:
        bet, amount, number = event["bet"], event["amount"], event["seat"]
        self.at("wagering")
        self.need(not s.spare or s.spare.card < 0, "comes after the first card")
        self.need(1 <= number <= self.game.seats and bet in self.bets_open(), "is not offered")
        limits = [self.game[f"limits.{bet}.{end}"] for end in ("min", "max", "step")]
        least, most, step = limits[0] or 1, limits[1] or MAX_MONEY, limits[2] or 1
        whole = amount % (self.game["money.unit"] or 1) == 0 == amount % step
        self.need(whole and max(least, 1) <= amount <= min(most, MAX_MONEY), "is off the limits")
        seat = self.seat(number)
        self.need(bool(seat) or bet == "main", "is a side bet without a main wager")
        if seat is None:
            seat = _new("seats", number=number)
            s.seats = sorted((*s.seats, seat), key=lambda one: one.number)
        seat.bets[bet] = amount

    def remove_wager(self, s: Any, event: Json) -> None:
        seat, bet = self.seat(event["seat"]), event["bet"]
        self.at(*BETWEEN_ROUNDS)
        self.need(not s.spare or s.spare.card < 0, "comes after the first card")
        if seat is None or bet not in seat.bets:
            raise Wrong("takes a wager back that does not lie there")
        del seat.bets[bet]
        if bet == "main":
            s.seats.remove(seat)

    def lock_wagers(self, card: int) -> None:
        """The first card: the wagers are locked and the places of the deal are known."""
        s = self.state
        s.hands = [
            _new("hands", seat=one.number, wager=one.bets["main"], bet=one.bets["main"])
            for one in s.seats
        ]
        hands = [_new("places", seat=hand.seat, turn=turn) for turn, hand in enumerate(s.hands)]
        s.places = [*hands, _new("places", kind="up"), *hands, _new("places", kind="hole")]
        s.round, s.shoe.rounds = s.round + 1, s.shoe.rounds + 1
        s.shoe.rounds_left -= s.shoe.rounds_left > 0
        total = sum(sum(seat.bets.values()) for seat in s.seats)
        self.fact("WagersLocked", round=s.round, total=total, cap=self.game["limits.table_payout"])
        s.step = "dealing"
        self.lay(card)

    # Cards.

    def count(self, card: int) -> int:
        return int(self.state.seen >> 4 * card & 15)

    def saw(self, card: int) -> None:
        if self.count(card) < 15:
            self.state.seen += 1 << 4 * card

    def usable(self, card: int, spare: bool) -> bool:
        """Whether the card may be used: the decks hold it, and it is the spare one if one waits."""
        waits = self.state.spare
        if waits is None or not spare:
            return waits is None and not spare and self.count(card) < self.game["decks"]
        return bool(
            card == waits.card if waits.card >= 0 else self.count(card) < self.game["decks"]
        )

    def use(self, card: int) -> None:
        if not self.state.spare or self.state.spare.card < 0:
            self.state.seen += 1 << 4 * card
        self.state.spare = None

    def draw(self, s: Any, event: Json) -> None:
        card, spare = event["card"], event.get("spare", False)
        self.at(*IN_ROUND, *STOPPED, "wagering")
        self.need(not self.hole_next(), "comes face up where the hole card is next")
        due = s.step in TAKES_CARD or (s.step == "wagering" and bool(s.seats))
        if not due or not self.usable(card, spare):
            self.unexpected(card, spare)
            return
        self.use(card)
        if s.step == "wagering":
            self.lock_wagers(card)
        elif s.step == "dealing":
            self.lay(card)
            if s.dealt == len(s.places):
                self.deal_over()
        elif s.step == "hand_card":
            s.hands[s.turn].cards.append(card)
            s.verdict, s.step = self.judged(s.hands[s.turn]), "evaluate"
        else:
            s.dealer.append(card)
            s.late -= s.step == "dealer_late"
            s.step = "dealer_late" if s.late else "dealer_evaluate"

    def unexpected(self, card: int, spare: bool) -> None:
        """A card that no place is for, or that the decks cannot hold."""
        waits = self.state.spare
        known = spare and waits is not None and waits.card >= 0
        self.need(not spare or waits is not None, "names a spare card where none lies")
        if not known and self.count(card) >= self.game["decks"]:
            self.hold("deck_suspect", card=card, detail="duplicate")
            return
        self.need(not spare, "is not the card that lies beside the shoe")
        self.hold(self.error_kind("error_card_exposed"), card=card)
        self.saw(card)

    def error_kind(self, usual: str) -> str:
        s = self.state
        over = s.step == "clearing" or (s.step == "paying" and s.after == "clearing")
        return "dealer_overdrew" if over else usual

    def lay(self, card: int) -> None:
        s = self.state
        place = s.places[s.dealt]
        (s.hands[place.turn].cards if place.turn >= 0 else s.dealer).append(card)
        s.dealt += 1

    def deal_over(self) -> None:
        for hand in self.state.hands:
            if _blackjack(hand.cards):
                hand.natural = hand.done = True
        self.state.step = "after_deal"

    def hole_next(self, step: str = "") -> bool:
        s = self.state
        return (step or s.step) == "dealing" and s.places[s.dealt].kind == "hole"

    def deal_hole(self, s: Any, event: Json) -> None:
        self.need(self.hole_next(), "deals a hole card that is not next")
        waits = s.spare if s.spare and s.spare.card < 0 else None
        self.need(event.get("spare", False) == bool(waits), "is not the spare card that is next")
        self.need(not waits or waits.commitment == event["commitment"], "is another spare card")
        s.hole, s.dealt, s.spare = event["commitment"], s.dealt + 1, None if waits else s.spare
        if s.dealt == len(s.places):
            self.deal_over()

    def up(self) -> int:
        """The value of the up card; 0 without one."""
        return _value(self.state.dealer[0]) if self.state.dealer else 0

    # Blackjacks, insurance and the check.

    def paid_with_deal(self, hand: Any) -> bool:
        game, up = self.game, self.up()
        if game["blackjack.paid"] == "at_settlement":
            return False
        first = up == 10 and game["blackjack.ten_up"] == "pay_first"
        safe = game["blackjack.tie"] == "player_wins" or up not in (0, 1, 10)
        return hand.natural and not hand.out and (safe or first)

    def asks_natural(self) -> bool:
        """Asks the next blackjack that may be doubled instead of paid, before it is paid."""
        s, game = self.state, self.game
        checks = s.checked is None and game.peeks(self.up()) and bool(s.hole)
        for turn, hand in enumerate(s.hands if game["double.natural"] else ()):
            asked = hand.natural and not hand.kept and not hand.out and hand.seat not in s.quiet
            may = asked and "double" in self.choices(hand, 1)
            if may and (self.paid_with_deal(hand) or not checks):
                s.turn, s.step = turn, "naturals"
                return True
        return False

    def answer_natural(self, s: Any, event: Json) -> None:
        hand = s.hands[s.turn]
        self.at("naturals")
        self.need(event["seat"] == hand.seat, "is for a seat that is not asked")
        if event["type"] == "PayTaken":
            hand.kept = True
        else:
            hand.natural = hand.done = False
        s.step = "after_deal" if s.checked is None else "after_check"

    def after_deal(self, s: Any) -> None:
        if self.asks_natural():
            return
        dues: list[Any] = []
        for seat, turn in self.live_hands():
            if self.paid_with_deal(s.hands[turn]):
                dues += self.pay_hand(turn, "blackjack")
            if "diamond" in seat.bets:
                dues.append(self.pay_bet(seat, "diamond", "deal", self.hand_facts(turn)))
        self.pay_next(dues, "offer")

    def offer(self, s: Any) -> None:
        up = self.up()
        if up == 1 and self.game["insurance.offered"] and s.hole and self.asked_next() >= 0:
            s.asked, s.step = self.asked_next(), "insurance"
        else:
            s.step = "check" if self.game.peeks(up) and s.hole else "next_hand"

    def most_insured(self, seat: Any) -> int:
        unit = self.game["money.unit"] or 1
        return int(seat.bets.get("main", 0) // (2 * unit) * unit)

    def even_money_open(self, seat: Any) -> bool:
        waits = any(one.natural and not one.out for one in self.hands_at(seat.number))
        return bool(self.game["even_money.offered"]) and waits

    def hands_at(self, number: int) -> list[Any]:
        return [hand for hand in self.state.hands if hand.seat == number]

    def asked_next(self) -> int:
        """The next seat to ask for insurance or even money, or -1."""
        for index, seat in enumerate(self.state.seats):
            plays = any(len(hand.cards) == 2 for hand in self.hands_at(seat.number))
            skipped = seat.answer or seat.number in self.state.quiet or not plays
            if not skipped and (self.most_insured(seat) > 0 or self.even_money_open(seat)):
                return index
        return -1

    def next_asked(self, s: Any) -> None:
        index = self.asked_next()
        s.step = "insurance" if index >= 0 else "insurance_close"
        s.asked = index if index >= 0 else s.asked

    def answer_insurance(self, s: Any, event: Json) -> None:
        kind = event["type"]
        self.at("insurance")
        seat = s.seats[s.asked]
        self.need(event["seat"] == seat.number, "is for a seat that is not asked")
        if kind == "Insure":
            amount, unit = event["amount"], self.game["money.unit"] or 1
            self.need(0 < amount <= self.most_insured(seat) and amount % unit == 0, "is too much")
            s.asking, s.step = amount, "insurance_confirm"
            return
        self.need(kind == "Decline" or self.even_money_open(seat), "has no blackjack that waits")
        seat.answer, s.step = "declined" if kind == "Decline" else "even_money", "next_asked"

    def close_insurance(self, s: Any, event: Json) -> None:
        self.at("insurance_close")
        dues: list[Any] = []
        for seat, turn in self.live_hands():
            if seat.answer == "even_money":
                dues += self.pay_hand(turn, "even_money")
        self.pay_next(dues, "check")

    def check_hole(self, s: Any, event: Json) -> None:
        self.at("check")
        s.checked = event["blackjack"]
        s.step = "reveal" if event["blackjack"] else "after_check"

    def after_check(self, s: Any) -> None:
        if self.asks_natural():
            return
        dues = self.insurances("check")
        for _, turn in self.live_hands():
            waits = self.game["blackjack.paid"] == "at_settlement"
            if s.hands[turn].natural and not waits:
                dues += self.pay_hand(turn, "blackjack")
        self.pay_next(dues, "next_hand")

    # The players' turns.

    def choices(self, hand: Any, hands: int) -> list[str]:
        """The choices of a hand, at a seat with so many hands."""
        game, total = self.game, _total(hand.cards)[0]
        two, ace = len(hand.cards) == 2, _value(hand.cards[0]) == 1
        legal = {"stand"}
        when = game["surrender.when"]
        if when == "any_time" or (when == "first_two" and two and not (hand.split or hand.doubles)):
            legal.add("surrender")
        if hand.doubles:
            if hand.doubles < game["double.times"] and total <= game["double.max_total"]:
                legal.add("double")
            return [word for word in CHOICES if word in legal]
        ranks = [
            card % 13 if game["split.match"] == "rank" else _value(card) for card in hand.cards
        ]
        again = not (hand.split and ace) or game["split.aces_again"]
        if two and hands < game["split.max_hands"] and ranks[0] == ranks[1] and again:
            legal.add("split")
        if not (hand.split and ace and game["split.aces_one_card"]):
            legal |= {"hit"} if total < 21 else set()
            here = game["double.after_split"] if hand.split else True
            fits = total <= game["double.max_total"]
            fits = fits or (game["double.ace_is_one_with_ten"] and _blackjack(hand.cards))
            if here and fits and (two or game["double.on"] == "any_cards"):
                legal.add("double")
        return [word for word in CHOICES if word in legal]

    def legal(self) -> list[str]:
        """The choices of the hand in turn; no surrender while a blackjack is not ruled out."""
        s, hand = self.state, self.state.hands[self.state.turn]
        found = self.choices(hand, len(self.hands_at(hand.seat)))
        hidden = s.late and s.checked is None and self.up() in (0, 1, 10)
        return [word for word in found if word != "surrender" or not hidden]

    def judged(self, hand: Any) -> int:
        """The verdict on a hand after a card."""
        game, total, count = self.game, _total(hand.cards)[0], len(hand.cards)
        if total > 21:
            return BUST
        if not hand.doubles and (not hand.split or game["instant.on_split"]):
            many = [game["instant.cards_21"], game["instant.cards_count"]]
            if total == 21 and many[0] is not None and count >= many[0]:
                return INSTANT_21
            if total < 21 and many[1] is not None and count >= many[1]:
                return INSTANT_COUNT
        legal = set(self.choices(hand, len(self.hands_at(hand.seat)))) - {"stand"}
        if total == 21 and not hand.doubles:
            legal &= {"double", "split"}
        return PLAYS if legal and hand.seat not in self.state.quiet else STANDS

    def evaluate(self, s: Any) -> None:
        if s.verdict == PLAYS:
            s.step = "turn"
        elif s.verdict == STANDS:
            s.hands[s.turn].done, s.step = True, "next_hand"
        else:
            self.pay_next(self.pay_hand(s.turn, "card"), "next_hand")

    def next_hand(self, s: Any) -> None:
        turn = next((turn for turn, hand in enumerate(s.hands) if not hand.done), -1)
        if turn < 0:
            s.step = "dealer_late" if s.late else "reveal"
            return
        hand, refused = s.hands[turn], bool(s.spare and s.spare.exposed)
        if hand.seat in s.quiet and (len(hand.cards) > 1 or refused):
            hand.done = True
        else:
            s.turn, s.step = turn, "turn" if len(hand.cards) > 1 else "hand_card"

    def decide(self, s: Any, event: Json) -> None:
        kind = event["type"]
        self.at("turn")
        hand, stake = s.hands[s.turn], event.get("amount")
        self.need((event["seat"], event["hand"]) == (hand.seat, hand.number), "is out of turn")
        if kind == "SpareRefused":
            self.need(bool(s.spare and s.spare.exposed), "refuses a card that is not there")
            hand.done, s.quiet, s.step = True, [*s.quiet, hand.seat], "next_hand"
            return
        self.need(kind.lower() in self.legal(), "is not among the hand's choices")
        unit = self.game["money.unit"] or 1
        less = kind == "Double" and self.game["double.for_less"] and (stake or 0) % unit == 0
        less = less and 0 < (stake or 0) < hand.wager
        self.need(stake in (None, hand.wager) or less, "is for another amount than the wager")
        if kind == "Surrender":
            self.pay_next(self.pay_hand(s.turn, "surrender"), "next_hand")
            return
        hand.done = hand.done or kind == "Stand"
        s.asking = (stake or hand.wager) if kind == "Double" else s.asking
        steps = {"Hit": "hand_card", "Stand": "next_hand", "Double": "double_confirm"}
        s.step = steps.get(kind, "split_confirm")

    def confirm(self, s: Any, event: Json) -> None:
        self.at("insurance_confirm", "double_confirm", "split_confirm")
        if s.step == "insurance_confirm":
            seat = s.seats[s.asked]
            seat.bets["insurance"], seat.answer = s.asking, "insured"
            s.asking, s.step = 0, "next_asked"
            return
        hand = s.hands[s.turn]
        if s.step == "double_confirm":
            hand.wager, hand.doubles, s.asking = hand.wager + s.asking, hand.doubles + 1, 0
        else:
            for other in s.hands[s.turn + 1 :]:
                other.number += other.seat == hand.seat
            first, second = hand.cards
            hand.split, hand.cards = True, [first]
            new = _new("hands", **{**vars(hand), "number": hand.number + 1, "cards": [second]})
            s.hands.insert(s.turn + 1, new)
        s.step = "hand_card"

    def withdraw(self, s: Any, event: Json) -> None:
        self.at("insurance_confirm", "double_confirm", "split_confirm")
        insures = s.step == "insurance_confirm"
        number = s.seats[s.asked].number if insures else s.hands[s.turn].seat
        self.need(self.by["role"] != "player" or self.by.get("seat") == number, "is another's")
        if self.game["decisions.by"] == "signals":
            self.need(self.by["role"] == "dealer", "is for the dealer to enter")
        s.asking, s.step = 0, "insurance" if insures else "turn"

    # The dealer.

    def reveal(self, s: Any, event: Json) -> None:
        self.at("reveal")
        card = event["card"] if s.read < 0 else s.read
        self.need(0 <= card < 52, "names no card")
        if s.read < 0 and self.count(card) >= self.game["decks"]:
            self.hold("deck_suspect", card=card, detail=DUPLICATE_HOLE)
        elif s.checked is not None and s.checked != _blackjack([s.dealer[0], card]):
            self.hold("hole_mismatch", card=card)
        else:
            s.seen += 1 << 4 * card if s.read < 0 else 0
            s.dealer.append(card)
            s.hole, s.read, s.step = "", FACE_DOWN, "dealer_evaluate"

    def dealer_evaluate(self, s: Any) -> None:
        game = self.game
        total, soft = _total(s.dealer)
        pushes = game["dealer.push_22"] or (game["dealer.push_bust_cards"] or 0) > 0
        takes = pushes and game["blackjack.paid"] == "at_settlement"
        depends = any(not hand.out and (takes or not hand.natural) for hand in s.hands)
        busters = any({"buster", "toke_buster"} & seat.bets.keys() for seat in s.seats)
        draws = total < 17 or (total == 17 and soft and game["dealer.soft_17"] == "hit")
        if draws and (depends or busters):
            s.step = "dealer_card"
            return
        insured = any("insurance" in seat.bets for seat in s.seats)
        settles = busters or insured or not all(hand.out for hand in s.hands)
        self.pay_next(self.settlement() if settles else [], "clearing")

    # Payments: what is due comes from the pay rows.

    def seats_in_order(self) -> list[Any]:
        seats = list(self.state.seats)
        return seats if self.game["settle.order"] == "first_seat" else seats[::-1]

    def live_hands(self) -> list[tuple[Any, int]]:
        """The hands on the felt with their seats, in the order of settlement."""
        hands = list(enumerate(self.state.hands))
        return [
            (seat, turn)
            for seat in self.seats_in_order()
            for turn, hand in hands
            if hand.seat == seat.number and not hand.out
        ]

    def row(self, bet: str, moment: str, facts: set[str]) -> list[str]:
        """Outcome, odds and why of the first pay row whose conditions hold."""
        for asked, *found in self.game.rows[f"{SETTLED_LIKE.get(bet, bet)} {moment}"]:
            if all((word.lstrip("!") in facts) != word.startswith("!") for word in asked):
                return list(found)
        raise Wrong(f"no pay row settles the {bet} bet")

    def hand_facts(self, turn: int) -> set[str]:
        hand, verdict = self.state.hands[turn], self.state.verdict
        total = _total(hand.cards)[0]
        facts = {f"total_{total}", *(["natural"] if hand.natural else [])}
        facts |= {"doubled"} if hand.doubles else set()
        if all(card // 13 == 1 for card in hand.cards):
            facts |= (
                {"diamonds", "suited"} if self.game["blackjack.pays_diamonds"] else {"diamonds"}
            )
        facts |= {"ace_and_ten"} if _blackjack(hand.cards) else set()
        names = {BUST: "bust", INSTANT_21: "instant21", INSTANT_COUNT: "instant6"}
        return facts | {names.get(verdict, "")}

    def dealer_facts(self) -> set[str]:
        s, game = self.state, self.game
        total, count = _total(s.dealer)[0], len(s.dealer)
        many, table = game["dealer.push_bust_cards"] or 0, game["bonus.buster.pays"] or {}
        blackjack = _blackjack(s.dealer)
        original = game["dealer.no_peek_takes"] == "original_bets" or game.peeks(self.up())
        facts = {
            "dealer_bust": total > 21,
            "pushes_22": total == 22 and bool(game["dealer.push_22"]),
            "pushes_many": total > 21 and 0 < many <= count,
            "count_pays": bool(table) and str(min(count, max(map(int, table)))) in table,
            "dealer_blackjack": blackjack,
            "original_only": blackjack and s.checked is None and original,
        }
        return {name for name, holds in facts.items() if holds}

    def returned(self, stake: int, outcome: str, odds: Json | None) -> int:
        """The amount returned: stake and winnings, half of the stake, the stake, or nothing."""
        if odds:
            return stake + self.game.rounded(stake, odds["pays"], odds["on"])
        if outcome == "surrender":
            return self.game.rounded(stake, 1, 2)
        return 0 if outcome == "lose" else stake

    def pay_hand(self, turn: int, moment: str, facts: set[str] | None = None) -> list[Any]:
        """The hand's payment, and that of the toke bet that rides on a seat's first hand."""
        known = self.hand_facts(turn) | (facts or set())
        outcome, text, why = self.row("main", moment, known)
        return self.pay_main(turn, outcome, text, why)

    def pay_main(self, turn: int, outcome: str, text: str, why: str) -> list[Any]:
        hand, odds = self.state.hands[turn], self.game.odds(text, 0)
        back = hand.wager - hand.bet if text == "rest" else self.returned(hand.wager, outcome, odds)
        due = [_due(hand.seat, "main", outcome, odds, hand.wager, back, why)]
        vars(due[0]).update(turn=turn, hand=hand.number, cards=list(hand.cards))
        seat = self.seat(hand.seat)
        toke = seat.bets.get("toke_main", 0) if seat and not hand.number else 0
        if toke:
            back = self.returned(toke, outcome, odds)
            rides = RIDES_AS.get(outcome, outcome)
            due.append(_due(hand.seat, "toke_main", rides, odds, toke, back, why))
        return due

    def pay_bet(self, seat: Any, bet: str, moment: str, facts: set[str]) -> Any:
        outcome, text, why = self.row(bet, moment, facts)
        odds, stake = self.game.odds(text, len(self.state.dealer)), seat.bets[bet]
        back = self.returned(stake, outcome, odds)
        return _due(seat.number, bet, outcome, odds, stake, back, why)

    def insurances(self, moment: str) -> list[Any]:
        insured = [seat for seat in self.seats_in_order() if "insurance" in seat.bets]
        return [self.pay_bet(seat, "insurance", moment, set()) for seat in insured]

    def settlement(self) -> list[Any]:
        """The payments of all wagers on the felt against the dealer's completed hand."""
        s, dealer = self.state, self.dealer_facts()
        insured = "dealer_blackjack" in dealer and self.game["insurance.offered"]
        dues, total = self.insurances("end") if insured else [], _total(s.dealer)[0]
        for seat in self.seats_in_order():
            mine = [turn for one, turn in self.live_hands() if one is seat]
            lost = any(one.out and _total(one.cards)[0] > 21 for one in self.hands_at(seat.number))
            for turn in mine:
                own = _total(s.hands[turn].cards)[0]
                facts = {"first"} if turn == mine[0] and not lost else set()
                facts |= {"wins"} if total > 21 or own > total else set()
                facts |= {"ties"} if own == total else set()
                dues += self.pay_hand(turn, "end", dealer | facts)
            for bet in ("buster", "toke_buster"):
                if bet in seat.bets:
                    dues.append(self.pay_bet(seat, bet, "end", dealer))
        return dues

    def refunds(self, seats: list[Any], why: str) -> list[Any]:
        """The payments that give the wagers of these seats back."""
        dues: list[Any] = []
        for seat in seats:
            mine = [turn for one, turn in self.live_hands() if one is seat]
            for turn in mine:
                dues += self.pay_main(turn, "void", "-", why)
            rides = bool(mine) and self.state.hands[mine[0]].number == 0
            first = () if self.state.hands else ("main",)
            for bet in (*first, "insurance", *SIDE_BETS):
                if bet in seat.bets and not (bet == "toke_main" and rides):
                    stake = seat.bets[bet]
                    dues.append(_due(seat.number, bet, "void", None, stake, stake, why))
        return dues

    def pay_next(self, dues: list[Any], after: str) -> None:
        """Makes the payments due, or goes on if there are none."""
        s = self.state
        s.due = self.marked(dues)
        s.after, s.step = (after, "paying") if dues else (s.after, after)

    def marked(self, dues: list[Any]) -> list[Any]:
        """Marks the payments that the floor must see first."""
        least, cap = self.game["payout.floor_from"], self.game["limits.table_payout"]
        won = self.state.won
        for due in dues:
            wins = max(0, due.returned - due.stake)
            won += wins
            large = (least is not None and wins >= least) or (cap is not None and won > cap)
            due.floor = wins > 0 and large
        return dues

    def pay(self, s: Any, event: Json) -> None:
        every = event["type"] == "AllPaid"
        self.at("paying")
        declares = bool(self.game.rules.get("declare_payments"))
        for index, due in enumerate(s.due if every else s.due[:1]):
            seen = not due.floor or (s.approved and index == 0)
            self.need(seen, "pays what the floor has not seen")
        amount = event.get("amount")
        right = not declares if amount is None else amount == _moved(s.due[0])
        self.need(right, "is not the amount that is due, or declares none")
        paid = s.due if every else s.due[:1]
        for due in paid:
            self.settle(due)
        s.due, s.approved = s.due[len(paid) :], False
        s.step = "paying" if s.due else s.after

    def settle(self, due: Any) -> None:
        s, seat = self.state, self.seat(due.seat)
        hidden = ("turn", "floor")
        fields = {name: value for name, value in vars(due).items() if name not in hidden}
        self.fact("Settled", round=s.round, instant=len(s.dealer) < 2, **fields)
        s.won += max(0, due.returned - due.stake)
        if due.turn >= 0:
            if due.why == "bust" and seat and "buster" in seat.bets:
                self.fact("Tucked", seat=due.seat, hand=due.hand, cards=due.cards)
            s.hands[due.turn].done = s.hands[due.turn].out = True
        elif seat:
            seat.bets.pop(due.bet, None)

    def approve(self, s: Any, event: Json) -> None:
        self.at("paying")
        self.need(s.due[0].floor and not s.approved, "approves what does not wait for the floor")
        s.approved = True

    def correct(self, s: Any, event: Json) -> None:
        other = self.second(event)
        known = event["bet"] in (*BETS, "insurance") and 0 < event["round"] <= s.round
        amounts = event["paid"] != event["due"] and min(event["paid"], event["due"]) >= 0
        self.need(known and amounts, "corrects no payment of a round that was dealt")
        names = ("round", "seat", "hand", "bet", "paid", "due")
        fields = {name: event[name] for name in names}
        self.fact("Corrected", **fields, by=self.by["name"], second=other)

    def clear(self, s: Any, event: Json) -> None:
        self.at("clearing")
        if s.spare and s.spare.exposed:
            self.fact("Burned", card=s.spare.card)
        self.fact("RoundOver", round=s.round, won=s.won)
        s.step = "next_round"

    def next_round(self, s: Any) -> None:
        most = self.game["shuffle.max_rounds"]
        out = s.shoe.rounds_left == 0 or (most is not None and s.shoe.rounds >= most)
        if s.closing:
            self.shut()
        elif out or not s.shoe.loaded:
            self.fresh_felt("shuffle_needed")
        else:
            self.fresh_felt("wagering")
            if "shoe" in s.lost:
                self.hold("device_lost", device="shoe")

    # Irregularities: what stops the table, and the ways on.

    def hold(self, what: str, **more: Any) -> None:
        """Stops the table. The jurisdiction names the way on, or leaves it to the floor."""
        s, ruling = self.state, self.game.rules["ways"][what]
        held, way = _new("holds", what=what, back=s.step, **more), ruling["way"]
        listed, every = ruling.get("options"), RULINGS.get(what, [])
        held.options = [one for one in listed or every if self.applicable(held, one)]
        alone = way == "enter_card" or not self.game.needs_two(what, way)
        if way != "floor_decides" and alone and self.applicable(held, way):
            held.chosen = way
        elif not held.options:
            held.options = [one for one in every if self.applicable(held, one)]
        s.holds.append(held)
        s.step = "ruling"

    def applicable(self, held: Any, way: str) -> bool:
        """Whether the way can be taken from the step at which the table was stopped."""
        s, back = self.state, held.back
        if way == "enter_card":
            return (bool(s.seats) or back != "wagering") and not self.hole_next(back)
        if way == "void":
            return bool(s.hands)
        if way in ("burn", "discard"):
            return bool(back != "reveal" or held.what != "card_unreadable")
        if way in ("use_next", "deal_on"):
            return s.spare is None and (way == "use_next" or back in (*NO_CARD, *TAKES_CARD[1:]))
        if way == "reopen_insurance":
            seat = self.seat(held.seat)
            even = seat is not None and seat.answer == "even_money"
            paid = even and any(hand.out for hand in self.hands_at(held.seat))
            asked = back in ("insurance", "insurance_close", "check") and seat is not None
            return asked and bool(seat.answer) and not paid
        return way not in ("dealer_last", "dead_hand", "second_card_last") or back == "dealing"

    def ruling(self, s: Any) -> None:
        """Takes the way that was chosen, or waits for the floor."""
        held = s.holds[-1]
        s.step = "resuming" if held.chosen else "held"
        if held.chosen:
            getattr(self, f"way_{held.chosen}", lambda s, held: None)(s, held)

    def rule(self, s: Any, event: Json) -> None:
        self.at("held")
        held, way = s.holds[-1], event["way"]
        open_ = way in held.options and self.applicable(held, way)
        self.need(open_, f"rules {way}, which is not open")
        two = self.game.needs_two(held.what, way)
        other = (event.get("second") or {}).get("name", "")
        held.ruled_with = self.second(event) if two else other
        held.chosen, held.ruled_by, s.step = way, self.by["name"], "ruling"
        self.fact("Ruled", what=held.what, way=way, by=held.ruled_by, second=held.ruled_with)

    def resuming(self, s: Any) -> None:
        held = s.holds.pop()
        if s.closing and not s.seats and not s.holds and held.back in BETWEEN_ROUNDS:
            self.shut()
        elif held.back == "device":
            s.step = "device" if s.holds[-1].device in s.lost else "felt"
        else:
            s.step = held.back

    def stop_for(self, s: Any, event: Json) -> None:
        """An event that only stops the table: its irregularity and its steps are in STOPS."""
        s, (what, steps) = self.state, STOPS[event["type"]]
        self.at(*steps)
        if what in (*DISPUTES, "floor_called"):
            self.need(not s.holds or s.holds[-1].what != what, "is held already")
        number = event.get("seat", 0)
        if what == "player_absent":
            plays = bool(self.hands_at(number)) and number not in s.quiet
            self.need(plays, "is for a seat without a hand")
        self.hold(what, seat=number, detail=event.get("why", ""))

    def face_up(self, s: Any, event: Json) -> None:
        self.at(*TAKES_CARD, "wagering", "burning")
        if self.count(event["card"]) >= self.game["decks"]:
            self.hold("deck_suspect", detail="duplicate")
        else:
            self.hold("face_up_card", card=event["card"])
            self.saw(event["card"])

    def error_card(self, s: Any, event: Json) -> None:
        self.at(*NO_CARD, *STOPPED, "wagering")
        self.hold(self.error_kind("error_card"), commitment=event["commitment"])

    def error_card_seen(self, s: Any, event: Json) -> None:
        card = event["card"]
        self.at(*IN_ROUND, "wagering", "burning")
        self.need(s.spare is not None and s.spare.card < 0, "exposes a card that is not there")
        s.spare = None
        if self.count(card) >= self.game["decks"]:
            self.hold("deck_suspect", detail="duplicate")
        else:
            self.hold(self.error_kind("error_card_exposed"), card=card)
            self.saw(card)

    def shoe_empty(self, s: Any, event: Json) -> None:
        self.at(*TAKES_CARD, "burning", "wagering", "relief_burn")
        if s.step in TAKES_CARD:
            self.hold("shoe_ran_out")
        else:
            s.step, s.shoe, s.seen, s.burn, s.spare = "shuffle_needed", _new("shoe"), 0, 0, None
            s.holds = []

    def unknown_card(self, s: Any, event: Json) -> None:
        self.at(*IN_ROUND, *STOPPED, "wagering")
        seen = s.step == "card_entry" and self.by["role"] != "device"
        if seen and s.holds[-1].back != "reveal":  # there is no other card to enter
            s.step = s.holds.pop().back
            self.hold("unknown_card", seat=self.next_seat())
        else:
            self.hold("unknown_card")

    def next_seat(self) -> Any:
        """The seat of the next card; 0 for the dealer's."""
        s = self.state
        if s.step == "wagering":
            return s.seats[0].number if s.seats else 0
        if s.step == "dealing":
            return s.places[s.dealt].seat
        return s.hands[s.turn].seat if s.step == "hand_card" else 0

    # A deal that is put right.

    def fits(self, places: list[Any]) -> list[Any] | None:
        """The places, if the cards dealt so far can lie on them."""
        s = self.state
        fits = not s.hole and s.dealt <= len(places)
        return places if fits and all(one.kind != "hole" for one in places[: s.dealt]) else None

    def places_for(self, what: str, number: int) -> list[Any] | None:
        """The places after a seat or a card of the dealer was passed over; None if impossible."""
        places = self.state.places
        if what == "dealer_card_missed":
            kinds = ("up", "hole") if number == 1 else ("hole",)
            had = any(one.kind == kinds[0] for one in places)
            return self.fits([one for one in places if one.kind not in kinds]) if had else None
        mine = [index for index, one in enumerate(places) if one.seat == number]
        if what == "seat_missed":
            left = [one for one in places if one.seat != number]
            plays = mine and any(one.kind == "hand" for one in left)
            return self.fits(left) if plays else None
        if len(mine) < 2 or mine[1] == len(places) - 1:
            return None
        left = [*places[: mine[1]], *places[mine[1] + 1 :], places[mine[1]]]
        return self.fits(left)

    def passed_over(self, s: Any, event: Json) -> None:
        what, _ = STOPS[event["type"]]
        self.at("dealing")
        number = event.get("seat", 0) or event.get("which", 0)
        self.need(self.places_for(what, number) is not None, "cannot have been passed over")
        self.hold(what, seat=event.get("seat", 0), detail=str(event.get("which", "")))

    def deal_again(self, places: list[Any] | None) -> None:
        """The same cards on other places."""
        s = self.state
        queues = {turn: iter(hand.cards) for turn, hand in enumerate(s.hands)}
        queues[-1] = iter(s.dealer)
        cards = [next(queues[place.turn]) for place in s.places[: s.dealt]]
        kept = ("seat", "wager", "bet", "done", "out")
        s.hands = [
            _new("hands", **{name: getattr(hand, name) for name in kept}) for hand in s.hands
        ]
        s.places, s.dealer, s.dealt = places or s.places, [], 0
        for card in cards:
            self.lay(card)

    def way_dealer_last(self, s: Any, held: Any) -> None:
        self.deal_again(self.places_for(held.what, int(held.detail)))
        s.late = 3 - int(held.detail)
        if s.dealt == len(s.places):
            self.deal_over()
            held.back, s.step = "after_deal", "resuming"

    def way_second_card_last(self, s: Any, held: Any) -> None:
        self.deal_again(self.places_for(held.what, held.seat))

    def way_dead_hand(self, s: Any, held: Any) -> None:
        self.fact("SeatDead", seat=held.seat)
        self.deal_again(self.places_for(held.what, held.seat))
        for hand in self.hands_at(held.seat):
            hand.done = True
        seats = [seat for seat in s.seats if seat.number == held.seat]
        dues, after = self.refunds(seats, "dead_hand"), "dealing"
        if s.dealt == len(s.places):
            self.deal_over()
            after = "after_deal"
        self.pay_next(dues, after)
        held.back, s.step = "paying", "resuming"

    # What the other ways do.

    def way_discard(self, s: Any, held: Any) -> None:
        self.fact("Discarded", card=held.card)

    def way_burn(self, s: Any, held: Any) -> None:
        if held.what == "dealer_relieved":
            s.burn, s.step = self.game["burn.on_dealer"], "relief_burn"
        else:
            self.fact("Burned", card=held.card)

    def way_use_next(self, s: Any, held: Any) -> None:
        shown = held.chosen == "deal_on"
        card = held.card if shown else FACE_DOWN
        commitment = "" if shown else held.commitment
        s.spare = _new("spare", commitment=commitment, card=card, exposed=shown)

    way_deal_on = way_use_next

    def end_round(self, held: Any, outlive: tuple[str, ...], after: str) -> None:
        """Gives all wagers back; of the holds only those stay that outlive the round."""
        s = self.state
        s.asking, s.approved = 0, False
        self.pay_next(self.refunds(self.seats_in_order(), "void"), after)
        s.after = after
        deeper = [one for one in s.holds[:-1] if one.what in outlive]
        s.holds = [*deeper, held]
        s.holds[0].back, s.step = s.step, "resuming"

    def way_void(self, s: Any, held: Any) -> None:
        if s.hands:
            by = held.ruled_by or self.game.rules["name"]
            self.fact("RoundVoid", round=s.round, reason=held.what, by=by, second=held.ruled_with)
        self.void_held(held)

    def void_held(self, held: Any) -> None:
        s = self.state
        if any(one.what == "shoe_ran_out" for one in s.holds):
            s.shoe.rounds_left = 0
        self.end_round(held, OUTLIVE_VOID, "clearing")
        self.keep_spare()

    def keep_spare(self) -> None:
        """A spare card whose face was confirmed is exposed: it will be burned."""
        if self.state.spare and self.state.spare.entered:
            self.state.spare.exposed, self.state.spare.entered = True, False

    def way_decks_out(self, s: Any, held: Any) -> None:
        self.fact("DecksOut")
        if s.hands:
            by = held.ruled_by or self.game.rules["name"]
            self.fact("RoundVoid", round=s.round, reason=held.what, by=by, second=held.ruled_with)
        s.shoe.loaded, s.shoe.decks_out, s.spare, s.burn = False, True, None, 0
        self.end_round(held, (), "clearing" if s.hands else "next_round")

    def way_resume(self, s: Any, held: Any) -> None:
        """A card that was in doubt counts as what it shows."""
        over = held.back == "clearing" or (held.back == "paying" and s.after == "clearing")
        if held.card < 0 or over:
            return
        if held.what == "hole_mismatch":
            said, s.checked = s.checked, _blackjack([s.dealer[0], held.card])
            held.back = "after_check" if said else held.back
        elif held.what == "deck_suspect" and s.spare is None:
            self.saw(held.card)
            self.identify(held)

    def way_stand_hand(self, s: Any, held: Any) -> None:
        """The seat makes no further decisions; if it was its turn, the next one follows."""
        back = held.back
        s.quiet = [*s.quiet, held.seat]
        insures = back in ("insurance", "insurance_confirm")
        turns = ("turn", "double_confirm", "split_confirm", "naturals")
        asked = s.seats[s.asked].number if insures else 0
        asked = s.hands[s.turn].seat if back in turns else asked
        if asked != held.seat:
            return
        s.asking, held.back = 0, "next_asked" if insures else "next_hand"
        if back == "naturals":
            held.back = "after_deal" if s.checked is None else "after_check"

    def way_reopen_insurance(self, s: Any, held: Any) -> None:
        seat = self.seat(held.seat)
        if seat is None:
            return
        seat.answer, s.asking, s.asked = "", 0, s.seats.index(seat)
        stake, dues = seat.bets.get("insurance", 0), []
        if stake:
            why = "asked_again"
            dues = [_due(seat.number, "insurance", "void", None, stake, stake, why)]
        self.pay_next(dues, "insurance")
        held.back, s.step = s.step, "resuming"

    def way_device_check(self, s: Any, held: Any) -> None:
        s.step = "device" if held.device in s.lost else "felt"

    def way_enter_card(self, s: Any, held: Any) -> None:
        steps = {"enter_card": "card_entry", "reshuffle": "refill"}
        s.step = steps.get(held.chosen or "", "felt")

    way_felt_check = way_reshuffle = way_enter_card

    # Events while the table is stopped.

    def enter_card(self, s: Any, event: Json) -> None:
        card = event["card"]
        self.at("card_entry")
        self.need(self.count(card) < self.game["decks"], "is a card that the decks hold no more")
        s.holds[-1].card, s.holds[-1].by, s.step = card, self.by["name"], "card_confirm"

    def confirm_card(self, s: Any, event: Json) -> None:
        held = s.holds[-1]
        self.at("card_confirm")
        if event["type"] == "CardRejected":
            s.step = "card_entry"
            return
        self.need(self.by["name"] != held.by, "is by the person who entered the card")
        s.seen += 1 << 4 * held.card
        s.step = "resuming"
        self.identify(held)

    def identify(self, held: Any) -> None:
        """The card of a hold is known: it is on its place, or lies beside the shoe."""
        s = self.state
        if held.back == "reveal" and (
            held.what == "card_unreadable" or held.detail == DUPLICATE_HOLE
        ):
            s.read = held.card
            return
        placed = held.back in (*TAKES_CARD, "wagering") and not self.hole_next(held.back)
        if s.hands or (placed and s.seats):
            s.spare = _new("spare", card=held.card, exposed=not placed, entered=placed)

    def misread(self, s: Any, event: Json) -> None:
        """The last card is taken back from its place and read again."""
        self.at("dealing", "turn", "hand_card", "reveal", "paying", "dealer_card")
        card = None if s.spare else self.take_back()
        self.need(card is not None and self.count(card) > 0, "something followed from that card")
        s.seen -= 1 << 4 * (card or 0)
        self.hold("card_unreadable", seat=self.next_seat(), detail="misread")

    def take_back(self) -> Any:
        s, step = self.state, self.state.step
        if step == "dealing":
            place = s.places[s.dealt - 1] if s.dealt else _new("places", kind="hole")
            if place.kind == "hole":
                return None
            s.dealt -= 1
            return (s.hands[place.turn].cards if place.turn >= 0 else s.dealer).pop()
        if step == "paying" and s.due[0].why in ("bust", "instant21", "instant6"):
            turn = s.turn if s.due[0].turn == s.turn else -1
        elif step in ("paying", "dealer_card"):
            shows = not self.game.offers("buster")  # busted hands of a Buster seat stay in doubt
            paid = [hand for hand in s.hands if hand.out]
            paid = [hand for hand in paid if _total(hand.cards)[0] <= 21 or not shows]
            first = step == "dealer_card" or (not paid and s.due == self.marked(self.settlement()))
            if not first or len(s.dealer) < 3:
                return None
            s.step, s.due, s.approved = "dealer_card", [], False
            return s.dealer.pop()
        else:
            turn = self.drew_last()
        if turn < 0 or s.hands[turn].out or not self.drawn(s.hands[turn]):
            return None
        s.step, s.turn, s.due = "hand_card", turn, []
        s.approved = s.approved and step != "paying"
        s.hands[turn].done = False
        return s.hands[turn].cards.pop()

    def drawn(self, hand: Any) -> bool:
        return len(hand.cards) >= (2 if hand.split else 3)

    def drew_last(self) -> Any:
        """The hand of the last card: the one in turn, or the one before it that stood by itself."""
        s, stood = self.state, self.state.verdict == STANDS
        if s.step == "reveal":
            return s.turn if stood and s.read < 0 else -1
        if s.step == "turn" and self.drawn(s.hands[s.turn]):
            return s.turn
        before = s.step == "turn" or len(s.hands[s.turn].cards) < 2
        return s.turn - 1 if stood and before else -1

    def void(self, s: Any, event: Json) -> None:
        reason = event["reason"]
        self.at(*IN_ROUND, "refill")
        self.need(bool(reason), "gives no reason")
        names = {"by": self.by["name"], "second": self.second(event)}
        self.fact("RoundVoid", round=s.round, reason=reason, **names)
        if s.step == "refill":
            self.void_held(s.holds[-1])
            return
        s.asking, s.approved, s.read = 0, False, FACE_DOWN
        self.keep_spare()
        self.pay_next(self.refunds(self.seats_in_order(), "void"), "clearing")
        s.after = "clearing"

    def lose_device(self, s: Any, event: Json) -> None:
        device = event["device"]
        step = s.holds[0].back if s.holds else s.step
        needed = {
            "shoe": step not in BEFORE_CARDS,
            "shuffler": step in BEFORE_CARDS or s.step == "refill",
            "station": self.game["decisions.by"] == "buttons" and bool(s.seats),
        }
        newly = device not in s.lost and needed.get(device, False)
        stops = step != "closed" and (event.get("behind", False) or newly)
        s.lost = s.lost if device in s.lost else [*s.lost, device]
        if stops:
            self.hold("device_lost", detail=event["why"], device=device)

    def device_back(self, s: Any, event: Json) -> None:
        if event["agrees"]:
            s.lost = [device for device in s.lost if device != event["device"]]
            if s.step == "device" and s.holds[-1].device == event["device"]:
                s.step = "felt"

    def accept_device(self, s: Any, event: Json) -> None:
        self.at("device")
        held, other = s.holds[-1], self.second(event)
        s.lost, s.step = [device for device in s.lost if device != held.device], "felt"
        names = {"by": self.by["name"], "second": other}
        self.fact("Ruled", what=held.what, way="counters_accepted", **names)

    def confirm_felt(self, s: Any, event: Json) -> None:
        self.at("felt")
        s.step = "resuming"

    def on_felt(self) -> list[int]:
        """The cards that lie face up, tucked ones included."""
        s = self.state
        cards = list(s.dealer)
        for hand in s.hands:
            seat = self.seat(hand.seat)
            tucked = _total(hand.cards)[0] > 21 and seat is not None and "buster" in seat.bets
            cards += hand.cards if tucked or not hand.out else []
        return cards

    def discards(self) -> int:
        s = self.state
        hidden = bool(s.hole) + (s.spare is not None)
        return int(self.game["decks"] * 52 - len(self.on_felt()) - hidden)

    # What the table shows of money, and of the cards that count.

    def shown(self) -> Json:
        """The fields of the prompt that are about money, or depend on cards."""
        s, step = self.state, self.state.step
        money: Json = {"stake": 0, "amount": 0, "odds": None, "chips": []}
        if step == "paying":
            due = s.due[0]
            tell = "pay" if due.returned > due.stake else "give_back" if due.returned else "collect"
            money["tell"] = "floor_first" if due.floor and not s.approved else tell
            names = ("seat", "hand", "why", "stake", "odds", "cards")
            money |= {name: getattr(due, name) for name in names} | {"place": due.bet}
            money["amount"] = _moved(due)
        elif step == "wagering":
            money["amount"] = self.game["limits.table_payout"] or 0
        elif step in ("insurance", "insurance_confirm"):
            seat, asks = s.seats[s.asked], step == "insurance"
            money |= {"seat": seat.number, "stake": seat.bets.get("main", 0)}
            money["amount"] = self.most_insured(seat) if asks else s.asking
            money["odds"] = self.game["insurance.pays"] if asks else None
        elif step in ("naturals", "turn", "double_confirm", "split_confirm"):
            hand = s.hands[s.turn]
            money |= {"seat": hand.seat, "hand": hand.number, "stake": hand.wager}
            amounts = {"double_confirm": s.asking, "split_confirm": hand.wager}
            money["amount"] = amounts.get(step, 0)
            if step != "naturals":
                money["total"], money["soft"] = _total(hand.cards)
            if step == "turn":
                refused = ["refuse_card"] if s.spare and s.spare.exposed else []
                money["choices"] = self.legal() + refused
        elif step in ("dealer_card", "dealer_late"):
            money["total"], money["soft"] = _total(s.dealer)
        if step in ("paying", "insurance_confirm", "double_confirm", "split_confirm"):
            money["chips"] = self.game.chips(money["amount"])
        return money


PASSING = (
    *("after_deal", "offer", "next_asked", "after_check", "next_hand", "evaluate"),
    *("dealer_evaluate", "next_round", "ruling", "resuming"),
)
DISPUTES = ("hole_exposed", "hole_unchecked", "out_of_turn", "insurance_dispute", "misdeal")
WAITS = tuple(one for one in IN_ROUND if one not in ("dealer_late", "reveal", "dealer_card"))
# Events that only stop the table: the irregularity, and the steps at which they may come.
STOPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "CardUnreadable": ("card_unreadable", (*TAKES_CARD, "wagering", "reveal")),
    "DeckSuspect": ("deck_suspect", OPEN),
    "HoleExposed": ("hole_exposed", IN_ROUND),
    "HoleUnchecked": ("hole_unchecked", IN_ROUND),
    "PlayedOutOfTurn": ("out_of_turn", IN_ROUND),
    "InsuranceDisputed": ("insurance_dispute", IN_ROUND),
    "MisdealCalled": ("misdeal", IN_ROUND),
    "FloorCalled": ("floor_called", OPEN),
    "ControllerRestarted": ("restarted", OPEN),
    "PlayerAbsent": ("player_absent", WAITS[:-1]),
    "DealerCardMissed": ("dealer_card_missed", ("dealing",)),
    "SeatMissed": ("seat_missed", ("dealing",)),
    "SeatShorted": ("seat_shorted", ("dealing",)),
}
# Events: who may bring them, their fields, and the method of the table that takes them.
BANK, CORRECTION = "bank?:int counted_again?:int|null", "bet:string paid:int due:int"
EVENT_ROWS = """
TableOpened TableClosed / floor / BANK second?:object|null / open_or_close
ShuffleCalled / dealer floor / / call_shuffle
ShuffleStarted / device dealer floor / / start_shuffle
ShuffleDone / device dealer floor / missing?:int extra?:int / end_shuffle
ShoeLoaded / device dealer floor / count:int / load_shoe
DecksChanged / floor / second?:object|null / change_decks
CardBurned / device dealer / / burn_card
CutCardSeen / device dealer / / cut_card
DealerRelieved / dealer / / relieve
WagerPlaced / player dealer / seat:int bet:string amount:int / place_wager
WagerRemoved / player dealer / seat:int bet:string / remove_wager
CardDrawn / device dealer / card:card spare?:bool / draw
HoleDealt / device dealer / commitment:string spare?:bool / deal_hole
HoleChecked / device dealer / blackjack:bool / check_hole
HoleRevealed / device dealer / card:int opening:string / reveal
Hit Stand Surrender SpareRefused / decision / seat:int hand:int / decide
Double Split / decision / seat:int hand:int amount?:int|null / decide
Insure / decision / seat:int amount:int / answer_insurance
EvenMoney Decline / decision / seat:int / answer_insurance
PayTaken PayDeclined / decision / seat:int / answer_natural
InsuranceClosed / dealer / / close_insurance
Confirmed / dealer / / confirm
Withdrawn / player dealer / / withdraw
Paid / dealer / amount?:int|null / pay
AllPaid / dealer / / pay
PaymentApproved / floor / / approve
PaymentCorrected / floor / round:int seat:int hand:int CORRECTION second?:object|null / correct
Cleared / dealer / / clear
FaceUpCardFound / device dealer floor / card:card / face_up
ErrorCardDrawn / device dealer / commitment:string / error_card
ErrorCardExposed / device dealer floor / card:card / error_card_seen
DealerCardMissed / dealer floor / which:int / passed_over
SeatMissed SeatShorted / dealer floor / seat:int / passed_over
ShoeRanOut / device dealer floor / / shoe_empty
CardUnreadable / device dealer / why:string / stop_for
CardMisread / dealer floor / / misread
CardEntered / dealer / card:card / enter_card
CardConfirmed CardRejected / floor / / confirm_card
DeckSuspect / device dealer floor / why:string / stop_for
UnknownCardDrawn / device dealer / / unknown_card
HoleExposed HoleUnchecked PlayedOutOfTurn / dealer floor / seat?:int / stop_for
InsuranceDisputed MisdealCalled / dealer floor / seat?:int / stop_for
FloorCalled / player dealer floor / seat?:int / stop_for
PlayerAbsent / dealer floor / seat:int / stop_for
DeviceLost / device / device:string why:string behind?:bool / lose_device
DeviceBack / device / device:string agrees:bool / device_back
CountersAccepted / floor / second?:object|null / accept_device
ControllerRestarted / device / / stop_for
FeltConfirmed / dealer / / confirm_felt
FloorRuled / floor / way:string second?:object|null / rule
RoundVoided / floor / reason:string second?:object|null / void
"""
EVENTS: dict[str, tuple[str, str, str]] = {}
for _line in EVENT_ROWS.replace("BANK", BANK).replace("CORRECTION", CORRECTION).strip().split("\n"):
    _names, _roles, _fields_of_it, _act = (one.strip() for one in _line.split(" /"))
    EVENTS.update(dict.fromkeys(_names.split(), (_roles, _fields_of_it, _act)))
# The effects that settlement makes again, with the values of fields that may be omitted; the others
# are known and concern neither cards nor money.
PLAIN = "BankCounted Tucked DecksOut SeatDead RoundVoid Corrected RoundOver"
JUDGED: dict[str, Json] = {kind: {} for kind in PLAIN.split()}
JUDGED["Settled"] = {"hand": -1, "odds": None, "why": "", "instant": False, "cards": []}
JUDGED |= {"WagersLocked": {"cap": None}, "Ruled": {"second": ""}}
JUDGED |= {"Burned": {"card": FACE_DOWN}, "Discarded": {"card": FACE_DOWN}}
IGNORED = ("Told", "Stations", "ShoeLock", "Shuffler")
AMOUNTS = ("stake", "amount", "returned", "total", "cap", "won", "paid", "due", "bank")
PROMPT: Json = {"seat": 0, "hand": -1, "place": "", "why": "", "stake": 0, "amount": 0}
PROMPT |= {"odds": None, "chips": [], "cards": [], "total": 0, "soft": False, "choices": []}
CANNOT = (LookupError, ArithmeticError, TypeError, ValueError, AttributeError)


def _same(recorded: Any, made: Any) -> bool:
    """Whether two values are equal, `true` and 1 being different."""
    if isinstance(made, (list, dict)):
        return json.dumps(recorded, sort_keys=True) == json.dumps(made, sort_keys=True)
    return type(recorded) is type(made) and recorded == made


class Settlement:
    """Settles every round of a record again, and compares each decision with what it makes."""

    def __init__(self) -> None:
        self.table: Table | None = None
        self.later = False  # whether the record has a vocabulary that is not known here
        self.why = "the game"  # why decisions are not judged, while there is no table
        self.proc = ""
        self.counts = dict.fromkeys(("rounds", "hands", "side bets", "amounts"), 0)

    def begin(self, opened: Json, state: Any) -> None:
        """Starts with the state of a snapshot."""
        self.proc, self.table = str(opened["proc"]), None
        self.later = opened.get("vocabulary", 1) > VOCABULARY
        try:
            self.table = Table(Game(opened["game"]), _loaded("state", state or {}))
        except NotJudged as problem:
            self.why = str(problem)
        except CANNOT as problem:
            raise Wrong(f"the game in opened cannot be read: {type(problem).__name__}") from problem

    def boot(self, opened: Json, last_round: int) -> None:
        """Another game, or another procedure, starts with a closed table."""
        self.later = opened.get("vocabulary", 1) > VOCABULARY
        if self.proc == opened["proc"]:
            return
        old = self.table.state if self.table else _new("state", round=last_round)
        if old.step not in ("closed", *BETWEEN_ROUNDS) or old.seats:
            raise Wrong("another procedure starts while a round is open")
        state = {"round": old.round, "lost": old.lost, "shoe": vars(old.shoe)}
        self.begin(opened, {**state, "shoe": {"decks_out": old.shoe.decks_out}})

    def compare(self, opened: Json | None, recorded: Any) -> None:
        """Refuses the state of a snapshot that the decisions before it do not come to; goes on from
        it where they could not be judged."""
        if not self.table and opened:
            self.begin(opened, recorded)
        if not self.table or recorded is None:
            return
        try:
            theirs, ours = _loaded("state", recorded), self.table.state
        except NotJudged as problem:
            self.table, self.why = None, str(problem)
            return
        for name, value in vars(ours).items():
            if getattr(theirs, name) != value:
                raise Wrong(f"the snapshot's state: {name} is not what the decisions come to")

    def unknown(self, what: str) -> None:
        """Ends the settlement at what a later vocabulary has, up to the next snapshot."""
        if not self.later:
            raise Wrong(f"the page does not know {what}")
        raise NotJudged(f"a later vocabulary has {what}")

    def judge(self, record: Json) -> str:
        """Checks a decision or refusal; returns why it could not be judged, if so."""
        kind = record["data"]["event"]["type"]
        try:
            if self.table:
                self.check(record, self.table)
                return ""
        except NotJudged as problem:
            self.table, self.why = None, str(problem)
        except Wrong as problem:
            raise Wrong(f"{kind} {problem}") from None
        except CANNOT as problem:
            raise Wrong(f"{kind} cannot be: {type(problem).__name__}") from problem
        return self.why

    def check(self, record: Json, table: Table) -> None:
        data, by, event = record["data"], record["by"], record["data"]["event"]
        kind = event["type"]
        if kind not in EVENTS:
            self.unknown(f"the event {kind}")
        shape = f"type:string actor?:object {EVENTS[kind][1]}"
        _shaped(event, "the event", f"{shape} *", ordered=False)
        more = [name for name in event if name not in [bare for _, bare, _ in _fields(shape)]]
        if more:
            self.unknown(f"the field {more[0]}")
        for who in (event.get("actor"), event.get("second")):
            _shaped(who or by, "a person", PERSON, ordered=False)
        if not _same({"seat": 0, **(event.get("actor") or by)}, {"seat": 0, **by}):
            raise Wrong("is by another person than its record")
        if record["kind"] == "refusal":
            self.refuse(event, by)
        else:
            table.take(event, by)
            self.check_effects(data["effects"], table)

    def refuse(self, event: Json, by: Json) -> None:
        """Refuses a refusal of an event that the rules accept."""
        assert self.table
        trial = Table(self.table.game, deepcopy(self.table.state))
        try:
            trial.take(event, by)
        except (Wrong, *CANNOT):
            return
        raise Wrong("was refused, though the rules accept it")

    def check_effects(self, effects: list[Json], table: Table) -> None:
        unknown = {one["type"] for one in effects} - {*JUDGED, *IGNORED, "Prompt"}
        if unknown:
            self.unknown(f"the effects {', '.join(sorted(unknown))}")
        facts = [one for one in effects if one["type"] in JUDGED]
        for one, made in list(zip(facts, table.made)):  # noqa: B905 (no `strict` in 3.9)
            self.check_fact(one, made)
        missing = [made["type"] for made in table.made[len(facts) :]]
        more = [one["type"] for one in facts[len(table.made) :]]
        prompts = [one for one in effects if one["type"] == "Prompt"]
        if missing or more or len(prompts) != 1:
            raise Wrong(f"lacks effects {missing}, has {more} too many, {len(prompts)} prompts")
        self.check_fields("a prompt", {**PROMPT, **prompts[0]}, table.shown())

    def check_fact(self, one: Json, made: Json) -> None:
        kind = str(made["type"])
        place = f" (seat {made['seat']}, {made['bet']})" if kind == "Settled" else ""
        self.check_fields(f"the effect {one['type']}{place}", {**JUDGED[kind], **one}, made)
        more = sorted(one.keys() - made.keys())
        if more:
            self.unknown(f"the field {more[0]} of {kind}")
        self.counts["rounds"] += kind == "RoundOver"
        if kind == "Settled":
            self.counts["hands" if made["bet"] == "main" else "side bets"] += 1

    def check_fields(self, what: str, recorded: Json, made: Json) -> None:
        for name, value in made.items():
            if not _same(recorded.get(name), value):
                told = f"{json.dumps(recorded.get(name))}, not {json.dumps(value)}"
                raise Wrong(f"has {what} in which {name} is {told}")
            self.counts["amounts"] += name in AMOUNTS and bool(value)


# --- the record -----------------------------------------------------------------------------------


@dataclass
class Boot:
    """One start of the controller, as far as it was read."""

    name: str
    last: int  # the last record before it
    end: tuple[int, int]  # the segment and the offset where that one ends
    hashes: list[Any]  # the version of its records; in version 1 also sw, conf and proc
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
    if -(-found[0] // MINUTE) > found[1] // MINUTE:  # days start at a whole one
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
        self.settlement = Settlement()
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
                said = _json(line.encode())
            except Wrong as problem:
                raise Wrong(f"{name}: {problem}") from None
            _shaped(said, name, RETIRED, ordered=False)
            for shape, parts in ((STEP, said["tree"]), (DOWN, [*said["drawn"], said["hole"]])):
                for part in parts:
                    if part is not None:
                        _shaped(part, name, shape, ordered=False)
                        if part.get("cursor"):
                            _shaped(part["cursor"], name, CURSOR, ordered=False)
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
        starts, shown = ('{"v":2,', f'{{"v":1,"table":{table},'), piece[HEAD.size :]
        ours = self.boot.name.encode() if self.boot else b""
        begins = [
            start.startswith(shown[: len(start)]) and shown[len(start) :][:16] != ours
            for start in (f'{one}"boot":"'.encode() for one in starts)
        ]
        return 1 <= n <= LONGEST and seq == self.seq + 1 and any(begins)

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
        record = _record(frame.record, [])
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
            if data["opened"]["origin"] != self.origin:
                raise Wrong("opened names another origin")
            if joins:
                self.prove_retired()
                self.lay_down(self.origin[9:-17], self.retired[-1][1])

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
        later: list[str] = []
        record = _record(frame.record, later)
        kind, cursor, table = record["kind"], record.get("cursor"), self.origin[9:-17]
        if record["seq"] != frame.seq or record.setdefault("table", table) != table:
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
        self.allow(later)
        adopts = kind == "link" and record["data"]["what"] == "adopted"
        if cursor:
            self.advance(cursor, adopts)
        if adopts:
            self.adopted.add(record["data"]["device"])
        boot.mono, boot.durable = record["mono"], frame.durable
        if boot.kind != "closed":
            boot.kind = kind
        self.over = kind == "checkpoint" and boot.kind == "closed"
        if kind != "checkpoint":
            self.unsigned.append((frame.seq, record["mono"]))
        self.trees.append(_grown(self.trees[-1], self.seq, _hash(b"\0", frame.record)))
        self.seq, self.chain = frame.seq, frame.chain
        self.utc = record["utc"]

    def allow(self, later: list[str]) -> None:
        """Names what the page does not know, where the boot has a later vocabulary than it."""
        known = self.opened.get("vocabulary", 1) <= VOCABULARY if self.opened else True
        if later and known:
            raise Wrong(f"the page does not know {later[0]}")
        for what in later:
            self.remark(f"a later vocabulary: {_plain(what)}", True)

    def check_round(self, record: Json) -> None:
        """Refuses a round that is not the one that goes on or begins."""
        kind, number = record["kind"], record["round"]
        effects = record["data"]["effects"] if kind == "decision" else ()
        locked = [one.get("round") for one in effects if one["type"] == "WagersLocked"]
        due = self.round + len(locked) if self.seq > self.base or self.number == 1 else number
        if kind != "decision" and not self.decided:
            due = max(due, number)  # the first decision shows whether that is right
        if locked or kind == "snapshot":  # what is written with a decision is in its segment
            self.began = record["mono"] if locked else -1
        with_it = record["mono"] == self.began and kind not in ("decision", "refusal")
        if with_it and number == due - 1:
            pass  # what was written together with that decision
        elif number != due or locked not in ([], [number]):
            raise Wrong(f"the record is of round {number}, not of round {due}")
        self.round = due

    def advance(self, cursor: Json, adopts: bool) -> None:
        """Refuses a cursor that does not follow the last one of its device by one."""
        device, last = cursor["device"], self.cursors.get(cursor["device"])
        if last and not adopts and device not in self.adopted:
            if cursor["epoch"] != last["epoch"]:
                raise Wrong(f"the epoch of {device} is another, and two people did not adopt it")
            if cursor["seq"] != last["seq"] + 1:
                raise Wrong(f"the cursor of {device} does not go on from {last['seq']}")
        self.adopted.discard(device)
        self.cursors[device] = cursor

    def booted(self, record: Json, durable: int) -> Boot:
        """The boot of the record, which may begin with it."""
        boot, kind, utc, mono = self.boot, record["kind"], record["utc"], record["mono"]
        hashes = [record["v"], *(record[name] for name in HASHES if name in record)]
        if boot is None or boot.name != record["boot"]:
            if record["boot"] in self.boots:
                raise Wrong(f"the boot {record['boot']} was over")
            if boot and record["v"] < boot.hashes[0]:
                raise Wrong(f"version {record['v']} follows on version {boot.hashes[0]}")
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
            raise Wrong("v, sw, conf or proc changes within a boot")
        if not boot.opened and kind not in ("opened", "snapshot", "clock"):
            raise Wrong(f"a boot begins with {kind}, not with opened")
        if boot.kind == "closed" and kind not in ("checkpoint", "snapshot", "clock", "witnessed"):
            raise Wrong(f"{kind} follows on closed")
        if boot.torn and kind not in ("tail", "snapshot"):
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
        self.settlement.compare(self.opened, data["state"])
        if self.segments == 0 and self.opened:
            self.settlement.begin(self.opened, data["state"])
            name, seq, key = self.certified(data["certificate"])
            boot.opened = -1
            if name == boot.name:
                boot.opened, boot.key = seq, key
                self.check_hashes(boot, self.opened)

    def check_hashes(self, boot: Boot, opened: Json) -> None:
        if boot.hashes not in ([1, *(opened[name][:16] for name in HASHES)], [2]):
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
        self.settlement.boot(data, self.round)
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

    def refuse(self, boot: Boot, record: Json, data: Json) -> None:
        self.judge(record)

    def judge(self, record: Json) -> None:
        """Settles again what follows from an event."""
        why = self.settlement.judge(record)
        if why:
            self.remark(f"decisions were not settled again: {why}", True)

    def decide(self, boot: Boot, record: Json, data: Json) -> None:
        event, self.decided = data["event"], True
        self.judge(record)
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
    "refusal": Reading.refuse,
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
        "settled_again": reading.settlement.counts,
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
            counts = value.items() if isinstance(value, dict) else ()
            words = ", ".join(f"{count} {what}" for what, count in counts) or value
            print(f"{name.replace('_', ' ')}: {'none' if words in (None, '') else words}")
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


def run() -> int:
    """The exit code of the program: main(), and what the system says while it runs."""
    try:
        code = main()
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except OSError as problem:
        where = "the output" if problem.filename is None else ascii(problem.filename)
        words = f"verify_record.py: error: {where}: {problem.strerror}\n"
        try:
            if not isinstance(problem, BrokenPipeError):
                os.write(2, words.encode(errors="replace"))
        except OSError:
            pass  # only the exit code can report it
        # Without Python's own end, which would try to write again what is buffered.
        os._exit(141 if isinstance(problem, BrokenPipeError) else 2 if problem.filename else 74)


if __name__ == "__main__":
    sys.exit(run())
