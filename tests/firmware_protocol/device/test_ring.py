"""The file of the ring, and its content after a restart at any byte of a write."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest

from firmware_protocol.device import FolderProblem
from firmware_protocol.device.ring import (
    MARK_SIZE,
    NOTHING_ACKED,
    RECORD_SIZE,
    SLOT_SIZE,
    AckedPosition,
    Ring,
)
from firmware_protocol.messages import Power, PowerCause, Progress
from firmware_protocol.tablelink import NO_CHAIN, chained

EPOCH = 0xABCDEF01
START = 24


def made(tmp_path: Path, count: int, capacity: int = 128) -> Ring:
    ring = Ring.create(tmp_path / "ring", EPOCH, capacity, sync=False)
    for _ in range(count):
        ring.commit(following(ring))
    return ring


def following(ring: Ring) -> bytes:
    seq = ring.head + 1
    event = Progress(seq % 100) if seq > 1 else Power(PowerCause.POWER_ON)
    return chained(
        ring.chain, epoch=ring.epoch, seq=seq, boot=1, t_us=seq * 1000, event=event
    ).encode()


def opened(ring: Ring) -> Ring:
    return Ring.open(ring.path, sync=False)


def test_the_golden_records_are_found_again(tmp_path: Path) -> None:
    vector = json.loads(
        resources.files("firmware_protocol").joinpath("vectors/v1/chain.json").read_text()
    )
    ring = Ring.create(tmp_path / "ring", vector["epoch"], 128, sync=True)
    for record in vector["records"]:
        ring.commit(bytes.fromhex(record["bytes"]))
    again = opened(ring)
    assert (again.oldest, again.head, again.torn, again.damaged) == (1, 4, False, 0)
    assert [again.record(seq).hex() for seq in (1, 2, 3, 4)] == [
        record["bytes"] for record in vector["records"]
    ]
    assert again.chain.hex() == vector["records"][-1]["chain"]


def test_a_new_ring_holds_nothing(tmp_path: Path) -> None:
    ring = opened(made(tmp_path, 0))
    assert (ring.epoch, ring.oldest, ring.head, ring.chain) == (EPOCH, 1, 0, NO_CHAIN)
    assert (ring.torn, ring.path.stat().st_mode & 0o777, ring.holds(0)) == (False, 0o600, False)
    with pytest.raises(LookupError, match="record 1 is not in the ring: 1 to 0"):
        ring.record(1)


@pytest.mark.parametrize("count", [1, 2, 127, 128, 129, 130, 200, 256, 257, 300])
def test_it_goes_round(tmp_path: Path, count: int) -> None:
    ring = made(tmp_path, count)
    again = opened(ring)
    oldest = max(1, count - 127)
    for one in (ring, again):
        assert (one.oldest, one.head, one.torn, one.damaged) == (oldest, count, False, 0)
        assert (one.holds(oldest - 1), one.holds(count + 1)) == (False, False)
    assert [again.record(seq) for seq in range(oldest, count + 1)] == [
        ring.record(seq) for seq in range(oldest, count + 1)
    ]


@pytest.mark.parametrize("count", [0, 1, 60, 127, 128, 129, 200, 300])
def test_a_torn_record_is_seen_at_every_byte(tmp_path: Path, count: int) -> None:
    ring = made(tmp_path, count)
    whole = ring.path.read_bytes()
    record = following(ring)
    ring.acked = ring.position(count)
    new = ring.acked.encode() + record
    at = START + SLOT_SIZE * (count % 128)
    before = whole[at : at + SLOT_SIZE]
    for size in range(SLOT_SIZE + 1):
        ring.path.write_bytes(whole)
        ring.tear(record, size)
        slot = new[:size] + before[size:]
        assert ring.path.read_bytes()[at : at + SLOT_SIZE] == slot
        again = opened(ring)
        assert again.head == count + (slot[MARK_SIZE:] == record)
        assert again.torn == (slot[MARK_SIZE:] not in (before[MARK_SIZE:], record)), size
        # Only a complete record has moved the acknowledged position.
        assert again.acked == (ring.acked if again.head > count else NOTHING_ACKED)
        assert again.damaged == 0
        # The record takes the torn one's place, and nothing else is lost.
        if again.head == count:
            again.commit(record)
        last = opened(again)
        assert (last.head, last.torn, last.damaged) == (count + 1, False, 0)
        assert last.oldest == max(1, count - 126)


def test_a_torn_record_of_a_full_lap_takes_the_oldest_with_it(tmp_path: Path) -> None:
    ring = made(tmp_path, 200)
    ring.tear(following(ring), SLOT_SIZE // 2)
    again = opened(ring)
    assert (again.torn, again.oldest, again.head) == (True, 74, 200)


@pytest.mark.parametrize("offset", [0, 7, 22, 30, 47, 48, 55])
def test_a_damaged_record_ends_what_is_readable(tmp_path: Path, offset: int) -> None:
    ring = made(tmp_path, 100)
    data = bytearray(ring.path.read_bytes())
    data[START + SLOT_SIZE * 39 + MARK_SIZE + offset] ^= 0x10  # record 40
    ring.path.write_bytes(data)
    again = opened(ring)
    assert again.head == 100
    # Another chain in record 40 cannot be distinguished from damage to 41.
    assert (again.damaged, again.oldest) == (40 if offset < 48 else 41, again.damaged + 1)


def test_what_was_acknowledged_at_the_last_commit_is_read_again(tmp_path: Path) -> None:
    ring = made(tmp_path, 5)
    ring.acked = ring.position(3)
    ring.commit(following(ring))
    assert opened(ring).acked == AckedPosition(3, ring.record(3)[48:])
    ring.acked = ring.position(5)  # not stored before the next commit
    assert opened(ring).acked.seq == 3
    ring.commit(following(ring))
    assert opened(ring).acked == AckedPosition(5, ring.record(5)[48:])
    data = bytearray(ring.path.read_bytes())
    data[START + SLOT_SIZE * 6 + 2] ^= 1  # that of record 7: the one before counts
    ring.path.write_bytes(data)
    again = opened(ring)
    assert (again.head, again.damaged, again.acked.seq) == (7, 0, 3)


def test_the_chain_of_a_position_outlasts_its_record(tmp_path: Path) -> None:
    ring = made(tmp_path, 60)
    ring.acked = ring.position(60)
    for _ in range(128):
        ring.commit(following(ring))
    assert (ring.oldest, opened(ring).acked) == (61, ring.acked)
    assert ring.position(60) == ring.acked
    assert ring.position(59) == AckedPosition(59, NO_CHAIN)
    assert RECORD_SIZE + MARK_SIZE == SLOT_SIZE


def test_damage_to_the_first_record_is_seen(tmp_path: Path) -> None:
    ring = made(tmp_path, 3)
    data = bytearray(ring.path.read_bytes())
    data[START + MARK_SIZE + 30] ^= 1
    ring.path.write_bytes(data)
    again = opened(ring)
    assert (again.damaged, again.oldest, again.head) == (1, 2, 3)


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (lambda data: b"", "is not a ring"),
        (lambda data: b"not a ring at all, but long enough to be looked at", "is not a ring"),
        (lambda data: data[:20], "is not a ring"),
        (lambda data: data[:12] + b"\1" + data[13:], "has a damaged header"),
        (lambda data: data[:-1], "has 9239 bytes"),
        (lambda data: data + bytes(SLOT_SIZE), "has 9312 bytes"),
        (lambda data: data[:START] + b"\xff" * (len(data) - START), "has no complete record"),
    ],
)
def test_a_damaged_or_foreign_file_is_named(tmp_path: Path, spoil: object, what: str) -> None:
    ring = made(tmp_path, 3)
    assert callable(spoil)
    ring.path.write_bytes(spoil(ring.path.read_bytes()))
    with pytest.raises(FolderProblem, match=what) as problem:
        opened(ring)
    assert problem.value.where == str(ring.path)
    assert "allowed" not in problem.value.what + problem.value.allowed
