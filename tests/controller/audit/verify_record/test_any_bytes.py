"""Whatever the bytes are, the verifier answers: each bit counts, and no bytes end it."""

import json
import os
import re
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.audit.verify import INVALID, verify
from tests.long.torture.altered import counted, flips, rewritings
from tests.support.audit.tools.by_page import ORIGIN, Json, Pen, b64, closed, frame, sha, started
from tests.support.audit.verifying import read_independently

fuzzed = settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzzed")


def answered(folder: Path) -> Json:
    """What is said of the record; it must be sayable."""
    found = read_independently(folder)
    assert found["exit"] in (0, 1, 3)
    assert (found["exit"] == 1) == (found["wrong"] is not None)
    assert json.loads(json.dumps(found)) == found
    return found


def segment(folder: Path, data: bytes, number: int = 1) -> None:
    (folder / "segments").mkdir(exist_ok=True)
    (folder / "segments" / f"{number:08}.seg").write_bytes(data)


def header(size: int, number: int = 1) -> bytes:
    return b"holecard log 1\n\0" + struct.pack("<II", number, size)


# --- bits


@contextmanager
def flipped(folder: Path, at: int, number: int) -> Iterator[Json]:
    with (folder / "segments" / "00000001.seg").open("r+b", buffering=0) as file:
        was = os.pread(file.fileno(), 1, at)
        os.pwrite(file.fileno(), bytes([was[0] ^ 1 << number]), at)
        yield read_independently(folder)
        os.pwrite(file.fileno(), was, at)


def small(folder: Path) -> int:
    """A closed record of one segment; where its frames end."""
    pen = started(4096)
    pen.end(folder)
    assert list(pen.files) == [1]
    return pen.frames[-1][2]


def test_two_bits_of_each_byte_of_a_closed_record_count(tmp_path: Path) -> None:
    """That which tells small letters from capitals, and another one. Every bit: `make torture`."""
    for at in range(small(tmp_path)):
        for number in {5, at % 8}:
            with flipped(tmp_path, at, number) as found:
                assert found["exit"] == 1, (at, number)
    assert read_independently(tmp_path)["exit"] == 0


def test_a_bit_behind_the_last_record_is_never_passed_over(tmp_path: Path) -> None:
    """It is found, or told as what it cannot be told from: the rest of a write that was cut off."""
    end = small(tmp_path)
    for at in [*range(end, end + 50), *range(end + 50, 4096, 7)]:
        for number in {1, 6, at % 8}:
            with flipped(tmp_path, at, number) as found:
                if found["exit"] != 1:
                    assert any("a write was cut off" in words for words in found["remarks"])
                    assert at < end + 4 or at % 512 <= 40


# --- any bytes


@fuzzed
@given(data=st.binary(max_size=6000))
def test_any_bytes_as_a_segment_are_answered(data: bytes, folder: Path) -> None:
    segment(folder, data)
    assert answered(folder)["exit"] == 1


@fuzzed
@given(data=st.binary(max_size=4072), number=st.integers(1, 3))
def test_any_bytes_behind_a_header_are_answered(data: bytes, number: int, folder: Path) -> None:
    segment(folder, (header(4096) + data).ljust(4096, b"\0"))
    assert answered(folder)["exit"] == 1


@fuzzed
@given(record=st.binary(min_size=1, max_size=2000), seq=st.integers(0, 2**64 - 1))
def test_any_record_in_a_whole_frame_is_answered(record: bytes, seq: int, folder: Path) -> None:
    segment(folder, (header(4096) + frame(seq, 0, sha(b"x"), record)).ljust(4096, b"\0"))
    assert answered(folder)["exit"] == 1


GOOD = closed(65536, rounds=1)
END = GOOD.frames[-1][2]


