"""Takes a record apart, and puts it together again with other keys: whatever was changed in it is
numbered, chained and signed anew, as by somebody who holds every key of the table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias
from zlib import crc32

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controller.audit.format.merkle import EMPTY_ROOT, Span, leaf_hash
from controller.audit.format.notes import (
    TITLE,
    SignedNote,
    SigningKey,
    VerifierKey,
    base64,
    parse_base64,
    parse_checkpoint,
    parse_note,
    table_name,
)
from controller.audit.format.segments import (
    HEAD,
    HEADER_SIZE,
    SMALLEST,
    chain_start,
    chained,
    pack_header,
    segment_name,
)
from controller.audit.read.reader import segments
from tests.support.audit.tools.outside import WITNESS
from tests.support.audit.tools.signers import SECONDS

Json: TypeAlias = dict[str, Any]
Files: TypeAlias = dict[str, bytes]
"""The files of a record, by their paths in its directory."""
SPARE: Final = 640
"""Zeros behind the last frame of a segment."""


@cache
def _boot_key(boot: str) -> Ed25519PrivateKey:
    """A key for a boot of this name."""
    return Ed25519PrivateKey.from_private_bytes(sha256(f"boot {boot}".encode()).digest())


class Keys(NamedTuple):
    """The keys of somebody who controls the table's computer."""

    table: Ed25519PrivateKey
    boot: Callable[[str], Ed25519PrivateKey]
    """By the name of a boot."""


ANY_KEYS: Final = Keys(Ed25519PrivateKey.from_private_bytes(sha256(b"a table").digest()), _boot_key)
"""Keys for a record of which nobody has the keys."""


@dataclass(frozen=True)
class Entry:
    """A record in its frame."""

    record: Json
    seq: int
    """The seq that it had when the record was taken apart; that of its copies too."""
    lag: int
    """Its seq, less the highest one that was durable before."""
    signer: str = ""
    """The boot that signed the note in it."""
    behind: tuple[int, int] = (0, 0)
    """Of a `tail` record: how many segments and bytes before the end of the boot before."""
    change: Change | None = None
    """Applied when everything else was computed."""
    frame: Mapping[str, Any] = field(default_factory=dict)
    """Fields of its frame that are not as computed."""


@dataclass(frozen=True)
class Cosigned:
    """A note in `cosigned/`."""

    size: int
    signer: str
    root: bytes


@dataclass(frozen=True)
class Draft:
    """A record, taken apart."""

    name: str
    origin: str
    entries: tuple[Entry, ...]
    start: Start
    tails: Mapping[str, str]
    """The quarantined bytes in base64, by the path of their file."""
    cosigned: tuple[Cosigned, ...] = ()
    retired: tuple[Json, ...] = ()
    """The first lines of its retirements."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Further files, and other contents of its files."""
    without: frozenset[str] = frozenset()
    """Files that are removed in the end."""


@dataclass(frozen=True)
class Start:
    """What the first segment goes on from."""

    segment: int
    seq: int
    chain: bytes
    frontier: tuple[bytes, ...]


@dataclass
class Signing:
    """What is known where an entry is written: what its change can sign with."""

    origin: str
    keys: Keys | None
    tree: Span
    chain: bytes
    roots: dict[int, bytes]
    moved: dict[int, int]
    """The new seq of each record, by the one that it had."""
    opened: Json | None = None
    certificate: str | None = None
    cursors: Json = field(default_factory=dict)
    boots: dict[str, int] = field(default_factory=dict)
    """The seq of the `opened` record of each boot."""
    boot: str = ""
    former: int = 0
    """The last record before the boot."""
    end: tuple[int, int] = (0, 0)
    """The segment and the offset where that record ends."""

    def checkpoint(self, text: str, boot: str) -> str:
        return f"{text}\n{self.line(text, boot)}"

    def line(self, text: str, boot: str) -> str:
        assert self.keys is not None
        return _line(SigningKey(self.origin, self.keys.boot(boot)), text)

    def by_table(self, text: str) -> str:
        assert self.keys is not None
        return f"{text}\n{_line(SigningKey(table_name(self.origin), self.keys.table), text)}"

    def text(self, size: int) -> str:
        root = EMPTY_ROOT if size == 0 else self.roots.get(size, self.tree.root())
        return f"{self.origin}\n{size}\n{base64(root)}\n"

    def cosigned(self, size: int, boot: str) -> str:
        text = self.text(size)
        mine = WITNESS.cosigner.key_id + _cosignature(text)
        return f"{self.checkpoint(text, boot)}\N{EM DASH} {WITNESS.name} {base64(mine)}\n"


