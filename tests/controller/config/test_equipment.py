"""A table file's devices, record, keys, people, ports: read strictly, optional, told in words."""

import json
from pathlib import Path

import pytest

from controller.config import (
    ControlPlace,
    DevicePlace,
    DevicePlaces,
    Equipment,
    ScreensPlace,
    installed,
    load_table,
)
from controller.config.equipment import NO_EQUIPMENT, CardBatch, RecordPlace, as_json, lines
from controller.errors import UsageProblem, each

HEAD = """
schema = 1
[table]
name = "one"
game = "mega"
seats = 5
[options]
money.unit = 50
limits.main = { min = 1000, max = 50000, step = 100 }
"""
WHOLE = """
[devices]
min_confidence = 75
backs = [3, 9]
[devices.shoe]
serial = "SH-1"
port = "usb:SH-1"
[devices.shuffler]
serial = "SF-1"
[[devices.stations]]
serial = "ST-1"
seats = [1, 2]
[[devices.stations]]
serial = "ST-2"
port = "adapter:X9"
seats = [5]
[devices.standing]
2 = { buster = 500, main = 1000 }
1 = { main = 2500 }
[record]
directory = "data/record"
day_starts = "06:30"
segment_mib = 4
unwitnessed_hours = 36
[keys]
directory = "/etc/holecard"
[people]
file = "data/people.json"
[control]
socket = "data/control.sock"
port = 8021
metrics_port = 9121
"""


def loaded(folder: Path, text: str) -> Equipment:
    file = folder / "table.toml"
    file.write_text(HEAD + text)
    return load_table(file).equipment


def refused(folder: Path, text: str) -> list[str]:
    file = folder / "table.toml"
    file.write_text(HEAD + text)
    with pytest.raises(UsageProblem) as caught:
        load_table(file)
    return [str(one).removeprefix(f"{file}: ") for one in each(caught.value)]


def test_a_table_without_them_is_a_table(tmp_path: Path) -> None:
    assert loaded(tmp_path, "") == NO_EQUIPMENT


def test_everything_that_there_is(tmp_path: Path) -> None:
    found = loaded(tmp_path, WHOLE)
    assert found.devices == DevicePlaces(
        DevicePlace("SH-1", "usb:SH-1"),
        DevicePlace("SF-1"),
        (DevicePlace("ST-1", "", (1, 2)), DevicePlace("ST-2", "adapter:X9", (5,))),
        CardBatch(75, (3, 9)),
        {1: {"main": 2500}, 2: {"main": 1000, "buster": 500}},
    )
    # A bet without the main wager before it is refused: the order is the procedure's.
    assert list(found.devices.standing[2]) == ["main", "buster"]
    assert found.record == RecordPlace(tmp_path / "data/record", 390, 4, 36)
    assert (found.keys, found.people) == (Path("/etc/holecard"), tmp_path / "data/people.json")
    assert found.control == ControlPlace(tmp_path / "data/control.sock", 8021, 9121)


@pytest.mark.parametrize(
    ("port", "head", "path"),
    [
        ("run/shoe/port", "", "run/shoe/port"),
        ("./port", "", "port"),
        ("../port:1", "", "../port:1"),
        ("serial:run/shoe/port", "serial:", "run/shoe/port"),
    ],
)
def test_a_path_of_a_port_starts_from_the_folder(
    tmp_path: Path, port: str, head: str, path: str
) -> None:
    found = loaded(tmp_path, f'[devices.shoe]\nserial = "SH-1"\nport = "{port}"\n').devices
    assert found is not None
    assert found.shoe.port == f"{head}{tmp_path / path}"
    station = f'[[devices.stations]]\nserial = "ST-1"\nport = "{port}"\nseats = [1]\n'
    found = loaded(tmp_path, f'[devices.shoe]\nserial = "SH-1"\n{station}').devices
    assert found is not None
    assert found.stations[0].port == f"{head}{tmp_path / path}"


@pytest.mark.parametrize(
    "port",
    [
        "/dev/ttyS0",
        "serial:/dev/ttyS0",
        "adapter:a/b",
        "usb:S-1",
        "usb+sim=run/bus:S-1",
        "COM1",
        "a/",
    ],
)
def test_another_port_is_as_it_stands_there(tmp_path: Path, port: str) -> None:
    found = loaded(tmp_path, f'[devices.shoe]\nserial = "SH-1"\nport = "{port}"\n').devices
    assert found is not None
    assert found.shoe.port == port


def test_what_may_be_left_out(tmp_path: Path) -> None:
    found = loaded(tmp_path, '[devices.shoe]\nserial = "SH-1"\n[record]\ndirectory = "r"\n')
    devices = DevicePlaces(DevicePlace("SH-1"), None, (), CardBatch(), {})
    assert found == Equipment(devices, RecordPlace(tmp_path / "r"), None)