@fuzzed
@given(data=st.binary(max_size=3000), gap=st.sampled_from([0, 40, 512 - END % 512]))
def test_any_bytes_behind_the_last_record_are_answered(data: bytes, gap: int, folder: Path) -> None:
    file = bytes(GOOD.files[1])
    segment(folder, (file[:END] + bytes(gap) + data).ljust(len(file), b"\0"))
    assert answered(folder)["last_seq"] == GOOD.seq


@fuzzed
@given(
    pieces=st.lists(
        st.one_of(
            st.sampled_from([bytes(40), bytes(512), b"}", b'{"v":1,', b"text" * 20]),
            st.builds(
                lambda seq, durable, n: frame(seq, durable, bytes(32), b"x" * n)[: 10 + n],
                st.integers(GOOD.seq, GOOD.seq + 3),
                st.integers(GOOD.seq - 2, GOOD.seq + 2),
                st.integers(1, 600),
            ),
            st.builds(
                lambda seq, durable, n: frame(seq, durable, bytes(32), b"x" * n),
                st.integers(GOOD.seq, GOOD.seq + 3),
                st.integers(GOOD.seq - 2, GOOD.seq + 2),
                st.integers(1, 600),
            ),
        ),
        max_size=12,
    )
)
def test_tails_of_frames_and_pieces_are_answered(pieces: list[bytes], folder: Path) -> None:
    file = bytes(GOOD.files[1])
    segment(folder, (file[:END] + b"".join(pieces)).ljust(len(file), b"\0")[: len(file)])
    assert answered(folder)["last_seq"] == GOOD.seq


