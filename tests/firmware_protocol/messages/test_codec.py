"""Every message and payload: there and back, and nothing but named errors for anything else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple, replace
from rich.pretty import pretty_repr

from firmware_protocol.messages import (
    MESSAGES,
    Alert,
    Arm,
    BadPadding,
    BadText,
    Button,
    ButtonMask,
    Capabilities,
    CardFlags,
    CardRead,
    DeviceClass,
    DeviceState,
    Edge,
    EvtAck,
    Fault,
    FaultCode,
    FrameLimit,
    Hello,
    HelloRsp,
    LampPattern,
    Lamps,
    Lock,
    LockState,
    LogPressure,
    OutOfRange,
    Payload,
    PlaintextType,
    Power,
    ProtocolError,
    RereadReply,
    ReservedMessage,
    Side,
    Tamper,
    TamperSource,
    UnknownMessage,
    UnknownType,
    WhichButton,
    WrongClass,
    WrongDirection,
    WrongSize,
)
from firmware_protocol.tablelink import (
    NO_CHAIN,
    PLAINTEXT_SIZES,
    CommandCall,
    CommandReply,
    EventRecord,
    Plaintext,
    chained,
    decode_plaintext,
    encode_plaintext,
)
from tests.support.firmware_protocol.strategies import any_payload, any_plaintext

CARD = CardRead(1, 2, 50, 99, 0xFE, CardFlags.DUPLICATE, 120, 3, b"saltysalty!")
ANSWER = HelloRsp(
    1,
    1,
    DeviceClass.SHOE,
    FrameLimit.LARGE,
    Capabilities.GATE,
    bytes(8),
    bytes(16),
    bytes(8),
    "Maker & Sons",
    "Shoe",
    "SN-1",
    DeviceState.PAIRED,
)


def wrong(value: Any) -> Any:
    """A value that its field's type does not allow."""
    return value


@given(any_payload())
def test_payload_round_trip(one: Payload) -> None:
    body = one.encode()
    assert len(body) == one.SPEC.size
    again = type(one).decode(body)
    assert again == one
    assert [type(value) for value in astuple(again)] == [type(value) for value in astuple(one)]


def test_a_message_has_the_fields_of_its_form_in_its_order() -> None:
    kinds: list[type[Payload]] = [*MESSAGES.values(), Hello, HelloRsp, Alert]
    for kind in kinds:
        assert kind.__struct_fields__ == kind.SPEC.fields


@given(any_plaintext())
def test_plaintext_round_trip(one: Plaintext) -> None:
    data = encode_plaintext(one)
    assert len(data) in PLAINTEXT_SIZES
    sender: Side = "host" if isinstance(one, CommandCall) else "device"
    if not isinstance(one, EventRecord | CommandCall | CommandReply):
        sender = one.FROM
    assert decode_plaintext(data, sender=sender) == one


@given(any_payload(), st.data())
def test_a_changed_payload_is_decoded_as_it_is_or_refused(one: Payload, data: Any) -> None:
    body = bytearray(one.encode())
    if body:
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        again = type(one).decode(bytes(body))
    except ProtocolError:
        return
    assert again.encode() == bytes(body)


@given(
    st.sampled_from(PLAINTEXT_SIZES).flatmap(lambda size: st.binary(min_size=size, max_size=size))
    | st.binary(max_size=300),
    st.sampled_from(["host", "device"]),
    st.integers(0, 5),
    st.integers(0, 255),
)
def test_any_bytes_are_a_plaintext_or_a_named_error(
    data: bytes, sender: Any, kind: int, ident: int
) -> None:
    if len(data) > 2:
        data = bytes([kind]) + data[1:]
        at = 22 if kind == PlaintextType.EVENT else 2
        data = data[:at] + bytes([ident]) + data[at + 1 :]
    try:
        what = decode_plaintext(data, sender=sender)
    except ProtocolError:
        return
    assert encode_plaintext(what) == data


@given(any_plaintext(), st.data())
def test_a_changed_plaintext_never_decodes_as_another_one(one: Plaintext, data: Any) -> None:
    raw = bytearray(encode_plaintext(one))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    for sender in ("host", "device"):
        try:
            what = decode_plaintext(bytes(raw), sender=sender)
        except ProtocolError:
            continue
        assert encode_plaintext(what) == bytes(raw)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: LogPressure(101), OutOfRange, "LOG_PRESSURE.used: 101 is not 0 to 100"),
        (lambda: LogPressure(-1), OutOfRange, "LOG_PRESSURE.used"),
        (lambda: Power(wrong(9)), OutOfRange, "POWER.cause: 9 is not an allowed PowerCause"),
        (lambda: Tamper(TamperSource.CASE, wrong(2)), OutOfRange, "neither 0 nor 1"),
        (lambda: Fault(FaultCode.NONE, 0), OutOfRange, "FAULT.code"),
        (lambda: Fault(FaultCode.RING, 1 << 32), OutOfRange, "not fit"),
        (lambda: Arm(0, ButtonMask(0), 0, 0), OutOfRange, "ARM.seat"),
        (lambda: Arm(1, wrong(1 << 9), 0, 0), OutOfRange, "ARM.mask: 0x200 has bits"),
        (
            lambda: Lamps(1, b"rg", LampPattern.OFF, 0, 0),
            WrongSize,
            "LAMPS.rgb: has 2 bytes, not 3",
        ),
        (lambda: EvtAck(0, 1, 8), OutOfRange, "EVT_ACK.epoch"),
        (lambda: EvtAck(1, 1, 9), OutOfRange, "EVT_ACK.window"),
        (lambda: RereadReply(bytes(55)), WrongSize, "REREAD_REPLY.record"),
    ],
)
def test_what_is_out_of_range_is_not_encoded(
    make: Any, error: type[ProtocolError], words: str
) -> None:
    with pytest.raises(error) as caught:
        make().encode()
    assert words in str(caught.value)