Change: TypeAlias = Callable[[Json, Signing], Json | bytes]
"""What is done to a record last; it may sign."""


def _line(key: SigningKey, text: str) -> str:
    """Signs any text, also one that a note cannot hold."""
    made = key._key.sign(text.encode(errors="surrogatepass"))
    return f"\N{EM DASH} {key.name} {base64(key.verifier.key_id + made)}\n"


def _cosignature(text: str) -> bytes:
    signed = WITNESS._key.sign(f"cosignature/v1\ntime {SECONDS}\n{text}".encode())
    return SECONDS.to_bytes(8) + signed


def encode(record: Json) -> bytes:
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()


# --- apart ------------------------------------------------------------------------------------


def taken_apart(place: Path, name: str, most: int = 0) -> Draft:
    """A right record, or its first records; whoever signed it, it is signed anew."""
    found: list[Entry] = []
    tails: dict[str, str] = {}
    signers: dict[bytes, str] = {}
    start, boot, behind, end = None, "", (0, 0), (0, 0)
    retired = [_retired(file) for file in sorted(place.glob("retired/????????.note"))]
    for said in retired:
        for text in said["certificates"]:
            _certified(text, signers)
    origin = ""
    for segment in segments(place):
        if start is None:
            tree = segment.tree
            start = Start(segment.number, segment.before.seq, segment.before.chain, tree.hashes)
            origin = segment.snapshot.origin
            if isinstance(segment.snapshot.certificate, str):
                _certified(segment.snapshot.certificate, signers)
        for frame in segment.frames:
            record = json.loads(frame.data)
            if record["boot"] != boot:
                boot, behind = record["boot"], end
            if record["kind"] == "certificate":
                _certified(record["data"]["note"], signers)
            more: dict[str, Any] = {}
            if record["kind"] in ("checkpoint", "witnessed"):
                more["signer"] = _signer(record["data"]["note"], signers)
            if record["kind"] == "tail":
                data = record["data"]
                more["behind"] = behind[0] - data["segment"], behind[1] - data["offset"]
                tails[data["file"]] = json.loads((place / data["file"]).read_text())["bytes"]
            found.append(Entry(record, frame.seq, frame.seq - frame.before, **more))
            end = segment.number, frame.end
            if len(found) == most:
                break
        if len(found) == most:
            break
    assert start is not None
    last = found[-1].seq
    notes = [(int(file.stem), file.read_text()) for file in place.glob("cosigned/*.note")]
    cosigned = tuple(
        Cosigned(size, _signer(note, signers), parse_checkpoint(parse_note(note).text).root)
        for size, note in notes
        if size <= last
    )
    return Draft(name, origin, tuple(found), start, tails, cosigned, tuple(retired))


def _retired(file: Path) -> Json:
    said: Json = json.loads(file.read_text().partition("\n")[0])
    return said


def _certified(note: str, signers: dict[bytes, str]) -> None:
    """Note which boot has the key of a certificate."""
    _, origin, boot, public, _ = parse_note(note).text[:-1].split("\n")
    signers[VerifierKey(origin, parse_base64(public)).key_id] = boot


def _signer(note: str, signers: Mapping[bytes, str]) -> str:
    read: SignedNote = parse_note(note)
    return next(signers[one.key_id] for one in read.signatures if one.key_id in signers)


# --- together ---------------------------------------------------------------------------------


