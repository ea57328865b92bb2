"""Writes records as FORMAT.md says, and as it does not: a second pen that shares no code with ours.

Slow and simple on purpose: the tree is the definition of RFC 6962, done anew each time.
"""

import base64
import hashlib
import json
import struct
import zlib
from collections.abc import Callable
from datetime import UTC as UTC_ZONE
from datetime import datetime
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

Json = dict[str, Any]
TABLE, ORIGIN = "BJ-07", "holecard/BJ-07/00112233445566ff"
HEADER = 24
MONO, UTC = 5_000_000_000, 1_767_225_600_000_000
GAME = {"options": {"decks": 6, "name": "Zürich"}, "jurisdiction": "demo"}


def sha(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def tree_hash(leaves: list[bytes]) -> bytes:
    if len(leaves) < 2:
        return leaves[0] if leaves else sha()
    half = 1 << (len(leaves) - 1).bit_length() - 1
    return sha(b"\1", tree_hash(leaves[:half]), tree_hash(leaves[half:]))


def subtrees(leaves: list[bytes]) -> list[bytes]:
    roots = []
    while leaves:
        whole = 1 << len(leaves).bit_length() - 1
        roots.append(tree_hash(leaves[:whole]))
        leaves = leaves[whole:]
    return roots


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


CODE = sha(b"the code of the procedure")
WHOLE = {
    "sw": sha(b"software").hex(),
    "conf": sha(b"configuration").hex(),
    "proc": sha(CODE, compact(GAME)).hex(),
}
SINCE_2 = {
    "vocabulary": 1,
    "release": sha(b"all files").hex(),
    "dependencies": sha(b"other files").hex(),
    "runs": "source",
}


class Signer:
    """An Ed25519 key with a name, always the same for the same words."""

    def __init__(self, name: str, words: str = "") -> None:
        self.name = name
        self.key = Ed25519PrivateKey.from_private_bytes(sha(name.encode(), words.encode()))
        self.public = self.key.public_key().public_bytes_raw()

    def id(self, kind: int = 1) -> bytes:
        return sha(self.name.encode(), b"\n", bytes([kind]), self.public)[:4]

    def vkey(self, kind: int = 1) -> str:
        return f"{self.name}+{self.id(kind).hex()}+{b64(bytes([kind]) + self.public)}"

    def line(self, text: str) -> str:
        return f"— {self.name} {b64(self.id() + self.key.sign(text.encode()))}\n"

    def sign(self, text: str) -> str:
        return f"{text}\n{self.line(text)}"

    def cosign(self, note: str, seconds: int = 1_767_225_700) -> str:
        text = note.rpartition("\n\n")[0] + "\n"
        signature = self.key.sign(f"cosignature/v1\ntime {seconds}\n{text}".encode())
        data = self.id(4) + seconds.to_bytes(8, "big") + signature
        return f"{note}— {self.name} {b64(data)}\n"


WITNESS = Signer("witness.example")


def frame(seq: int, durable: int, chain: bytes, record: bytes) -> bytes:
    size = struct.pack("<I", len(record))
    rest = struct.pack("<QQ", seq, durable) + chain + record
    return size + struct.pack("<I", zlib.crc32(size + rest)) + rest


def opening(card: int, nonce: int = 7) -> bytes:
    """What the shoe said of a card (byte 6 of it), and a nonce."""
    return bytes([nonce]) * 32 + bytes([1, 0, 0, 0, 0, 0, card]) + bytes(17)


def commitment(cursor: Json, opened: bytes) -> str:
    device = cursor["device"].encode()
    numbers = struct.pack("<II", cursor["epoch"], cursor["seq"])
    return sha(b"holecard-v1\0", TABLE.encode(), b"\0", device, b"\0", numbers, opened).hex()


class Pen:
    """A record in the making. What a test does not say is as the page wants it."""

    def __init__(self, size: int = 16384, segments: int = 0, version: int = 2) -> None:
        self.size, self.number, self.version = size, segments, version
        self.files: dict[int, bytearray] = {}
        self.frames: list[tuple[int, int, int]] = []  # segment, offset and end of each
        self.records: list[bytes] = []
        self.leaves: list[bytes] = []
        self.seq, self.durable, self.chain = 0, 0, sha(b"holecard-record/1\n", ORIGIN.encode())
        self.mono, self.utc, self.round, self.boots = MONO, UTC, 0, 0
        self.boot = ""
        self.table_key, self.key = Signer(f"{ORIGIN}/table"), Signer(ORIGIN)
        self.opened: Json | None = None
        self.certificate: str | None = None
        self.cursors: Json = {}
        self.state: Json | None = None
        self.turns: dict[str, int] = {}
        self.snapshots: Callable[[Json], object] = lambda data: None
        """What a test does to the snapshots that follow."""

    # --- bytes

    def save(self, folder: Path, first: int = 1) -> Path:
        (folder / "segments").mkdir(parents=True, exist_ok=True)
        for number, data in self.files.items():
            if number >= first:
                (folder / "segments" / f"{number:08}.seg").write_bytes(data)
        return folder

    def segment(self) -> None:
        self.number += 1
        head = b"holecard log 1\n\0" + struct.pack("<II", self.number, self.size)
        self.files[self.number] = bytearray(head.ljust(self.size, b"\0"))

    def put(self, record: bytes, **wrong: Any) -> int:
        """A frame with the record; `wrong` are fields of the frame to be other than right."""
        self.seq += 1
        leaf = sha(b"\0", record)
        self.leaves.append(leaf)
        self.chain = sha(self.chain, leaf)
        right = {"seq": self.seq, "durable": self.durable, "chain": self.chain}
        data = frame(record=record, **{**right, **wrong})
        at = self.frames[-1][2] if self.frames and self.frames[-1][0] == self.number else HEADER
        self.files[self.number][at : at + len(data)] = data
        assert len(self.files[self.number]) == self.size, "the frame has no room"
        self.frames.append((self.number, at, at + len(data)))
        self.records.append(record)
        return self.seq

    def room(self, size: int) -> bool:
        at = self.frames[-1][2] if self.frames and self.frames[-1][0] == self.number else HEADER
        return bool(self.files) and at + 56 + size <= self.size

    def sync(self) -> None:
        self.durable = self.seq

    # --- records

    def record(self, kind: str, data: Json, **more: Any) -> Json:
        day = datetime.fromtimestamp(self.utc // 1_000_000, UTC_ZONE).date().isoformat()
        by, old = {"role": "device", "name": "controller"}, self.version == 1
        record = {
            "v": self.version,
            **({"table": TABLE} if old else {}),
            "boot": self.boot,
            "seq": self.seq + 1,
            **({"day": day} if old or "day" in more else {}),
            "utc": self.utc,
            "mono": self.mono,
            "clock": "synced",
            "round": self.round,
            "kind": kind,
            **({"by": by} if old or "by" in more else {}),
            **({name: whole[:16] for name, whole in WHOLE.items()} if old else {}),
        }
        if "cause" in more:
            record["cause"] = more.pop("cause")
        if "cursor" in more:
            record["cursor"] = more.pop("cursor")
        return {**record, "data": data, **more}

    def write(
        self, kind: str, data: Json, mangle: Callable[[bytes], bytes] | None = None, **more: Any
    ) -> int:
        """A record of this kind; `more` are fields to add or to make other than right."""
        self.mono += 1_000_000
        self.utc += 1_000
        wrong = {name[6:]: more.pop(name) for name in list(more) if name.startswith("frame_")}
        if not self.room(len(self.line(self.record(kind, data, **more), mangle))):
            self.sync()
            self.segment()
            self.snapshot()
        seq = self.put(self.line(self.record(kind, data, **more), mangle), **wrong)
        cursor = more.get("cursor")
        if cursor:
            self.cursors[cursor["device"]] = cursor
        return seq

    def line(self, record: Json, mangle: Callable[[bytes], bytes] | None = None) -> bytes:
        return mangle(compact(record)) if mangle else compact(record)

    def so_far(self) -> Json:
        frontier = [root.hex() for root in subtrees(self.leaves)]
        return {"chain": self.chain.hex(), "frontier": frontier}

    def snapshot(self) -> int:
        data: Json = {"origin": ORIGIN, "segment": self.number, **self.so_far()}
        if self.opened:
            data["opened"] = self.opened
        if self.certificate:
            data["certificate"] = self.certificate
        data |= {"cursors": self.cursors, "state": self.state}
        self.snapshots(data)
        return self.put(self.line(self.record("snapshot", data)))

    def next_segment(self) -> None:
        self.segment()
        self.snapshot()

    def open(self, torn: int = 0, **wrong: Any) -> int:
        """A new boot, up to its opened."""
        last = self.seq
        self.sync()
        self.boots += 1
        self.boot = f"{self.boots:016x}"
        self.key = Signer(ORIGIN, self.boot)
        if not self.files:
            self.segment()
            self.snapshot()
        data = {
            "origin": ORIGIN,
            "software": "holecard 0.1.0",
            **WHOLE,
            "code": CODE.hex(),
            "game": GAME,
            "table_key": self.table_key.vkey(),
            "last": last,
            "torn": torn,
            "readback": "direct",
            **({} if self.version == 1 else SINCE_2),
            **wrong,
        }
        seq = self.write("opened", data)
        self.opened = data
        return seq

    def start(self) -> None:
        self.certify(self.open())
        self.checkpoint()

    def certify(self, opened: int, boot: str = "", by: Signer | None = None) -> int:
        lines = [
            "holecard boot key 1",
            ORIGIN,
            boot or self.boot,
            b64(self.key.public),
            str(opened),
        ]
        note = (by or self.table_key).sign("\n".join(lines) + "\n")
        seq = self.write("certificate", {"note": note})
        self.certificate = note
        return seq

    def note(self, size: int | None = None, by: Signer | None = None) -> str:
        size = self.seq if size is None else size
        return (by or self.key).sign(f"{ORIGIN}\n{size}\n{b64(tree_hash(self.leaves[:size]))}\n")

    def checkpoint(self, note: str | None = None) -> int:
        seq = self.write("checkpoint", {"note": note or self.note()})
        self.sync()
        return seq

    def close(self) -> int:
        self.write("closed", {})
        return self.checkpoint()

    def end(self, folder: Path) -> Path:
        """Close the record and save it."""
        self.close()
        return self.save(folder)

    def cursor(self, device: str = "SHOE-1", **wrong: Any) -> Json:
        turn = self.turns[device] = self.turns.get(device, 0) + 1
        right = {"device": device, "epoch": 3, "seq": turn, "chain": f"{turn:016x}"}
        return {**right, "boot": 9, "t_us": turn * 1000, **wrong}

    def decide(
        self, event: Json, mangle: Callable[[bytes], bytes] | None = None, **more: Any
    ) -> int:
        effects = [{"type": "Prompt"}, *more.pop("effects", ())]
        if self.version == 1:
            event = {"actor": {"role": "device", "name": "controller", "seat": 0}, **event}
        data: Json = {"event": event, "rows": ["deal.up"], "effects": effects}
        if "sealed" in more:
            data["sealed"] = more.pop("sealed")
        seq = self.write("decision", data, mangle, **more)
        self.state = {"step": event["type"]}
        return seq

    def lock(self) -> int:
        """Begin a round."""
        number = self.round + 1
        locked = {"type": "WagersLocked", "round": number}
        seq = self.decide({"type": "CardDrawn"}, effects=[locked], round=number)
        self.round = number
        return seq

    # --- hole cards

    def hole(self, card: int = 12, kind: str = "HoleDealt", **more: Any) -> str:
        """Lays a hidden card; its commitment."""
        cursor = self.cursor()
        digest = commitment(cursor, opening(card))
        event = {"type": kind, "commitment": digest}
        self.decide(event, cursor=cursor, sealed=b64(bytes(range(104))), **more)
        return digest

    def reveal(self, card: int = 12, opened: bytes | None = None, **more: Any) -> int:
        shown = (opening(card) if opened is None else opened).hex()
        return self.decide({"type": "HoleRevealed", "card": card, "opening": shown}, **more)

    def play(self, rounds: int = 1) -> None:
        for _ in range(rounds):
            wager = self.lock()
            self.decide({"type": "CardDealt", "card": 3}, cursor=self.cursor(), cause=wager)
            self.hole()
            self.write("device", {"what": "button", "seat": 2}, cursor=self.cursor("ST-2"))
            self.reveal()
            self.checkpoint()


def started(size: int = 16384, rounds: int = 0, version: int = 2) -> Pen:
    """A record with an open boot."""
    pen = Pen(size, version=version)
    pen.start()
    pen.play(rounds)
    return pen


def closed(size: int = 16384, rounds: int = 3, boots: int = 1) -> Pen:
    """A record in good order."""
    pen = Pen(size)
    for _ in range(boots):
        pen.start()
        pen.play(rounds)
        pen.close()
    return pen