# --- records that say anything

ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.text(st.characters(), max_size=20),
        st.sampled_from(
            ["0" * 16, "0" * 64, "0" * 112, ORIGIN, "\ud800", "a\n\nb\n", "— a AAAA\n"]
        ),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to each value inside."""
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, (dict, list)):
        inner = list(value.items() if isinstance(value, dict) else enumerate(value))
    return [path, *(way for name, each in inner for way in places(each, (*path, name)))]


@fuzzed
@given(data=st.data(), value=ANYTHING, later=st.booleans())
def test_records_that_say_anything_are_answered(
    data: st.DataObject, value: Any, later: bool, folder: Path
) -> None:
    """One value in one record is another; CRCs and chain are right, and so is all before it."""
    old = closed(8192, rounds=3)
    which = data.draw(st.integers(0, old.seq - 1))
    pen = Pen(8192)
    for number, told in enumerate(old.records):
        record = json.loads(told)
        if record["kind"] == "snapshot":
            pen.segment()
            pen.sync()
            record["data"] |= pen.so_far()
        if number == which:
            *way, last = data.draw(st.sampled_from(places(record)[1:]))
            inner: Any = record
            for name in way:
                inner = inner[name]
            inner[last] = value
        line = json.dumps(record, separators=(",", ":")).encode()
        if not pen.room(len(line)):
            return
        pen.put(line)
    for path in (folder / "segments").glob("*.seg"):
        path.unlink()
    found = answered(pen.save(folder, 2 if later else 1))
    assert found["exit"] == 1 or found["last_seq"] == old.seq
    for path in (folder / "segments").glob("*.seg"):
        path.unlink()


@fuzzed
@given(text=st.one_of(st.text(max_size=60), st.from_regex(r"[a-z/]+\n[0-9]+\n[A-Za-z0-9+/=]*\n")))
def test_any_text_that_was_signed_is_answered(text: str, folder: Path) -> None:
    pen = started()
    clean = text.encode("utf-8", "replace").decode()
    pen.checkpoint(pen.key.sign(clean))
    pen.write("witnessed", {"note": clean})
    assert answered(pen.save(folder))["exit"] == 1


@fuzzed
@given(data=st.binary(max_size=300), name=st.sampled_from(["cosigned/5.note", "tails/x"]))
def test_any_bytes_beside_the_segments_are_answered(data: bytes, name: str, folder: Path) -> None:
    pen = started()
    tail = {"segment": 1, "offset": pen.frames[-1][2], "size": 3, "sha256": sha(b"abc").hex()}
    opened = pen.open(torn=3)
    pen.write("tail", {**tail, "file": "tails/x", "verdict": "torn"})
    pen.certify(opened)
    kept = {**tail, "verdict": "torn", "bytes": b64(b"abc")}
    for other in ("cosigned", "tails"):
        (folder / other).mkdir(exist_ok=True)
    (folder / "tails" / "x").write_text(json.dumps(kept))
    (folder / "cosigned" / "5.note").write_text(pen.note(5), encoding="utf-8")
    assert answered(pen.save(folder))["exit"] == 0
    (folder / name).write_bytes(data)
    assert answered(folder)["exit"] == 1
    (folder / "tails" / "x").unlink()
    (folder / "cosigned" / "5.note").unlink()


def test_a_tail_made_to_be_slow_is_soon_answered(tmp_path: Path) -> None:
    """A head of a long frame every eight bytes: what a search must not fall for."""
    size, most = 8 << 20, GOOD.seq + 140_000
    file = bytearray(GOOD.files[1][:END]).ljust(size, b"\0")
    file[16:24] = struct.pack("<II", 1, size)
    file[END:] = (struct.pack(f"<{most - GOOD.seq}Q", *range(most, GOOD.seq, -1)) * 8)[: size - END]
    segment(tmp_path, bytes(file))
    before = time.process_time()
    assert "the tail is unexplained" in answered(tmp_path)["wrong"]["what"]
    assert time.process_time() - before < 10


SHARE = 61
WITH_ROUNDS = closed(65536, rounds=2, boots=2)


def test_no_bit_of_a_closed_record_can_be_another(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    found = counted(flips(tmp_path / "record", SHARE, seed=7))
    assert found["bits in frames found"] > 550
    assert found["bits in zeros found"] > 50
    assert "bits in frames explained" not in found
    for what, count in found.items():
        record_property(what, count)


def test_no_rewriting_passes_for_right(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    found = counted(rewritings(tmp_path, 20, seed=7))
    shown = found.pop("shown by the record itself though all was signed again")
    assert 0 < shown <= sum(found.values())
    assert sum(found.values()) > 25
    record_property("rewritings of a record", sum(found.values()))


_FREE = re.compile(rb'(?<="name":")[^"]*|(?<="round":)[0-9]+')
"""Of the last record, which no note is of, these two may be others: it is a checkpoint itself."""


@given(st.data())
def test_whatever_stands_in_a_record_is_found_and_nothing_fails_of_it(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """The frame is right, and so are chain and tree: somebody has written it like this."""
    records = list(WITH_ROUNDS.records)
    at = data.draw(st.integers(0, len(records) - 1))
    record = records[at]
    begin = data.draw(st.integers(0, len(record) - 1))
    end = data.draw(st.integers(begin, min(len(record), begin + 12)))
    records[at] = (
        record[:begin]
        + data.draw(
            st.sampled_from(
                (
                    b"0",
                    b"-1",
                    b"1.5",
                    b"null",
                    b'""',
                    b"{}",
                    b"[]",
                    b"true",
                    b"99999999999999999999",
                    b'"\\ud800"',
                    b"\xff",
                    b" ",
                    b",",
                    b'"',
                    b'{"a":',
                    b"[" * 2000,
                    b"\\u0041",
                )
            )
        )
        + record[end:]
    )
    free = at == len(records) - 1 and any(
        one.start() <= begin <= end <= one.end() for one in _FREE.finditer(record)
    )
    if records[at] == record or free:
        return
    pen = Pen(65536)
    pen.segment()
    for each in records:
        pen.sync()
        pen.put(each)
    place = pen.save(tmp_path_factory.mktemp("record"))
    theirs = read_independently(place)
    assert (verify(place).code, theirs["exit"]) == (INVALID, INVALID)
    assert verify(place, replay=False).code == INVALID
    assert verify(place).findings[0].seq <= theirs["wrong"]["seq"]