@pytest.mark.parametrize("text", ["", " x", "x ", "a\0b", "ä", "x" * 17, "\x7f", "tab\t"])
def test_a_text_that_is_none_is_refused_both_ways(text: str) -> None:
    with pytest.raises(BadText):
        replace(ANSWER, maker=text).encode()
    raw = bytearray(ANSWER.encode())
    raw[40:56] = text.encode("latin1")[:16].ljust(16, b"\0")
    if len(text) <= 16:
        with pytest.raises(BadText):
            HelloRsp.decode(bytes(raw))


def test_a_serial_number_is_one_word() -> None:
    for serial in ("two words", "a/b", "x" * 21):
        with pytest.raises(BadText):
            replace(ANSWER, serial=serial).encode()


def test_padding_must_be_zero() -> None:
    raw = bytearray(Hello(1, 1, DeviceClass.ANY, FrameLimit.LARGE, bytes(8), bytes(16)).encode())
    Hello.decode(bytes(raw))
    raw[5] = 1
    with pytest.raises(BadPadding, match="HELLO: bytes 4 to 7 are not zero"):
        Hello.decode(bytes(raw))


OPEN = CommandCall(1, 2, Lock(LockState.OPEN))
RECORD = chained(bytes(8), epoch=1, seq=1, boot=1, t_us=0, event=CARD)
PRESSURE = chained(bytes(8), epoch=1, seq=1, boot=1, t_us=0, event=LogPressure(75))


@pytest.mark.parametrize(
    ("what", "at", "byte", "sender", "error"),
    [
        (OPEN, 0, 9, "host", UnknownType),
        (OPEN, 1, 1, "host", BadPadding),
        (OPEN, 2, 0x7E, "host", UnknownMessage),
        (OPEN, 2, 0x10, "host", UnknownMessage),  # an event's id
        (OPEN, 2, 0x48, "host", ReservedMessage),
        (OPEN, 3, 2, "host", WrongSize),
        (OPEN, 4, 0, "host", OutOfRange),
        (OPEN, 8, 0, "host", OutOfRange),
        (OPEN, 16, 2, "host", OutOfRange),
        (OPEN, 17, 1, "host", BadPadding),
        (OPEN, 55, 1, "host", BadPadding),
        (OPEN, 55, 0, "device", WrongDirection),
        (PRESSURE, 1, 1, "device", BadPadding),
        (PRESSURE, 2, 0, "device", OutOfRange),
        (PRESSURE, 47, 1, "device", BadPadding),
        (PRESSURE, 55, 0, "host", WrongDirection),
    ],
)
def test_a_plaintext_is_refused_by_the_right_name(
    what: Any, at: int, byte: int, sender: Any, error: type[ProtocolError]
) -> None:
    raw = bytearray(encode_plaintext(what))
    raw[at] = byte
    with pytest.raises(error):
        decode_plaintext(bytes(raw), sender=sender)


def test_size_and_class_are_the_messages_own() -> None:
    reread = encode_plaintext(CommandReply(1, 2, RereadReply(RECORD.encode())))
    lock = encode_plaintext(OPEN)
    assert len(reread) == 120
    with pytest.raises(WrongSize):
        decode_plaintext(reread[:56], sender="device")
    with pytest.raises(WrongSize):
        decode_plaintext(lock.ljust(120, b"\0"), sender="host")
    with pytest.raises(WrongClass, match="LOCK: belongs to a shoe"):
        decode_plaintext(lock, sender="host", device_class=DeviceClass.STATION)
    assert decode_plaintext(lock, sender="host", device_class=DeviceClass.SHOE) == OPEN


def test_a_record_is_chained_to_the_one_before() -> None:
    second = chained(RECORD.chain, epoch=1, seq=2, boot=1, t_us=5, event=CARD)
    assert RECORD.follows(NO_CHAIN)
    assert (second.follows(RECORD.chain), second.follows(NO_CHAIN)) == (True, False)
    with pytest.raises(OutOfRange):
        chained(bytes(8), epoch=1, seq=0, boot=1, t_us=0, event=CARD)
    with pytest.raises(WrongSize):
        EventRecord(1, 1, 1, 0, CARD, b"short").encode()


def test_nothing_shows_a_card() -> None:
    """The repr, the pretty print and the errors of a message do not contain its card."""
    for one in (CARD, RECORD, RereadReply(RECORD.encode()), CommandReply(1, 2, RereadReply(b""))):
        for shown in (repr(one), str(one), f"{one}", pretty_repr(one)):
            assert not any(sign in shown for sign in ("50", "salty")), shown
    wrong = CardRead(1, 2, 77, 99, 0xFE, CardFlags(0), 120, 3, b"saltysalty!")
    for attempt in (wrong.encode, lambda: CardRead.decode(CARD.encode()[:6] + b"\x4d" * 18)):
        with pytest.raises(OutOfRange) as caught:
            attempt()
        assert "77" not in str(caught.value)
        assert (caught.value.__suppress_context__, caught.value.__context__) == (True, None)
    button = Button(1, WhichButton.HIT, Edge.DOWN, 0, 1, 7)
    assert all("HIT" in shown for shown in (repr(button), pretty_repr(button)))