def test_where_pages_are_served(tmp_path: Path) -> None:
    found = loaded(tmp_path, "[screens]\nport = 0\n")
    assert found.screens == ScreensPlace(0)
    assert list(lines(found)) == ["screens at any free port of 127.0.0.1"]
    text = '[screens]\nport = 8024\nlisten = "::1"\ncertificate = "c"\nkey = "k"\ntexts = "t"\n'
    found = loaded(tmp_path, text)
    assert found.screens == ScreensPlace(8024, "::1", *(tmp_path / one for one in "ckt"))
    assert list(lines(found)) == ["screens at [::1]:8024, behind a certificate"]


def test_a_socket_without_ports(tmp_path: Path) -> None:
    found = loaded(tmp_path, '[control]\nsocket = "s"\n').control
    assert found == ControlPlace(tmp_path / "s", None, None)


def at_ports(shoe: str, shuffler: str) -> str:
    one = f'[devices.shoe]\nserial = "S"\nport = "{shoe}"\n'
    return f'{one}[devices.shuffler]\nserial = "T"\nport = "{shuffler}"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[devices]\n", 'devices.shoe: is missing; allowed: a table with serial = "..."'),
        ("[[devices]]\n", "devices: a list is not a table"),
        (
            '[devices.shoe]\nserial = "a b"\n',
            "devices.shoe.serial: 'a b' is not valid here; allowed: a serial number of 1 to 20",
        ),
        ("[devices.shoe]\nport = 'x'\n", "devices.shoe.serial: is missing"),
        (
            '[devices.shoe]\nserial = "S"\nseats = [1]\n',
            "devices.shoe.seats: is no key of this table",
        ),
        ('[devices]\nshoe = "SH-1"\n', "devices.shoe: 'SH-1' is not a table"),
        (
            '[devices]\nshoes = 1\n[devices.shoe]\nserial = "S"\n',
            "devices.shoes: is no key of this table; allowed: shoe? shoe, shuffler",
        ),
        (
            '[devices]\nmin_confidence = 101\n[devices.shoe]\nserial = "S"\n',
            "devices.min_confidence: 101 is not valid here; allowed: 0 to 100",
        ),
        (
            '[devices]\nbacks = [1, 1]\n[devices.shoe]\nserial = "S"\n',
            "devices.backs: 1 is in it twice",
        ),
        (
            '[devices.shoe]\nserial = "S"\n[devices.shuffler]\nserial = "S"\n',
            "devices: 2 devices have the serial number S; allowed: one for each",
        ),
        (
            at_ports("serial:/dev/ttyACM0", "/dev/./ttyACM0"),
            "devices: 2 devices have the port /dev/ttyACM0; allowed: one for each",
        ),
        (
            at_ports("adapter:X9", "adapter:X9"),
            "devices: 2 devices have the port adapter:X9; allowed: one for each",
        ),
        (
            '[devices]\nstations = "no"\n[devices.shoe]\nserial = "S"\n',
            "devices.stations: 'no' is not a list",
        ),
        (
            '[devices]\nstations = [3]\n[devices.shoe]\nserial = "S"\n',
            "devices.stations[0]: 3 is not a table",
        ),
        (
            '[devices.shoe]\nserial = "S"\n[[devices.stations]]\nserial = "T"\nseats = [6]\n',
            "devices.stations[0].seats: 6 is not valid here; allowed: a list of 1 to 5",
        ),
        (
            '[devices.shoe]\nserial = "S"\n[[devices.stations]]\nserial = "T"\n',
            "devices.stations[0].seats: is missing",
        ),
        (
            """[devices]
            shoe = { serial = "S" }
            stations = [{ serial = "T", seats = [1] }, { serial = "U", seats = [1] }]""",
            "devices.stations: seat 1 has 2 stations; allowed: one for each seat",
        ),
        (
            '[devices.shoe]\nserial = "S"\n[devices.standing]\n9 = { main = 1000 }\n',
            "devices.standing.9: is no seat; allowed: 1 to 5",
        ),
        (
            '[devices.shoe]\nserial = "S"\n[devices.standing]\n1 = 1000\n',
            "devices.standing.1: 1000 is not a table",
        ),
        (
            '[devices]\nstanding = 4\n[devices.shoe]\nserial = "S"\n',
            "devices.standing: 4 is not a table",
        ),
        (
            '[devices.shoe]\nserial = "S"\n[devices.standing]\n1 = { buster = 500 }\n',
            "devices.standing.1: has no main wager",
        ),
        (
            '[devices.shoe]\nserial = "S"\n[devices.standing]\n1 = { main = 1000, side = 5 }\n',
            "devices.standing.1.side: is no key of this table",
        ),
        (
            '[devices.shoe]\nserial = "S"\n[devices.standing]\n1 = { main = true }\n',
            "devices.standing.1.main: true is not valid here",
        ),
        (
            '[devices.shoe]\nserial = "S"\n[devices.standing]\n1 = { main = 900 }\n',
            "devices.standing.1.main: 900 is not taken; allowed: 1000 or more",
        ),
        (
            '[devices.shoe]\nserial = "S"\n[devices.standing]\n1 = { main = 90000 }\n',
            "devices.standing.1.main: 90000 is not taken; allowed: 50000 or less",
        ),
        (
            '[devices.shoe]\nserial = "S"\n[devices.standing]\n1 = { main = 1050 }\n',
            "devices.standing.1.main: 1050 is not taken; allowed: multiples of 100",
        ),
        (
            '[devices.shoe]\nserial = "S"\n[devices.standing]\n1 = { main = 1001 }\n',
            "devices.standing.1.main: 1001 is not taken; allowed: multiples of 50",
        ),
        ("[record]\n", "record.directory: is missing"),
        (
            '[record]\ndirectory = "r"\nday_starts = "24:00"\n',
            "record.day_starts: '24:00' is not valid here; allowed: a time of the day, by UTC",
        ),
        (
            '[record]\ndirectory = "r"\nsegment_mib = 0\n',
            "record.segment_mib: 0 is not valid here; allowed: 1 to 1024",
        ),
        ('[keys]\ndirectory = ""\n', "keys.directory: '' is not valid here"),
        ('[keys]\nplace = "k"\n', "keys.place: is no key of this table; allowed: directory"),
        ("[people]\n", "people.file: is missing"),
        ("[control]\nport = 8021\n", "control.socket: is missing"),
        (
            '[control]\nsocket = "s"\nport = 80\n',
            "control.port: 80 is not valid here; allowed: 1024 to 65535",
        ),
        (
            '[control]\nsocket = "s"\nport = 8021\nmetrics_port = 8021\n',
            "control.metrics_port: 8021 is the control port already; allowed: another port",
        ),
        (
            '[control]\nsocket = "s"\nhost = "0.0.0.0"\n',
            "control.host: is no key of this table; allowed: socket, port, metrics_port",
        ),
        ("[screens]\n", "screens.port: is missing; allowed: 1024 to 65535; 0: any free one"),
        ("[screens]\nport = 80\n", "screens.port: 80 is not valid here; allowed: 1024 to 65535"),
        ("[screens]\nport = false\n", "screens.port: false is not valid here"),
        ('[screens]\nport = 0\nhost = "x"\n', "screens.host: is no key of this table"),
        (
            '[control]\nsocket = "s"\nport = 8021\n[screens]\nport = 8021\n',
            "screens.port: 8021 is the control port already; allowed: another port",
        ),
        (
            '[control]\nsocket = "s"\nmetrics_port = 8021\n[screens]\nport = 8021\n',
            "screens.port: 8021 is the port for metrics already; allowed: another port",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, words: str, tmp_path: Path) -> None:
    found = refused(tmp_path, text)
    assert any(one.startswith(words) for one in found), found


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    found = refused(tmp_path, "[devices]\nx = 1\n[record]\ny = 2\n[keys]\nz = 3\n")
    assert len(found) == 6  # each unknown key, and what is missing beside it


