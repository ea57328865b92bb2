"""Devices that are not paired, not there, closed to this user, or somebody else's."""

import grp
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from msgspec.structs import replace

from controller.doctor.host import locking, opening
from drivers.keys import KeyStore
from drivers.ports import Address, PortRefused, Transport, usb_discovery
from drivers.ports import FoundPort as Plugged
from firmware_protocol.device import ServiceSwitch
from firmware_protocol.messages import DeviceClass
from firmware_protocol.tablelink import fingerprint_text
from tests.support.daemon.doctor_house import LOCKING, House, child, owned, pair
from tests.support.devices.standing import standing

OPENING = """\
import os, sys
os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY)
print("begun", flush=True)
sys.stdin.read()
"""
TWO = " --by 'Ann Lee' --and 'Bo Chan'"
DIALOUT = grp.struct_group(("dialout", "x", 20, []))


def shoe_at(made: House, port: str) -> None:
    """The file names another port; with "", none."""
    made.edit(f'port = "{made.place}/ports/shoe"\n', f'port = "{port}"\n' if port else "")


def plugged(made: House, *serial: Plugged, usb: tuple[Plugged, ...] = ()) -> None:
    """What is plugged in, of what has a number."""
    made.machine = replace(
        made.machine, serial_ports=lambda: list(serial), usb_devices=lambda backend: list(usb)
    )


def adapter(made: House, serial: str, port: str = "shoe") -> Plugged:
    return Plugged(
        Address(Transport.ADAPTER, serial),
        str(made.place / "ports" / port),
        serial,
        "EW",
        "Adapter",
    )


def usb(serial: str) -> Plugged:
    return Plugged(Address(Transport.USB, serial), None, serial, "EW", "Shoe")


# --- paired -----------------------------------------------------------------------------------


@contextmanager
def on_the_bench(made: House) -> Iterator[str]:
    """A station that can be paired, and what its label and two people say to that."""
    with standing(made.place / "bench", "ST-1") as bench:
        bench.request(ServiceSwitch(True))
        made.edit(f"{made.place}/ports/station", str(bench.port))
        code = made.place / "code"
        code.write_text(bench.label)
        key = fingerprint_text(bench.identity.fingerprint)
        yield f"{TWO} --label - --fingerprint {key} < {code}"


def test_a_device_that_is_not_paired_is_paired(made: House) -> None:
    (made.keys / "devices" / "ST-1.json").unlink()
    with on_the_bench(made) as said:
        made.expect(
            "pairing", exactly="station ST-1 is not paired with this host", mend="service switch"
        )
        made.mend("pairing", said)
        assert made.check("ports").verdict == "ok"


def test_a_pairing_that_is_damaged_is_made_anew(made: House) -> None:
    file = made.keys / "devices" / "ST-1.json"
    file.write_text(file.read_text().replace('"EW"', "EW"))
    with on_the_bench(made) as said:
        aside, pair_it = made.expect("pairing", what="ST-1.json: is damaged").commands
        made.shell(aside)
        made.shell(pair_it + said)
        assert made.check("pairing").verdict == "ok"


def test_where_a_device_is_paired_that_is_found_by_its_number(made: House) -> None:
    (made.keys / "devices" / "SH-1.json").unlink()
    shoe_at(made, "")
    plugged(made)
    assert " pair usb:SH-1 " in made.problem("pairing").commands[0]
    plugged(made, adapter(made, "SH-1"))
    assert " pair adapter:SH-1 " in made.problem("pairing").commands[0]


def test_a_device_of_another_class(made: House) -> None:
    (made.keys / "devices" / "SH-1.json").unlink()
    pair(KeyStore(made.keys), "SH-1", DeviceClass.STATION)
    problem = made.expect("pairing", exactly="SH-1 was paired as a station, not as a shoe")
    assert problem.mend.endswith("table.toml at [devices], shoe")


# --- plugged in -------------------------------------------------------------------------------


def test_a_port_that_is_not_there(made: House) -> None:
    plugged(made, adapter(made, "FT4NUM9K", "another"))
    terminal = os.readlink(made.place / "ports" / "shoe")
    (made.place / "ports" / "shoe").unlink()
    problem = made.expect(
        "ports", grade="wrong", what="shoe SH-1 is missing: ", mend="there are adapter:FT4NUM9K"
    )
    assert "[devices], shoe" in problem.mend
    made.shell(problem.commands[0])
    (made.place / "ports" / "shoe").symlink_to(terminal)
    assert made.check("ports").verdict == "ok"


