"""Payloads of the frames in clear, and the payload sizes of each kind. Generated from messages.toml
by firmware_protocol.generate. Not to be edited."""

from typing import ClassVar, Final

from firmware_protocol.messages import codec
from firmware_protocol.messages.codec import Payload, Spec
from firmware_protocol.messages.enums import (
    AlertCode,
    Capabilities,
    DeviceClass,
    DeviceState,
    FrameKind,
    FrameLimit,
)

PAYLOAD_SIZES: Final = {
    FrameKind.HELLO: (32,),
    FrameKind.HELLO_RSP: (96,),
    FrameKind.HS1: (48,),
    FrameKind.HS2: (48,),
    FrameKind.PAIR1: (48,),
    FrameKind.PAIR2: (96,),
    FrameKind.PAIR3: (64,),
    FrameKind.DATA: (72, 136, 242),
    FrameKind.ALERT: (8,),
}


class Hello(Payload, frozen=True, gc=False):
    """Opens a handshake or a pairing. The session id in its header is the one that the host
    picked."""

    version_min: int
    """Lowest version that the host speaks."""
    version_max: int
    """Highest version that the host speaks."""
    device_class: DeviceClass
    """Class that the host expects; a device of another class answers too."""
    largest: FrameLimit
    """Longest decoded frame that the host takes."""
    schema: bytes
    """Schema hash of the host's version_max."""
    fingerprint: bytes
    """Fingerprint of the host's key."""

    SPEC: ClassVar = Spec(
        "HELLO",
        "<BBBB4x8s16s",
        "version_min version_max device_class largest schema fingerprint",
        codec.whole("version_min", 1, 15),
        codec.whole("version_max", 1, 15),
        codec.one_of("device_class", DeviceClass),
        codec.one_of("largest", FrameLimit),
        codec.exactly("schema", 8),
        codec.exactly("fingerprint", 16),
    )


class HelloRsp(Payload, frozen=True, gc=False):
    """The response to HELLO, under the same session id."""

    version_min: int
    """Lowest version that the device speaks."""
    version_max: int
    """Highest version that the device speaks."""
    device_class: DeviceClass
    """What the device is; never ANY."""
    largest: FrameLimit
    """Longest decoded frame that the device takes."""
    capabilities: Capabilities
    """What the device can do."""
    schema: bytes
    """Schema hash of the highest common version; of version_max where none is common."""
    fingerprint: bytes
    """Fingerprint of the device's key."""
    random: bytes
    """Newly drawn for each HELLO_RSP."""
    maker: str
    """Maker."""
    model: str
    """Model."""
    serial: str
    """Serial number, as on the label and in the USB descriptor."""
    state: DeviceState
    """How the device is."""

    SPEC: ClassVar = Spec(
        "HELLO_RSP",
        "<BBBBI8s16s8s16s16s20sH2x",
        "version_min version_max device_class largest capabilities schema fingerprint random "
        "maker model serial state",
        codec.whole("version_min", 1, 15),
        codec.whole("version_max", 1, 15),
        codec.one_of("device_class", DeviceClass, 1),
        codec.one_of("largest", FrameLimit),
        codec.some_of("capabilities", Capabilities),
        codec.exactly("schema", 8),
        codec.exactly("fingerprint", 16),
        codec.exactly("random", 8),
        codec.text("maker", 16),
        codec.text("model", 16),
        codec.text("serial", 20, word=True),
        codec.some_of("state", DeviceState),
    )


class Alert(Payload, frozen=True, gc=False):
    """A hint in clear for diagnosis. It is displayed, never acted on. Session id 0."""

    code: AlertCode
    """What happened."""
    arg: int
    """As the code says, else 0."""

    SPEC: ClassVar = Spec("ALERT", "<B3xI", "code arg", codec.one_of("code", AlertCode))
