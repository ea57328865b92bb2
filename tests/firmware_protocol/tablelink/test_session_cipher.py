"""HELLO, labels, and the encryption of a session."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_protocol.messages import (
    MAX_FRAMES,
    SCHEMA_HASHES,
    BadFrame,
    BadKey,
    BadLabelCode,
    Capabilities,
    DeviceClass,
    DeviceState,
    FrameKind,
    FrameLimit,
    Hello,
    HelloRsp,
    KeysWiped,
    NoCommonVersion,
    NotAuthentic,
    OutOfRange,
    ProtocolError,
    Replayed,
    SchemaDiffers,
    SessionSpent,
    WrongAnswer,
    WrongDevice,
    WrongSession,
    WrongSize,
)
from firmware_protocol.tablelink import (
    Deframer,
    Frame,
    Opener,
    Sealer,
    agree,
    common_version,
    fingerprint,
    fingerprint_text,
    label_psk,
    label_text,
    pick_session,
    prologue,
    read_label,
)

KEY = bytes(range(32))
PLAIN = b"p" * 56
SEALED = Sealer(KEY, 5).seal(PLAIN)


def ask(**changes: Any) -> Hello:
    fields = {
        "version_min": 1,
        "version_max": 1,
        "device_class": DeviceClass.SHOE,
        "largest": FrameLimit.LARGE,
        "schema": SCHEMA_HASHES[1],
        "fingerprint": bytes(16),
    }
    return Hello(**{**fields, **changes})


def answer(**changes: Any) -> HelloRsp:
    fields = {
        "version_min": 1,
        "version_max": 1,
        "device_class": DeviceClass.SHOE,
        "largest": FrameLimit.MEDIUM,
        "capabilities": Capabilities.GATE,
        "schema": SCHEMA_HASHES[1],
        "fingerprint": bytes(16),
        "random": bytes(8),
        "maker": "Maker",
        "model": "Model",
        "serial": "SN-1",
        "state": DeviceState.PAIRED,
    }
    return HelloRsp(**{**fields, **changes})


# --- HELLO ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "answered", "version"),
    [
        ((1, 1), (1, 1), 1),
        ((1, 3), (1, 1), 1),
        ((1, 1), (1, 9), 1),
    ],
)
def test_the_highest_common_version_is_taken(asked: Any, answered: Any, version: int) -> None:
    said = ask(version_min=asked[0], version_max=asked[1])
    assert agree(said, answer(version_min=answered[0], version_max=answered[1])) == version
    assert common_version(ask(version_min=2, version_max=7), 1, 5) == 5


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"version_min": 2, "version_max": 15}, NoCommonVersion, "version"),
        ({"version_min": 3, "version_max": 2}, NoCommonVersion, "version"),
        ({"schema": bytes(8)}, SchemaDiffers, None),
        (
            {"device_class": DeviceClass.STATION},
            WrongDevice,
            "expected a shoe, found a station",
        ),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(
    changes: dict[str, Any], error: type[ProtocolError], words: str | None
) -> None:
    with pytest.raises(error, match=words):
        agree(ask(), answer(**changes))


def test_any_class_may_be_asked_for_and_none_answers_so() -> None:
    assert agree(ask(device_class=DeviceClass.ANY), answer(device_class=DeviceClass.STATION)) == 1
    with pytest.raises(OutOfRange):
        answer(device_class=DeviceClass.ANY).encode()


def test_the_prologue_is_both_frames_without_their_crc() -> None:
    said = Frame(FrameKind.HELLO, 9, 0, ask().encode())
    heard = Frame(FrameKind.HELLO_RSP, 9, 0, answer().encode())
    bound = prologue(said, heard)
    assert (bound, len(bound)) == (said.decoded() + heard.decoded(), 144)
    other = Frame(FrameKind.HELLO_RSP, 8, 0, answer().encode())
    for pair in ((said, other), (heard, said), (said, said)):
        with pytest.raises(WrongAnswer):
            prologue(*pair)


def test_a_session_id_is_new() -> None:
    assert pick_session(set(range(1, 0x10000)) - {77}) == 77
    assert 1 <= pick_session() <= 0xFFFF


# --- text of keys --------------------------------------------------------------------------


@given(st.binary(min_size=16, max_size=16))
def test_a_label_is_read_as_it_is_printed(code: bytes) -> None:
    printed = label_text(code)
    assert len(printed) == 44
    for typed in (printed, printed.lower().replace("-", " "), f"  {printed.replace('-', '')}\n"):
        assert read_label(typed) == code


@given(st.binary(min_size=16, max_size=16), st.integers(0, 43), st.sampled_from("0123456789ABCDEF"))
def test_a_typing_error_is_detected(code: bytes, at: int, digit: str) -> None:
    printed = label_text(code)
    if printed[at] in ("-", digit):
        return
    slipped = printed[:at] + digit + printed[at + 1 :]
    try:
        read = read_label(slipped)
    except BadLabelCode:
        return
    assert read != code  # one in 65,536 gets by; the device then refuses it


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *((text, None) for text in ("", "12", "G" * 36, "0" * 37, "0" * 36, "é" * 36)),
        ("0" * 35, "36 digits, not 35"),
    ],
)
def test_what_is_no_label_is_refused(text: str, words: str | None) -> None:
    with pytest.raises(BadLabelCode, match=words):
        read_label(text)


def test_fingerprints_and_psk() -> None:
    assert (len(fingerprint(bytes(32))), len(label_psk(bytes(16)))) == (16, 32)
    assert fingerprint(bytes(32)) != fingerprint(b"\x01" + bytes(31))
    assert fingerprint_text(bytes(range(16))) == "0001-0203-0405-0607-0809-0A0B-0C0D-0E0F"
    with pytest.raises(BadKey):
        fingerprint(bytes(31))
    for wrong in (label_psk, label_text):
        with pytest.raises(BadLabelCode):
            wrong(bytes(15))


# --- sealed frames --------------------------------------------------------------------------


@given(
    st.lists(st.sampled_from([56, 120, 226]).flatmap(lambda n: st.binary(min_size=n, max_size=n)))
)
def test_what_is_sealed_is_opened(plains: list[bytes]) -> None:
    sealer, opener, deframer = Sealer(KEY, 5), Opener(KEY, 5), Deframer()
    for counter, plain in enumerate(plains):
        (frame,) = deframer.feed(sealer.seal(plain).encode())
        assert isinstance(frame, Frame)
        assert (frame.counter, opener.open(frame)) == (counter, plain)
    assert opener.last == len(plains) - 1


def test_only_a_counter_above_the_last_one_is_accepted() -> None:
    sealer, opener = Sealer(KEY, 5), Opener(KEY, 5)
    frames = [sealer.seal(PLAIN) for _ in range(5)]
    opener.open(frames[0])
    opener.open(frames[3])  # two were lost
    for late in (frames[0], frames[2], frames[3]):
        with pytest.raises(Replayed):
            opener.open(late)
    assert opener.open(frames[4]) == PLAIN


@pytest.mark.parametrize("at", range(2, 80))
def test_every_changed_byte_is_noticed(at: int) -> None:
    """With a right CRC, as only someone at the cable would do it. Kind and n are framing's."""
    sealer, opener = Sealer(KEY, 5), Opener(KEY, 5)
    sealer.seal(PLAIN)
    frame = sealer.seal(PLAIN)
    raw = bytearray(frame.decoded())
    raw[at] ^= 1
    session, counter = struct.unpack_from("<HI", raw, 2)
    wanted = WrongSession if at in (2, 3) else NotAuthentic
    with pytest.raises((wanted, SessionSpent) if at == 7 else wanted):
        opener.open(Frame(FrameKind.DATA, session, counter, bytes(raw[8:])))
    assert (opener.last, opener.open(frame)) == (-1, PLAIN)