def test_in_words_and_as_data(tmp_path: Path) -> None:
    found = loaded(tmp_path, WHOLE)
    assert list(lines(found)) == [
        "shoe SH-1 at usb:SH-1",
        "shuffler SF-1",
        "station ST-1, seats 1, 2",
        "station ST-2 at adapter:X9, seats 5",
        "cards read with 75 % or more; backs: 3, 9",
        "seat 1 stands for main 2500",
        "seat 2 stands for main 1000, buster 500",
        f"record {tmp_path / 'data/record'}; the day starts at 06:30 UTC",
        "unwitnessed after 36 h",
        "keys /etc/holecard",
        f"people {tmp_path / 'data/people.json'}",
        f"control at {tmp_path / 'data/control.sock'} and at 127.0.0.1:8021",
        "metrics at 127.0.0.1:9121",
    ]
    assert list(lines(loaded(tmp_path, '[control]\nsocket = "s"\n'))) == [
        f"control at {tmp_path / 's'}"
    ]
    data = json.loads(json.dumps(as_json(found)))
    assert (data["devices"]["stations"][1]["serial"], data["record"]["day_starts"]) == ("ST-2", 390)
    assert list(lines(NO_EQUIPMENT)) == []
    nothing = dict.fromkeys(("devices", "record", "keys", "people", "control", "screens"))
    assert as_json(NO_EQUIPMENT) == nothing


def test_the_examples_can_be_served_beside_each_other() -> None:
    tables = [load_table(name).equipment for name in sorted(installed("table"))]
    places = [one.control for one in tables]
    ports = [port for one in places if one for port in (one.port, one.metrics_port)]
    ports += [one.screens.port for one in tables if one.screens]
    assert len(set(ports)) == len(ports) == 3 * len(places)
    assert len({one.socket for one in places if one}) == len(places)


@pytest.mark.parametrize("name", sorted(installed("table")))
def test_the_examples_can_be_served(name: str) -> None:
    found = load_table(name).equipment
    assert found.devices is not None
    others = found.devices.shuffler, found.record, found.keys, found.people, found.control
    assert None not in others