class _Writer:
    """Writes the files of a draft."""

    def __init__(self, draft: Draft, keys: Keys | None) -> None:
        start = draft.start
        self._draft = draft
        self._seq, self._number = start.seq, start.segment - 1
        chain = chain_start(draft.origin) if start.seq == 0 else start.chain
        tree = Span.of(0, start.seq, start.frontier)
        self._anew = _ANEW if keys else {"snapshot": _Writer._snapshot}
        self._now = Signing(draft.origin, keys, tree, chain, {start.seq: tree.root()}, {})
        first = draft.entries[0].record["data"]
        if start.seq:
            self._now.opened, self._now.cursors = first["opened"], dict(first["cursors"])
            self._now.certificate = first["certificate"]
        self.files: Files = {}
        self._body = bytearray()
        self._leaves: list[bytes] = []

    def written(self) -> Files:
        draft, now = self._draft, self._now
        now.moved.update((seq, seq) for seq in range(draft.start.seq + 1))
        now.roots |= {one.size: one.root for one in draft.cosigned if one.size < draft.start.seq}
        for entry in draft.entries:
            self._write(entry)
        self._end_segment()
        for one in draft.cosigned:
            size = now.moved.get(one.size, one.size)
            self.files[f"cosigned/{size}.note"] = now.cosigned(size, one.signer).encode()
        for said in draft.retired:
            self._retire(said)
        self.files.update(draft.files)
        for name in draft.without:
            self.files.pop(name, None)
        return self.files

    def _write(self, entry: Entry) -> None:
        now = self._now
        seq = self._seq = self._seq + 1
        record = {**entry.record, "seq": seq, "data": dict(entry.record["data"])}
        now.moved.setdefault(entry.seq, seq)
        if "cause" in record:
            record["cause"] = now.moved.get(record["cause"], record["cause"])
        if record["kind"] == "snapshot" or not self._number:
            self._end_segment()
            self._number += 1
        if record["boot"] != now.boot:
            end = self._number, HEADER_SIZE + len(self._body)
            now.boot, now.former, now.end = record["boot"], seq - 1, end
        if record["kind"] in self._anew:
            self._anew[record["kind"]](self, record, entry)
        made: Json | bytes = record
        if entry.change is not None:
            made = entry.change(record, now)
        if isinstance(made, dict):
            self._keep(made, seq)
            data = encode(made)
        else:
            self._keep(record, seq)
            data = made
        leaf = leaf_hash(data)
        self._leaves.append(leaf)
        now.chain = chained(now.chain, leaf)
        now.tree.add(leaf)
        now.roots[seq] = now.tree.root()
        frame = {"seq": seq, "durable": max(0, seq - entry.lag), "chain": now.chain, "crc": 0}
        self._body += _frame(data, **{**frame, **entry.frame})

    def _keep(self, record: Json, seq: int) -> None:
        """Note what the next snapshots repeat."""
        now, data = self._now, record.get("data")
        cursor = record.get("cursor")
        if isinstance(cursor, dict) and isinstance(cursor.get("device"), str):
            now.cursors = {**now.cursors, cursor["device"]: cursor}
        if not isinstance(data, dict):
            return
        if record.get("kind") == "opened":
            now.opened, now.boots[now.boot] = data, seq
        if record.get("kind") == "certificate":
            now.certificate = data.get("note")

    def _end_segment(self) -> None:
        if self._number < self._draft.start.segment:
            return
        size = max(SMALLEST, HEADER_SIZE + len(self._body) + SPARE)
        whole = pack_header(self._number, size) + self._body
        self.files[f"segments/{segment_name(self._number)}"] = bytes(whole.ljust(size, b"\0"))
        self._body = bytearray()

    # --- kinds of records that contain what was computed

    def _snapshot(self, record: Json, entry: Entry) -> None:
        now, data = self._now, record["data"]
        data |= {"origin": now.origin, "segment": self._number, "chain": now.chain.hex()}
        data["frontier"] = [top.hex() for top in now.tree.hashes]
        if "opened" in data:
            data["opened"] = self._identity(now.opened or data["opened"])
        if "certificate" in data:
            if not now.boots and now.keys:  # of a boot before the first segment
                data["certificate"] = now.certificate = self._certificate(data["certificate"])
            data["certificate"] = now.certificate
        data["cursors"] = now.cursors

    def _opened(self, record: Json, entry: Entry) -> None:
        record["data"] = {**self._identity(record["data"]), "last": self._now.former}

    def _identity(self, data: Json) -> Json:
        if self._now.keys is None:
            return data
        key = SigningKey(table_name(self._now.origin), self._now.keys.table)
        return {**data, "table_key": str(key.verifier)}

    def _certificate_record(self, record: Json, entry: Entry) -> None:
        opened = self._now.boots.get(record["boot"], self._now.former + 1)
        record["data"] = {"note": self._certified(record["boot"], opened)}

    def _certificate(self, note: str) -> str:
        """The same, of the new key of its boot."""
        _, _, boot, _, seq = parse_note(note).text[:-1].split("\n")
        return self._certified(boot, self._now.boots.get(boot, int(seq)))

    def _certified(self, boot: str, opened: int) -> str:
        now = self._now
        assert now.keys is not None
        public = base64(now.keys.boot(boot).public_key().public_bytes_raw())
        return now.by_table(f"{TITLE}\n{now.origin}\n{boot}\n{public}\n{opened}\n")

    def _checkpoint(self, record: Json, entry: Entry) -> None:
        text = self._now.text(self._size(record))
        record["data"] = {"note": self._now.checkpoint(text, record["boot"])}

    def _witnessed(self, record: Json, entry: Entry) -> None:
        record["data"] = {"note": self._now.cosigned(self._size(record), entry.signer)}

    def _size(self, record: Json) -> int:
        lines = str(record["data"].get("note")).split("\n")
        size = int(lines[1]) if len(lines) > 1 and lines[1].isdecimal() else 0
        return self._now.moved.get(size, self._seq - 1)

    def _tail(self, record: Json, entry: Entry) -> None:
        now, data = self._now, record["data"]
        if data.get("file") not in self._draft.tails:
            return
        segment, offset = now.end[0] - entry.behind[0], now.end[1] - entry.behind[1]
        record["data"] = data = {**data, "segment": segment, "offset": offset}
        kept = {name: value for name, value in data.items() if name != "file"}
        kept["bytes"] = self._draft.tails[data["file"]]
        self.files[data["file"]] = encode(kept)

    # --- what stands for segments that are gone

    def _retire(self, said: Json) -> None:
        now, start = self._now, self._draft.start.seq
        text = said["checkpoint"].rpartition("\n\n")[0] + "\n"
        signer = said["certificates"][-1].split("\n")[2]
        steps, former = [], 0
        for one in said["tree"]:
            step = one
            if step["size"] > start and self._draft.retired[-1] is said:
                begin, end = max(former, start), min(step["size"], self._seq)
                grown = Span(begin)
                grown.grow(self._leaves[begin - start : end - start])
                step = {"size": end, "hashes": [top.hex() for top in grown.hashes]}
                text = now.text(end)
            steps.append(step)
            former = step["size"]
        made = {
            **said,
            "tree": steps,
            "certificates": [self._certificate(one) for one in said["certificates"]],
            "checkpoint": now.checkpoint(text, signer),
        }
        self.files[f"retired/{said['segments'][1]:08}.note"] = retirement(made, now)


