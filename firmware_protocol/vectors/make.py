"""Generates the golden vectors of the newest version. Those of a released one never change.

    python -m firmware_protocol.vectors.make          list the files that differ; exit code 1 if any
    python -m firmware_protocol.vectors.make --write  write them, unless the version is released

If a released vector and the code disagree, the code is wrong. All keys and bytes are examples.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from enum import IntFlag
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from firmware_protocol import messages
from firmware_protocol.generate import (
    INTEGER_SIZES,
    Catalogue,
    Field,
    MessageSpec,
    array,
    camel,
    load_catalogue,
)
from firmware_protocol.messages import (
    MESSAGES,
    SCHEMA_HASHES,
    Alert,
    AlertCode,
    Capabilities,
    CardFlags,
    CardRead,
    Cover,
    DeviceClass,
    DeviceState,
    EvtAck,
    FrameKind,
    FrameLimit,
    Hello,
    HelloRsp,
    Info,
    InfoReply,
    PairDone,
    Payload,
    Power,
    PowerCause,
    Reread,
    RereadReply,
)
from firmware_protocol.tablelink import (
    LABEL_SIZE,
    NO_CHAIN,
    CommandCall,
    CommandReply,
    Deframer,
    EventRecord,
    Frame,
    FrameDamage,
    Handshake,
    Plaintext,
    Sealer,
    SessionKeys,
    chained,
    cobs_encode,
    crc32c,
    decode_plaintext,
    encode_plaintext,
    fingerprint,
    label_psk,
    label_text,
    prologue,
)

FOLDER: Final = Path(__file__).parent

# --- samples: all fields at their least, at their most, and in between -----------------------

WHICH: Final = ("least", "most", "between")


def some_bytes(name: str, size: int) -> bytes:
    """Bytes that look random and are always the same."""
    return hashlib.shake_256(f"TableLink vector {name}".encode()).digest(size)


def some_number(name: str, below: int) -> int:
    return int.from_bytes(some_bytes(name, 16), "little") % below


def samples(
    catalogue: Catalogue, kind: type[Payload], name: str, fields: tuple[Field, ...]
) -> Iterator[Payload]:
    """The three samples of a message, or the only one that a message without fields has."""
    real = [field for field in fields if not field.type.startswith("zero")]
    for which in WHICH if real else WHICH[:1]:
        values = {one.name: _value(catalogue, one, which, f"{name}.{one.name}") for one in real}
        yield kind(**values)


def _value(catalogue: Catalogue, one: Field, which: str, name: str) -> Any:
    form = array(one.type)
    if form:
        return _array(*form, which, name)
    if one.type == "bool":
        return which != "least"
    if one.type in catalogue.sets:
        members: list[Any] = list(getattr(messages, camel(one.type)))
        if one.type in catalogue.is_flags:
            return _flags(members, which, name)
        members = [member for member in members if member >= (one.min or 0)]
        return members[_index(len(members), which, name)]
    numbers = (one.min or 0, (1 << 8 * INTEGER_SIZES[one.type]) - 1 if one.max is None else one.max)
    if which == "most" and one.also:
        return one.also[-1]
    return numbers[0] + _index(numbers[1] - numbers[0] + 1, which, name)


def _index(count: int, which: str, name: str) -> int:
    if which == "between":
        return some_number(name, count)
    return 0 if which == "least" else count - 1


def _flags(members: list[IntFlag], which: str, name: str) -> IntFlag:
    out = type(members[0])(0)
    for member in members:
        if which == "most" or (which == "between" and some_number(name + str(member.name), 2)):
            out |= member
    return out


def _array(form: str, size: int, which: str, name: str) -> bytes | str:
    if form == "bytes":
        return {
            "least": bytes(size),
            "most": b"\xff" * size,
            "between": some_bytes(name, size),
        }[which]
    if which == "least":
        return "A"
    if which == "most":
        return "Z" * size
    return "Ace-21.x" if form == "word" else "Ace & Sons 21"


SESSION: Final = 0x1234
PAIRING: Final = 0x00FF
HOST_BOOT: Final = 0x0123456789ABCDEF

Part = dict[str, Any]


def build(catalogue: Catalogue) -> dict[str, Any]:
    """Every file of the newest version."""
    kk, session_keys, kk_frames = _kk()
    xx, xx_frames = _xx()
    sealed, data_frames = _sealed(session_keys)
    alert = Frame(FrameKind.ALERT, 0, 0, _alert())
    return {
        "crc": list(_crc()),
        "cobs": _cobs(),
        "messages": list(_messages(catalogue)),
        "frames": [_frame(catalogue, one) for one in (*kk_frames, *xx_frames, alert, *data_frames)],
        "damage": list(_damage(kk_frames[0])),
        "chain": _chain(),
        "handshake_kk": kk,
        "handshake_xxpsk3": xx,
        "sealed": sealed,
    }


# --- CRC, COBS, damage ----------------------------------------------------------------------


def _crc() -> Iterator[Part]:
    strings = (
        b"",
        b"\0",
        b"123456789",
        bytes(32),
        b"\xff" * 32,
        bytes(range(32)),
        bytes(range(31, -1, -1)),
        some_bytes("crc", 250),
    )
    for one in strings:
        yield {"bytes": one.hex(), "crc32c": f"{crc32c(one):08x}"}


def _cobs() -> Part:
    full = bytes(range(1, 255))
    strings = (
        b"",
        b"\0",
        bytes(2),
        bytes(254),
        b"\x11",
        b"\x11\0",
        b"\0\x11",
        b"\x11\x22\0\x33",
        b"\x11\0\0\0",
        full[:253],
        full,
        full[:253] + b"\0",
        b"\0" + full[:253],
        full[:100] + b"\0" + full[:153],
        b"\xff" * 254,
        some_bytes("cobs", 254),
    )
    return {
        "good": [{"decoded": one.hex(), "encoded": cobs_encode(one).hex()} for one in strings],
        # A code beyond the end, a zero inside, and nothing after the code.
        "bad": ["02", "0311", "ff01", "031100", "00", "0100", "ff" + "01" * 253],
    }


def _damage(good: Frame) -> Iterator[Part]:
    wire = good.encode()
    bit = bytearray(wire)
    bit[20] ^= 0x40
    decoded = good.decoded()

    def wrapped(raw: bytes) -> bytes:
        return cobs_encode(raw + crc32c(raw).to_bytes(4, "little")) + b"\0"

    streams: dict[str, bytes] = {
        "a whole frame": wire,
        "empty frames around it": b"\0\0" + wire + b"\0",
        "noise before it": b"\xaa\x55" + wire + wire,
        "one bit flipped": bytes(bit) + wire,
        "the end is missing": wire[:30] + b"\0" + wire,
        "two frames spliced": wire[:30] + wire[40:] + wire,
        "its 0x00 is missing": wire[:-1] + wire + wire,
        "255 bytes": b"\x01" * 255 + b"\0" + wire,
        "256 bytes": b"\x01" * 256 + b"\0" + wire,
        "600 bytes": b"\x77" * 600 + b"\0" + wire,
        "too short": cobs_encode(b"\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00") + b"\0",
        "version 2": wrapped(bytes([0x20 | decoded[0]]) + decoded[1:]),
        "version 0": wrapped(bytes([decoded[0] & 0xF]) + decoded[1:]),
        "kind 7": wrapped(b"\x17" + decoded[1:]),
        "n one too small": wrapped(decoded[:1] + bytes([decoded[1] - 1]) + decoded[2:]),
        "n right, and a length that the kind has not": wrapped(
            decoded[:1] + bytes([decoded[1] - 1]) + decoded[2:-1]
        ),
        "HELLO of session 0": wrapped(decoded[:2] + bytes(2) + decoded[4:]),
        "HELLO with a counter": wrapped(decoded[:4] + b"\1" + decoded[5:]),
        "ALERT of a session": wrapped(b"\x1f\x08\x01\0\0\0\0\0" + _alert()),
    }
    for name, stream in streams.items():
        heard = [
            {"damage": one.cause.value, "size": one.size}
            if isinstance(one, FrameDamage)
            else {"frame": one.kind.name, "session": one.session, "payload": one.payload.hex()}
            for one in Deframer().feed(stream)
        ]
        yield {"name": name, "stream": stream.hex(), "heard": heard}


# --- messages and frames --------------------------------------------------------------------


def shown(fields: tuple[Field, ...], payload: Payload) -> Part:
    """Returns the fields as in the JSON file."""

    def value(one: Field) -> Any:
        raw = getattr(payload, one.name)
        if isinstance(raw, bytes):
            return raw.hex()
        if one.type == "u64":
            return str(raw)
        return raw if isinstance(raw, str) else int(raw)

    return {one.name: value(one) for one in fields if not one.type.startswith("zero")}


def _messages(catalogue: Catalogue) -> Iterator[Part]:
    for one in catalogue.messages:
        kind = MESSAGES[one.id]
        for which, sample in zip(
            WHICH, samples(catalogue, kind, one.name, one.fields), strict=False
        ):
            yield {
                "message": one.name,
                "id": one.id,
                "kind": one.kind,
                "sample": which,
                "fields": shown(one.fields, sample),
                "body": sample.encode().hex(),
                **_envelope(one, which, sample),
            }


def _envelope(one: MessageSpec, which: str, sample: Any) -> Part:
    name = f"{one.name}.{which}"
    call = {"command_id": 1 + some_number(name, 0xFFFFFFFF), "host_boot": HOST_BOOT}
    shown_call = {"command_id": call["command_id"], "host_boot": str(HOST_BOOT)}
    if one.kind == "command":
        whole = encode_plaintext(CommandCall(**call, command=sample))
        return {**shown_call, "plaintext": whole.hex()}
    if one.kind == "reply":
        whole = encode_plaintext(CommandReply(**call, reply=sample))
        return {**shown_call, "plaintext": whole.hex()}
    if one.kind == "control":
        return {"plaintext": encode_plaintext(sample).hex()}
    before = some_bytes(f"{name} chain", 8)
    numbers = {
        field: 1 + some_number(f"{name} {field}", (1 << bits) - 1)
        for field, bits in (("epoch", 32), ("seq", 32), ("boot", 32), ("t_us", 64))
    }
    record = chained(before, event=sample, **numbers)
    return {
        **numbers,
        "t_us": str(numbers["t_us"]),
        "chain_before": before.hex(),
        "chain": record.chain.hex(),
        "plaintext": record.encode().hex(),
    }


def _alert() -> bytes:
    return Alert(AlertCode.PAIRING_OFF, 0).encode()


def _frame(catalogue: Catalogue, frame: Frame) -> Part:
    out: Part = {
        "kind": frame.kind.name,
        "version": frame.version,
        "session": frame.session,
        "counter": frame.counter,
        "payload": frame.payload.hex(),
        "wire": frame.encode().hex(),
    }
    coded: dict[FrameKind, type[Payload]] = {
        FrameKind.HELLO: Hello,
        FrameKind.HELLO_RSP: HelloRsp,
        FrameKind.ALERT: Alert,
    }
    if frame.kind in coded:
        fields = next(one.fields for one in catalogue.frames if one.kind == frame.kind.name)
        out["fields"] = shown(fields, coded[frame.kind].decode(frame.payload))
    return out


# --- the chain ------------------------------------------------------------------------------


def _chain() -> Part:
    epoch = 0xC0FFEE01
    happened = (
        (1, 1_500, Power(PowerCause.POWER_ON)),
        (1, 2_000_000, Cover(True)),
        (1, 61_000_123, CardRead(7, 1, 12, 99, 0xFE, CardFlags(0), 180, 1, b"\x5a" * 11)),
        (2, 900, Power(PowerCause.POWER_LOSS)),
    )
    records: list[EventRecord] = []
    for seq, (boot, t_us, event) in enumerate(happened, 1):
        before = records[-1].chain if records else NO_CHAIN
        records.append(chained(before, epoch=epoch, seq=seq, boot=boot, t_us=t_us, event=event))
    return {
        "epoch": epoch,
        "records": [
            {"seq": one.seq, "bytes": one.encode().hex(), "chain": one.chain.hex()}
            for one in records
        ],
    }


# --- handshakes -----------------------------------------------------------------------------


def _key(name: str) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(some_bytes(f"{name} key", 32))


def _public(key: X25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


def _pair(key: X25519PrivateKey) -> Part:
    return {"private": key.private_bytes_raw().hex(), "public": _public(key).hex()}


def _hellos(session: int) -> tuple[Frame, Frame]:
    schema = SCHEMA_HASHES[1]
    ours = fingerprint(_public(_key("host")))
    asked = Hello(1, 1, DeviceClass.SHOE, FrameLimit.LARGE, schema, ours)
    answered = HelloRsp(
        1,
        1,
        DeviceClass.SHOE,
        FrameLimit.MEDIUM,
        Capabilities.GATE | Capabilities.LOCK,
        schema,
        fingerprint(_public(_key("device"))),
        some_bytes(f"random {session}", 8),
        "Example Works",
        "Shoe One",
        "EW-000123",
        DeviceState.PAIRED | DeviceState.LOCKED,
    )
    return (
        Frame(FrameKind.HELLO, session, 0, asked.encode()),
        Frame(FrameKind.HELLO_RSP, session, 0, answered.encode()),
    )


def _run(
    make: Callable[..., Handshake], session: int, *secrets: tuple[Any, ...]
) -> tuple[Part, SessionKeys, list[Frame]]:
    """Run a handshake with fixed keys. Returns the part of the file, the host's keys, the
    frames."""
    frames = list(_hellos(session))
    bound = prologue(*frames)
    host = make("host", bound, _key("host"), *secrets[0])
    device = make("device", bound, _key("device"), *secrets[1])
    host.fix_ephemeral(_key("host ephemeral"))
    device.fix_ephemeral(_key("device ephemeral"))
    kinds = [FrameKind.HS1, FrameKind.HS2]
    if make == Handshake.xxpsk3:
        kinds = [FrameKind.PAIR1, FrameKind.PAIR2, FrameKind.PAIR3]
    for turn, kind in enumerate(kinds):
        writer, reader = (host, device) if turn % 2 == 0 else (device, host)
        message = writer.write()
        reader.read(message)
        frames.append(Frame(kind, session, 0, message))
    split, other = host.split(), device.split()
    if (split.send, split.receive) != (other.receive, other.send):
        raise AssertionError("the two sides disagree")
    part: Part = {
        "session": session,
        "host": _pair(_key("host")),
        "device": _pair(_key("device")),
        "host_fingerprint": fingerprint(_public(_key("host"))).hex(),
        "device_fingerprint": fingerprint(_public(_key("device"))).hex(),
        "host_ephemeral": _pair(_key("host ephemeral")),
        "device_ephemeral": _pair(_key("device ephemeral")),
        "prologue": bound.hex(),
        **{one.kind.name: one.payload.hex() for one in frames},
        "host_to_device": split.send.hex(),
        "device_to_host": split.receive.hex(),
        "transcript": split.transcript.hex(),
    }
    return part, split, frames


def _kk() -> tuple[Part, SessionKeys, list[Frame]]:
    theirs = (_public(_key("device")),), (_public(_key("host")),)
    return _run(Handshake.kk, SESSION, *theirs)


def _xx() -> tuple[Part, list[Frame]]:
    code = some_bytes("label", LABEL_SIZE)
    psk = label_psk(code)
    part, split, frames = _run(Handshake.xxpsk3, PAIRING, (psk,), (psk,))
    done = encode_plaintext(PairDone(fingerprint(_public(_key("host"))), 1))
    sealed = Sealer(split.receive, PAIRING).seal(done)
    label = {"label": label_text(code), "code": code.hex(), "psk": psk.hex()}
    last = {"PAIR_DONE": {"plaintext": done.hex(), "wire": sealed.encode().hex()}}
    return {**label, **part, **last}, frames


def _sealed(session_keys: SessionKeys) -> tuple[list[Part], list[Frame]]:
    record = bytes.fromhex(_chain()["records"][2]["bytes"])
    reply = InfoReply(some_bytes("firmware", 32), 2, PowerCause.POWER_LOSS, 128, DeviceState.PAIRED)
    host = Sealer(session_keys.send, SESSION)
    device = Sealer(session_keys.receive, SESSION)
    said: tuple[tuple[Sealer, Plaintext], ...] = (
        (host, CommandCall(1, HOST_BOOT, Info())),
        (device, CommandReply(1, HOST_BOOT, reply)),
        (host, CommandCall(2, HOST_BOOT, Reread(0xC0FFEE01, 3))),
        (device, CommandReply(2, HOST_BOOT, RereadReply(record))),
        (device, decode_plaintext(record, sender="device")),
        (host, EvtAck(0xC0FFEE01, 3, 8)),
    )
    parts, frames = [], []
    for sealer, what in said:
        plain = encode_plaintext(what)
        frame = sealer.seal(plain)
        frames.append(frame)
        parts.append(
            {
                "from": "host" if sealer is host else "device",
                "session": SESSION,
                "counter": frame.counter,
                "associated": frame.header().hex(),
                "plaintext": plain.hex(),
                "payload": frame.payload.hex(),
                "wire": frame.encode().hex(),
            }
        )
    return parts, frames


# --- the files -------------------------------------------------------------------------------


def made() -> dict[str, str]:
    """Returns the name and text of each file of the newest version."""
    built = build(load_catalogue())
    return {
        f"{name}.json": json.dumps(data, indent=1, ensure_ascii=True) + "\n"
        for name, data in built.items()
    }


def main(arguments: Sequence[str]) -> int:
    version = load_catalogue().versions[-1]
    folder = FOLDER / f"v{version.number}"
    different = {
        name: text
        for name, text in made().items()
        if not (folder / name).is_file() or (folder / name).read_text("utf-8") != text
    }
    for name in different:
        sys.stdout.write(f"{folder.name}/{name}: differs\n")
    if not different:
        return 0
    if list(arguments) != ["--write"]:
        return 1
    if version.released:
        sys.stderr.write(f"version {version.number} is released: its vectors stay as they are\n")
        return 1
    folder.mkdir(exist_ok=True)
    for name, text in different.items():
        (folder / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