@pytest.mark.parametrize(
    ("opener", "frame", "error"),
    [
        (Opener(KEY, 6), SEALED, WrongSession),
        (Opener(KEY, 5, version=2), SEALED, WrongSession),
        (Opener(KEY, 5), Frame(FrameKind.HS1, 5, 0, bytes(48)), WrongSession),
        (Opener(bytes(32), 5), SEALED, NotAuthentic),
    ],
)
def test_a_frame_of_another_session_is_refused(
    opener: Opener, frame: Frame, error: type[ProtocolError]
) -> None:
    with pytest.raises(error):
        opener.open(frame)


def test_counters_come_to_an_end() -> None:
    sealer, opener = Sealer(KEY, 5), Opener(KEY, 5)
    sealer.counter = MAX_FRAMES - 1
    assert opener.open(sealer.seal(PLAIN)) == PLAIN
    with pytest.raises(SessionSpent):
        sealer.seal(PLAIN)
    with pytest.raises(SessionSpent):
        opener.open(Frame(FrameKind.DATA, 5, MAX_FRAMES, bytes(72)))


def test_only_whole_plaintexts_are_sealed() -> None:
    sealer = Sealer(KEY, 5)
    for size in (0, 55, 57, 227):
        with pytest.raises(WrongSize):
            sealer.seal(bytes(size))
    assert sealer.counter == 0
    for session in (0, 0x10000):
        with pytest.raises(BadFrame):
            Sealer(KEY, session)


def test_after_a_wipe_nothing_opens() -> None:
    sealer, opener = Sealer(KEY, 5), Opener(KEY, 5)
    sealer.wipe()
    opener.wipe()
    with pytest.raises(KeysWiped):
        sealer.seal(PLAIN)
    with pytest.raises(KeysWiped):
        opener.open(SEALED)