def test_a_port_that_another_device_has(made: House) -> None:
    """By whichever name it is called."""
    ports = made.place / "ports"
    terminal = (ports / "shoe").readlink()
    (ports / "station").rename(ports / "kept")
    (ports / "station").symlink_to(terminal)
    made.expect(
        "ports",
        exactly=f"station ST-1: its port is also that of shoe SH-1: {terminal}",
        mend="[devices], stations",
    )
    (ports / "kept").replace(ports / "station")
    assert made.check("ports").verdict == "ok"


def test_a_port_that_is_a_file(made: House) -> None:
    file = made.place / "ports" / "file"
    file.write_text("no port")
    shoe_at(made, str(file))
    assert f"{file} is not a serial port" in made.problem("ports").what


def test_a_text_that_is_no_address(made: House) -> None:
    shoe_at(made, "com1")
    made.expect("ports", what="'com1' is no address of a port", mend="adapter:SERIAL")


def test_devices_that_are_found_by_their_numbers(made: House) -> None:
    shoe_at(made, "")
    plugged(made, adapter(made, "SH-1"))
    assert made.check("ports").verdict == "ok"
    plugged(made)
    assert "no device that is plugged in is SH-1" in made.problem("ports").what
    plugged(made, usb=(usb("SH-1"),))
    assert made.check("ports").verdict == "ok"
    plugged(made, usb=(usb("SH-1"), usb("SH-1")))
    assert "2 devices are SH-1" in made.problem("ports").what


def test_an_adapter_whose_number_another_has_too(made: House) -> None:
    shoe_at(made, "adapter:FT4NUM9K")
    plugged(made, adapter(made, "FT4NUM9K"))
    assert made.check("ports").verdict == "ok"
    plugged(made, adapter(made, "FT4NUM9K"), adapter(made, "FT4NUM9K", "another"))
    made.expect("ports", what="ports/shoe, ", mend="below /dev/serial/by-id")


def test_a_path_that_is_whatever_was_plugged_in_first(made: House) -> None:
    plugged(made, adapter(made, "FT4NUM9K"))
    made.expect("ports", grade="warning", mend='port = "adapter:FT4NUM9K"')
    shoe_at(made, "adapter:FT4NUM9K")
    assert made.check("ports").verdict == "ok"


def test_a_machine_without_a_usb_library_is_told_once(made: House) -> None:
    def refused(backend: str) -> list[Plugged]:
        raise PortRefused("USB needs the library libusb 1.0")

    shoe_at(made, "usb:SH-1")
    made.edit(f'"{made.place}/ports/station"', '"usb:ST-1"')
    made.machine = replace(made.machine, serial_ports=list, usb_devices=refused)
    problem = made.expect("ports", what="USB needs the library libusb 1.0")
    assert problem.commands[0].endswith("apt-get install libusb-1.0-0")


