"""`holecard conform` at real ports, and what it says to wrong arguments."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from controller.commands import run as run_command
from controller.errors import UsageProblem
from drivers.keys import KeyStore
from drivers.ports import discovery, usb_discovery
from hil.conform.runs import cli
from hil.conform.tester import bench
from hil.simulator import DeviceProcess, device_process
from tests.support.hil.commands import conform as run

SOCKET = "control"


def private(file: Path, text: str) -> None:
    file.write_text(text)
    file.chmod(0o600)


@pytest.fixture(autouse=True)
def _announced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The simulated bus as if it were installed, and no keys of whoever runs this."""
    point = EntryPoint("sim", "hil.ports.usb_backend:backend", usb_discovery.GROUP)
    monkeypatch.setattr(usb_discovery, "entry_points", lambda group: [point])
    monkeypatch.setenv("HOLECARD_KEYS", str(tmp_path / "no-keys"))


def at(sim: DeviceProcess, *arguments: str | Path, profile: str = "shoe") -> int:
    """A run at the port of this device."""
    return run("--profile", profile, "--port", str(sim.port), *arguments)


def contents(folder: Path) -> dict[str, bytes | None]:
    """Everything under it, and what the files hold."""
    return {str(one): one.read_bytes() if one.is_file() else None for one in folder.rglob("*")}


@pytest.fixture
def bus(tmp_path: Path) -> Path:
    bus = tmp_path / "bus"
    bus.mkdir()
    return bus


# --- at real ports ----------------------------------------------------------------------------


