"""What a device is, and what it keeps."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from firmware_protocol.device import (
    FolderProblem,
    InjectDefect,
    ServiceSwitch,
    create_identity,
    load_identity,
    pair_directly,
    paired_host,
)
from firmware_protocol.device.folder import StateStore
from firmware_protocol.messages import (
    ALERT_GAP_MS,
    Alert,
    AlertCode,
    DeviceClass,
    DeviceState,
    Fault,
    FaultCode,
    FrameKind,
    InfoReply,
    Selftest,
    SelftestReply,
)
from firmware_protocol.tablelink import Frame, fingerprint, read_label
from tests.support.hil.devices.plain_device import Bench


def test_a_device_is_created_once_and_loaded_unchanged(tmp_path: Path) -> None:
    place = tmp_path / "shoe"
    made = create_identity(
        place, DeviceClass.SHOE, "SH-0001", maker='A "maker"', model="Back\\slash", capacity=200
    )
    assert load_identity(place) == made
    assert (read_label(made.label_text), made.fingerprint) == (made.label, fingerprint(made.public))
    assert place.stat().st_mode & 0o777 == 0o700
    assert (place / "identity.toml").stat().st_mode & 0o777 == 0o600
    assert made.key.hex() not in repr(made)
    with pytest.raises(FolderProblem, match=r"holds a device already; allowed: an empty folder$"):
        create_identity(place, DeviceClass.SHOE, "SH-0002")


def test_keys_and_labels_are_drawn(tmp_path: Path) -> None:
    draw = random.Random(7).randbytes
    one, two = (
        create_identity(tmp_path / name, DeviceClass.STATION, name, rng=draw)
        for name in ("one", "two")
    )
    assert one.key != two.key
    assert one.label != two.label
    again = create_identity(
        tmp_path / "three", DeviceClass.STATION, "one", rng=random.Random(7).randbytes
    )
    assert again == one


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"serial": "with space"}, "serial 'with space'"),
        ({"serial": ""}, "serial ''"),
        ({"serial": "x" * 21}, "1 to 20"),
        ({"maker": "seventeen letters"}, "1 to 16 printable"),
        ({"model": ""}, "model ''"),
        ({"model": "tab\there"}, "printable"),
        ({"model": " led by a space"}, "printable"),
        ({"maker": "and ended "}, "printable"),
        ({"capacity": 127}, "128 to 65535"),
        ({"device_class": DeviceClass.ANY}, "ANY is no class"),
    ],
)
def test_what_cannot_be_a_device_is_refused(
    tmp_path: Path, arguments: dict[str, object], what: str
) -> None:
    fields: dict[str, object] = {"device_class": DeviceClass.SHOE, "serial": "S"} | arguments
    with pytest.raises(FolderProblem, match=what) as problem:
        create_identity(tmp_path / "device", **fields)  # type: ignore[arg-type]
    assert_said_once(problem.value)
    assert not (tmp_path / "device").exists()


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('class = "shoe"', 'class = "robot"', "robot"),
        ("ring = 128", 'ring = "128"', "Expected `int`"),
        ("ring = 128", "ring = 5", "ring of 5 records"),
        ("serial", "number", "unknown field"),
        ('key = "', 'key = "00', "key of 33 bytes"),
        ('key = "', 'key = "xy', "hexadecimal"),
        ('label = "', 'label = "00', "36 digits"),
        ("maker", "= maker", "line 2"),
    ],
)
def test_a_corrupt_identity_is_named(tmp_path: Path, old: str, new: str, what: str) -> None:
    create_identity(tmp_path, DeviceClass.SHOE, "S")
    path = tmp_path / "identity.toml"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(FolderProblem, match=what) as problem:
        load_identity(tmp_path)
    assert str(path) in str(problem.value)
    assert_said_once(problem.value)


def assert_said_once(problem: FolderProblem) -> None:
    """The error has where, what, and exactly once what is allowed, without names of code."""
    assert str(problem) == f"{problem.where}: {problem.what}; allowed: {problem.allowed}"
    assert "allowed" not in problem.what + problem.allowed
    assert "create_identity" not in str(problem)


def test_no_device_is_named_too(tmp_path: Path) -> None:
    with pytest.raises(FolderProblem, match="is missing or empty") as problem:
        load_identity(tmp_path)
    assert_said_once(problem.value)


def test_the_bench_way_to_pair(tmp_path: Path) -> None:
    assert paired_host(tmp_path) is None
    pair_directly(tmp_path, bytes(range(32)))
    assert paired_host(tmp_path) == bytes(range(32))
    assert (tmp_path / "host").stat().st_mode & 0o777 == 0o600
    with pytest.raises(FolderProblem, match=r"allowed: 32 bytes$"):
        pair_directly(tmp_path, bytes(31))
    (tmp_path / "host").write_text("no key\n")
    with pytest.raises(FolderProblem, match=r"allowed: 64 hexadecimal digits$"):
        paired_host(tmp_path)


@pytest.mark.parametrize("sync", [False, True])
def test_values_are_stored(tmp_path: Path, sync: bool) -> None:
    store = StateStore(tmp_path / "kept", sync=sync)
    assert (store.load("inside"), store.last_number("loading")) == (b"", 0)
    assert [store.next_number("loading") for _ in range(3)] == [1, 2, 3]
    store.save("inside", b"\0\1\2")
    store.save("loading", b"not the number")
    again = StateStore(tmp_path / "kept", sync=sync)
    assert (again.load("inside"), again.last_number("loading")) == (b"\0\1\2", 3)
    assert again.next_number("loading") == 4
    assert {one.stat().st_mode & 0o777 for one in (tmp_path / "kept").iterdir()} == {0o600}
    for name in ("", "../up", "A", "with space"):
        with pytest.raises(ValueError, match="is no name"):
            store.save(name, b"")
    (tmp_path / "kept" / "loading.number").write_text("many")
    with pytest.raises(FolderProblem, match=r"holds no number; allowed: decimal digits$"):
        store.last_number("loading")


DAMAGED = InjectDefect("memory")
WHOLE = InjectDefect("memory", on=False)


def kinds(bench: Bench) -> set[FrameKind]:
    clear = {FrameKind.ALERT} if bench.host.all(Alert) else set()
    return clear | {one.kind for one in bench.host.all(Frame)}


def test_hello_is_answered_with_alert_defect_alone(bench: Bench) -> None:
    assert bench.device.request(DAMAGED, bench.now) == {"recorded": True}
    refused = bench.device.channel.refused
    hello = bench.host.hello()
    bench.say(hello, Frame(FrameKind.HS1, hello.session, 0, bytes(48)))
    assert kinds(bench) == {FrameKind.ALERT}
    alert = bench.host.last(Alert)
    assert (alert.code, alert.arg) == (AlertCode.DEFECT, FaultCode.MEMORY)
    assert bench.device.channel.refused == refused + 2
    assert DeviceState.FAULTY in bench.device.state()
    assert bench.events()[-1] == Fault(FaultCode.MEMORY, 0)


def test_a_malformed_hello_is_not_answered_even_so(bench: Bench) -> None:
    bench.device.request(DAMAGED, bench.now)
    payload = bytearray(bench.host.hello().payload)
    payload[4] = 1
    bench.say(Frame(FrameKind.HELLO, 9, 0, bytes(payload)))
    assert not bench.host.came


def test_a_handshake_that_had_started_fails(bench: Bench) -> None:
    bench.say(bench.host.hello())
    bench.device.request(DAMAGED, bench.now)
    bench.say(bench.host.hs1(bench.host.kk()))
    assert kinds(bench) == {FrameKind.HELLO_RSP, FrameKind.ALERT}
    assert bench.host.last(Alert).code is AlertCode.DEFECT


def test_no_host_is_paired(bench: Bench) -> None:
    bench.device.request(ServiceSwitch(True), bench.now)
    hello = bench.host.hello()
    bench.say(hello)
    bench.device.request(DAMAGED, bench.now)
    bench.say(Frame(FrameKind.PAIR1, hello.session, 0, bytes(48)))
    assert FrameKind.PAIR2 not in kinds(bench)
    assert bench.host.last(Alert).code is AlertCode.DEFECT


def test_alerts_keep_their_gap_and_the_keys_stay_what_they_were(bench: Bench) -> None:
    before = load_identity(bench.place)
    bench.device.request(DAMAGED, bench.now)
    for _ in range(5):
        bench.say(bench.host.hello())
    assert len(bench.host.all(Alert)) == 1
    bench.run(ALERT_GAP_MS, beats=False)
    bench.say(bench.host.hello())
    assert len(bench.host.all(Alert)) == 2
    after = load_identity(bench.place)
    assert (after.public, after.label) == (before.public, before.label)


def test_it_outlasts_a_start_and_ends_when_it_is_repaired(bench: Bench) -> None:
    bench.device.request(DAMAGED, bench.now)
    bench.power_on()
    bench.say(bench.host.hello())
    assert kinds(bench) == {FrameKind.ALERT}
    assert bench.device.request(WHOLE, bench.now) == {"recorded": False}
    bench.connect()
    bench.host.last(InfoReply)


@pytest.mark.usefixtures("records_flow")
def test_a_running_session_continues_and_a_self_test_finds_it(bench: Bench) -> None:
    bench.device.request(DAMAGED, bench.now)
    answered = len(bench.host.frames(FrameKind.HELLO_RSP))
    bench.say(bench.host.hello())
    bench.say(bench.host.call(Selftest()))
    bench.run(1_000)
    assert bench.host.last(SelftestReply).code is FaultCode.MEMORY
    assert len(bench.host.frames(FrameKind.HELLO_RSP)) == answered