def test_a_device_on_a_bus_of_its_own(made: House, monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("sim", "hil.ports.usb_backend:backend", usb_discovery.GROUP)
    monkeypatch.setattr(usb_discovery, "entry_points", lambda group: [point])
    with standing(made.place / "bench", "ST-1") as bench:
        made.edit(f"{made.place}/ports/station", bench.usb)
        assert f"ST-1 at {bench.usb}" in made.check("ports").note
        assert made.check("ports").verdict == "ok"
        made.edit(bench.usb, f"{bench.usb[:-1]}2")
        assert "is that of ST-2" in made.problem("ports").what
        made.edit(f"{bench.usb[:-1]}2", f"usb+sim={made.place}:ST-1")
        assert "station ST-1 is missing" in made.problem("ports").what
        made.edit(f"usb+sim={made.place}:ST-1", "usb+other:ST-1")
        assert "there is no USB backend other" in made.problem("ports").what


# --- to be had --------------------------------------------------------------------------------


def closed(made: House, path: Path, *groups: grp.struct_group) -> None:
    """This user may not use this path, and is in these groups at most."""
    made.machine = replace(
        made.machine,
        uid=4711,
        user="house",
        may=lambda place, how: place != path,
        every_group=lambda: list(groups),
    )


def on_the_bus(made: House) -> Path:
    """A USB device, as the kernel tells of it to everybody."""
    shoe_at(made, "usb:SH-1")
    made.elsewhere()
    for name, text in (("serial", "SH-1"), ("busnum", "1"), ("devnum", "4")):
        made.put(f"/sys/bus/usb/devices/1-2/{name}", f"{text}\n")
    return made.put("/dev/bus/usb/001/004", "")


@pytest.mark.parametrize("transport", ["usb", "serial"])
def test_a_device_that_its_group_may_use(
    made: House, monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    """Whoever may not open a USB device is not told its number by the USB library."""
    path = on_the_bus(made) if transport == "usb" else made.place / "ports" / "shoe"
    plugged(made)
    owned(monkeypatch, path, mode=0o660, gid=20)
    closed(made, path, DIALOUT)
    made.expect(
        "ports",
        exactly=f"shoe SH-1: house may not read and write {path} (mode 660)",
        commands=("sudo usermod -aG dialout house",),
        mend="log in again",
    )
    closed(made, path, grp.struct_group(("dialout", "x", 20, ["house"])))
    assert made.problem("ports").commands == ("newgrp dialout",)


@pytest.mark.parametrize(("mode", "group"), [(0o664, 0), (0o600, 20)])
def test_a_device_that_is_roots_alone(
    made: House, monkeypatch: pytest.MonkeyPatch, mode: int, group: int
) -> None:
    path = on_the_bus(made)
    plugged(made)
    owned(monkeypatch, path, mode=mode, gid=group)
    closed(made, path, DIALOUT, grp.struct_group(("root", "x", 0, [])))
    problem = made.expect("ports", mend="udev rules")
    assert any("60-holecard.rules" in one for one in problem.commands)


@pytest.mark.parametrize("program", [OPENING, LOCKING])
def test_a_port_that_another_program_has(made: House, program: str) -> None:
    with child(program, made.place / "ports" / "shoe") as other:
        problem = made.expect(
            "ports", what=f"is in use by process {other.pid} (", commands=(f"kill {other.pid}",)
        )
        made.shell(problem.commands[0])
        other.wait(30)
        assert made.check("ports").verdict == "ok"


def test_a_port_that_a_process_of_another_user_has_locked(made: House) -> None:
    """What it has open is not shown; its locks are."""
    about = (made.place / "ports" / "shoe").stat()
    device = f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}"
    lock = f"1: FLOCK  ADVISORY  WRITE 4711 {device}:{about.st_ino} 0 EOF\n"
    made.elsewhere(**{"/proc/locks": lock, "/proc/4711/comm": "minicom\n"})
    assert made.problem("ports").what.endswith("ports/shoe is in use by process 4711 (minicom)")


def test_a_port_that_another_table_has(made: House) -> None:
    with child(OPENING, made.place / "ports" / "shoe", "holecard", "serve") as other:
        made.machine = replace(made.machine, root=made.place / "root")
        terminal = os.path.realpath(made.place / "ports" / "shoe")
        made.put(f"/proc/{other.pid}/cmdline", "holecard\0serve\0other.toml\0")
        folder = made.root / f"proc/{other.pid}/fd"
        folder.mkdir()
        (folder / "5").symlink_to(terminal)
        made.expect(
            "ports", what="(holecard serve other.toml)", commands=(), mend="another table uses it"
        )


def test_a_terminal_of_the_same_name_in_another_container(
    made: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.elsewhere(**{"/proc/4711/comm": "screen\n", "/proc/4711/fd/0": ""})
    (made.root / "proc/4711/fd/5").symlink_to(os.path.realpath(made.place / "ports" / "shoe"))
    assert "in use by process 4711 (screen)" in made.problem("ports").what
    monkeypatch.setattr(os.path, "samefile", lambda one, other: False)
    assert made.check("ports").verdict == "ok"


def test_ports_that_the_table_itself_has(made: House) -> None:
    made.recorded()
    with child(
        f"{OPENING.partition('print')[0]}{LOCKING}".replace("argv[1]", "argv[2]", 1),
        made.record / "lock",
        made.place / "ports" / "shoe",
    ) as other:
        assert [one.pid for one in locking(made.machine, made.record / "lock")] == [other.pid]
        ports = opening(made.machine, made.place / "ports" / "shoe")
        assert [one.pid for one in ports] == [other.pid]
        assert made.check("ports").verdict == "ok"


def test_an_adapter_that_keeps_what_it_has_read(made: House) -> None:
    name = Path(os.path.realpath(made.place / "ports" / "shoe")).name
    made.elsewhere()
    timer = made.put(f"/sys/bus/usb-serial/devices/{name}/latency_timer", "16\n")
    made.expect("ports", grade="warning", what="for up to 16 ms")
    made.mend("ports")
    assert timer.read_text() == "1\n"