def test_a_shoe_at_a_serial_port(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is paired by itself, and judged by a handful of items that need hands."""
    only = ("FR-1", "EV-2", "EV-10", "CO-4")
    place, junit = tmp_path / "shoe", tmp_path / "report.xml"
    with device_process("shoe", place) as sim:
        options = ("--control", place / SOCKET, "--junit", junit, "--seed", "5")
        code = at(sim, *options, "--only", *only)
    *lines, summary = capsys.readouterr().out.splitlines()
    assert code == 0, lines
    assert [line.split()[:2] for line in lines] == [[one, "PASS"] for one in only]
    assert summary.startswith("4 passed, 0 failed, 0 skipped, 0 not tried in ")
    (suite,) = ElementTree.fromstring(junit.read_bytes()).iter("testsuite")
    assert suite.attrib["tests"] == "4"
    facts = {one.attrib["name"]: one.attrib["value"] for one in suite.iter("property")}
    wanted = {"seed": "5", "device.serial": "SH-0001", "operator": "controlled"}
    assert facts.items() >= wanted.items()


def test_a_station_on_the_bus(
    tmp_path: Path, bus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "station"
    with device_process("station", place, usb=bus) as sim:
        port = f"usb+sim={bus}:{sim.serial}"
        code = run(
            *("--profile", "station", "--port", port, "--control", place / SOCKET, "--json"),
            *("--only", "FR-1", "EV-2", "ST-1"),
        )
    found = json.loads(capsys.readouterr().out)
    assert code == 0, found
    assert (found["passed"], found["port"], found["device"]["class"]) == (3, port, "station")


def test_one_of_two_devices_with_one_number_is_named_as_it_is_listed(
    tmp_path: Path, bus: Path
) -> None:
    with (
        device_process("shoe", tmp_path / "one", usb=bus),
        device_process("shoe", tmp_path / "two", usb=bus, breaks=("schema-wrong",)),
    ):
        ports = [str(one.address) for one in discovery.usb_devices(f"sim={bus}")]
        assert [port.partition(" ")[2] for port in ports] == [
            "(bus 1 address 1)",
            "(bus 1 address 2)",
        ]
        codes = [run("--profile", "shoe", "--port", port, "--only", "HE-2") for port in ports]
        assert codes == [0, 1]  # the second one is the broken one
        number = ports[0].partition(" ")[0]
        with pytest.raises(UsageProblem, match="2 devices have this serial number"):
            run("--profile", "shoe", "--port", number, "--only", "HE-2")


def test_a_device_addressed_by_place_is_found_again_after_a_power_cut(
    tmp_path: Path, bus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It comes back under another address, beside the other one."""
    place = tmp_path / "one"
    with device_process("shoe", place, usb=bus), device_process("shoe", tmp_path / "two", usb=bus):
        first, second = (str(one.address) for one in discovery.usb_devices(f"sim={bus}"))
        given = ("--profile", "shoe", "--port", first, "--control", place / SOCKET)
        assert run(*given, "--only", "FR-1", "EV-10") == 0, capsys.readouterr()
        after = {str(one.address) for one in discovery.usb_devices(f"sim={bus}")}
        assert after & {first, second} == {second}


def test_keys_by_hand_and_the_cable_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = X25519PrivateKey.generate()
    private(tmp_path / "host", own.private_bytes_raw().hex() + "\n")
    public = own.public_key().public_bytes_raw()
    with device_process("shuffler", tmp_path / "shuffler", paired_with=public) as sim:
        keys = ("--host-key", tmp_path / "host", "--device-key", sim.key.hex())
        code = at(sim, *keys, "--only", "HS-1", "EV-2", "CO-3", profile="shuffler")
    said = capsys.readouterr().out.splitlines()
    assert code == 3
    assert said[:3] == [
        "HS-1   PASS",
        "EV-2   SKIP  needs activity: --control or --ask",
        "CO-3   PASS",
    ]


def test_a_broken_device_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "shoe"
    with device_process("shoe", place, breaks=("schema-wrong",)) as sim:
        assert at(sim, "--control", place / SOCKET, "--only", "HE-1", "HE-2") == 1
    said = capsys.readouterr().out
    for words in ("HE-1   PASS", "HE-2   FAIL", "PROTOCOL.md#hello", "\n1 passed, 1 failed"):
        assert words in said


@pytest.mark.parametrize("known", [False, True])
def test_an_unpaired_device_gets_only_items_without_session(
    known: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(bench, "HANDSHAKE_WAIT_MS", 300)
    with device_process("shoe", tmp_path / "shoe") as sim:
        if known:
            private(tmp_path / "host", bytes(range(32)).hex())
            keys = ["--host-key", str(tmp_path / "host"), "--device-key", sim.key.hex()]
        else:
            KeyStore.create(tmp_path / "keys")
            keys = ["--keys", str(tmp_path / "keys")]
        assert at(sim, *keys, "--only", "FR-1", "HE-1", "HE-3", "HS-1", "EV-2") == 3
    said = capsys.readouterr()
    results = dict(line.split()[:2] for line in said.out.splitlines()[:-1])
    assert [name for name in results if results[name] != "PASS"] == ["HE-3", "HS-1", "EV-2"]
    assert "HS-1   UNTRIED  not paired; pair with `holecard devices pair`" in said.out
    assert "not paired: SH-0001" in said.err
    assert "holecard devices pair" in said.err


def test_items_without_session_need_no_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with device_process("station", tmp_path / "station") as sim:
        assert at(sim, "--only", "FR-1", "HE-2", profile="station") == 0
        assert at(sim, "--only", "FR-1", "HS-1", profile="station") == 3
    assert "there is no key store" in capsys.readouterr().err


def test_a_silent_port_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "HELLO_WAIT_MS", 200)
    place = tmp_path / "shoe"
    with device_process("shoe", place) as sim:
        # A device that is frozen is what a cable to nowhere looks like.
        sim.control.ask(b'{"do": "freeze", "on": true}')
        assert at(sim, "--control", place / SOCKET, "--only", "FR-1", "FR-2") == 1
    said = capsys.readouterr()
    assert "FR-1   FAIL" in said.out
    assert "FR-2   UNTRIED  the device does not answer HELLO" in said.out
    assert "the right port" in said.err


# --- wrong arguments --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "where", "words"),
    [
        (("--only", "XX-1"), "--only", "there is no item XX-1 for a shoe; allowed: FR-1"),
        (("--only", "ST-1"), "--only", "there is no item ST-1 for a shoe"),
        (("--port", "nowhere"), "--port", "'nowhere' is no address"),
        (("--port", "/dev/not-there"), "--port", "/dev/not-there"),
        (("--device-key", "00"), "--device-key", "64 hexadecimal digits"),
        (("--device-key", "09" + "00" * 31), "--device-key", "--host-key"),
        (("--device-key", "00" * 32), "--device-key", "is no device's key"),
        (("--host-key", "{place}/open"), "--host-key", "chmod 600"),
        (("--host-key", "{place}/absent"), "--host-key", "No such file"),
        (("--host-key", "{place}/words"), "--host-key", "has no private key"),
        (("--host-key", "{place}/hex", "--keys", "{place}"), "--keys", "from one place"),
        (("--keys", "{place}/absent"), "absent", "no such directory"),
        (("--junit", "{place}/absent/x.xml"), "--junit", "there is no folder"),
        (("--junit", "{place}"), "--junit", "it is a directory"),
        (("--junit", "{place}/words/x.xml"), "--junit", "there is no folder"),
        (("--junit", "/proc/x.xml"), "--junit", "x.xml: "),
        (("--junit", "/dev/full"), "--junit", "it is no file"),
        (("--junit", "{place}/" + 300 * "x"), "--junit", "too long"),
        (("--junit", "{place}/dangling"), "--junit", "No such file"),
        (("--junit", "{place}/hex", "--host-key", "{place}/hex"), "--junit", "--host-key names"),
        (("--junit", "{place}/keys/host.json", "--keys", "{place}/keys"), "--junit", "key store"),
        (("--control", "{place}/absent"), "--control", "a simulated device that runs"),
        (("--control", "{place}/absent", "--ask"), "--ask", "--control or --ask"),
        (("--port", ""), "--port", "--port: is empty; allowed: an address of a port"),
        (
            (),
            "--port",
            "/dev/null-port: there is no such port; allowed: a port that exists and is free",
        ),
        (
            ("--port", "usb+sim={place}:SH-9"),
            "--port",
            "--port: usb+sim={place}:SH-9: no such device is plugged in; allowed: a port that",
        ),
    ],
)
def test_wrong_arguments(
    arguments: tuple[str, ...], where: str, words: str, tmp_path: Path
) -> None:
    private(tmp_path / "words", "a private key")
    private(tmp_path / "hex", "11" * 32)
    (tmp_path / "open").write_text("11" * 32)
    (tmp_path / "open").chmod(0o644)
    (tmp_path / "keys").mkdir(mode=0o700)
    (tmp_path / "dangling").symlink_to("absent")
    before = contents(tmp_path)
    given = [one.format(place=tmp_path) for one in arguments]
    if "/dev/not-there" in given:
        given += ["--host-key", str(tmp_path / "hex")]
    with pytest.raises(UsageProblem) as problem:
        run("--profile", "shoe", "--port", "/dev/null-port", *given)
    assert where in problem.value.where
    assert words.format(place=tmp_path) in str(problem.value)
    assert contents(tmp_path) == before


def test_a_profile_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        run("--profile", "dealer", "--port", "/dev/null")
    assert stop.value.code == 2
    assert "shoe" in capsys.readouterr().err


def test_the_module_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--profile", "shoe", "--port", "/dev/x", "--only", "XX-9"]
    assert run_command(["conform", *given], cli.register) == 2
    assert capsys.readouterr().err.startswith("holecard: --only: there is no item XX-9")