_ANEW: Final[dict[str, Callable[[_Writer, Json, Entry], None]]] = {
    "snapshot": _Writer._snapshot,
    "opened": _Writer._opened,
    "certificate": _Writer._certificate_record,
    "checkpoint": _Writer._checkpoint,
    "witnessed": _Writer._witnessed,
    "tail": _Writer._tail,
}


def retirement(said: Json, now: Signing) -> bytes:
    line = encode(said)
    text = f"holecard retired 1\n{now.origin}\n{sha256(line).hexdigest()}\n"
    return line + b"\n" + now.by_table(text).encode()


def _frame(data: bytes, *, seq: int, durable: int, chain: bytes, crc: int) -> bytes:
    """A frame; `crc` is what its CRC differs by."""
    head = HEAD.pack(len(data), 0, seq, durable, chain)
    check = crc32(data, crc32(head[8:], crc32(head[:4]))) ^ crc
    return HEAD.pack(len(data), check, seq, durable, chain) + data


def put_together(draft: Draft, keys: Keys | None = ANY_KEYS) -> Files:
    """The files of a record, with everything computed anew; without keys nothing is signed."""
    return _Writer(draft, keys).written()


def save(files: Mapping[str, bytes], place: Path) -> Path:
    """Write the files of a record into a new directory."""
    (place / "segments").mkdir(parents=True)
    for name, data in files.items():
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return place


def changed(draft: Draft, at: int, change: Change) -> Draft:
    """The draft with one record changed, after everything was computed."""
    entries = list(draft.entries)
    entries[at] = replace(entries[at], change=change)
    return replace(draft, entries=tuple(entries))
