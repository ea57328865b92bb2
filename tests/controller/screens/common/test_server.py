"""Where the review listens, and the command that serves it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from controller.audit.read.access_log import access_log_file
from controller.cli import main
from controller.errors import EXIT_INTERRUPTED, EXIT_USAGE, UsageProblem
from controller.screens.common.access import HEADERS
from controller.screens.common.server import LOOPBACK, bound, listen_address, names_of
from tests.support.screens.certificates import certified
from tests.support.screens.looked_at import Looking

_WAIT: Final = 40


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return certified(tmp_path_factory.mktemp("tls"))


# --- where ------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", [None, "127.0.0.1", "127.0.0.5", "::1"])
def test_this_machine_needs_no_certificate(host: str | None) -> None:
    place = listen_address(host, 8731, None, None)
    assert not place.secure
    assert place.address(8731).startswith("http://")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "192.168.1.1", "fe80::1"])
def test_nobody_listens_elsewhere_without_a_certificate(host: str, pair: tuple[str, str]) -> None:
    with pytest.raises(UsageProblem, match="can be reached from elsewhere"):
        listen_address(host, 8731, None, None)
    place = listen_address(host, 8731, *pair)
    assert place.secure
    assert place.address(1).startswith("https://")


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_link_names_what_a_browser_can_open(host: str, pair: tuple[str, str]) -> None:
    assert listen_address(host, 1, *pair).address(1) == f"https://{socket.gethostname()}:1"
    assert listen_address("10.0.0.7", 1, *pair).address(1) == "https://10.0.0.7:1"


@pytest.mark.parametrize("host", ["localhost", "", "x", "10.0.0", "10.0.0.7:80", "\n"])
def test_what_is_no_address_is_refused(host: str) -> None:
    with pytest.raises(UsageProblem, match="is no address"):
        listen_address(host, 8731, None, None)


@pytest.mark.parametrize("port", [-1, 65_536])
def test_what_is_no_port_is_refused(port: int) -> None:
    with pytest.raises(UsageProblem, match="is no port"):
        listen_address(None, port, None, None)


def test_certificate_and_key_go_together_and_fit(pair: tuple[str, str], tmp_path: Path) -> None:
    certificate, key = pair
    for one, other in ((certificate, None), (None, key)):
        with pytest.raises(UsageProblem, match="go together"):
            listen_address(None, 0, one, other)
    other_key = tmp_path / "other.key"
    private = ec.generate_private_key(ec.SECP256R1())
    other_key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    for one, two in (
        (certificate, str(other_key)),
        (certificate, str(empty)),
        (str(empty), key),
        (str(tmp_path / "missing"), key),
        (str(tmp_path), key),
    ):
        with pytest.raises(UsageProblem, match="--certificate"):
            listen_address(None, 0, one, two)


def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageProblem, match=f"port {port}"):
            bound(listen_address(None, port, None, None))


def test_a_host_has_its_own_names_only() -> None:
    assert names_of(listen_address(None, 1, None, None), 81) == ("127.0.0.1:81", "localhost:81")
    assert names_of(listen_address("::1", 1, None, None), 81) == ("[::1]:81", "localhost:81")


# --- the command ------------------------------------------------------------------------------


@contextmanager
def serving(words: Sequence[str]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, and the first line that it prints."""
    command = [sys.executable, "-m", "controller.cli", "review", *words]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    with process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.wait(_WAIT)


def test_the_command_lets_one_browser_in_and_ends_when_it_is_told(place: Path) -> None:
    with serving([str(place), "--as", "Eve", "--port", "0"]) as (process, link):
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/enter\?word=[\w-]{43}", link)
        here = link.partition("/enter")[0]
        with httpx.Client(base_url=here, timeout=20) as client:
            assert client.get("/rounds").status_code == 401
            entered = client.get(link)
            assert entered.status_code == 303
            cookie = entered.headers["set-cookie"]
            assert cookie.startswith(f"holecard-review-{here.rpartition(':')[2]}=")
            page = client.get("/rounds")
            assert page.status_code == 200
            for name, value in HEADERS.items():
                assert page.headers[name] == value
            assert "server" not in page.headers
            secret = re.search(r'name="secret" value="([^"]+)"', page.text)
            assert secret is not None
            assert client.get("/rounds", headers={"host": "evil.example"}).status_code == 421
            left = client.post("/leave", data={"secret": secret[1]}, headers={"origin": here})
            assert left.status_code == 200
            assert process.stdout is not None
            another = process.stdout.readline().strip()
            assert another != link
            assert (client.get(link).status_code, client.get(another).status_code) == (401, 303)
        process.send_signal(signal.SIGINT)
        _, words = process.communicate(timeout=_WAIT)
        assert process.returncode == EXIT_INTERRUPTED
        assert "opens once" in words
        assert "Traceback" not in words
    assert '"who":"Eve"' in access_log_file(place).read_text()


def test_a_certificate_makes_it_https(place: Path, pair: tuple[str, str]) -> None:
    words = ["--certificate", pair[0], "--key", pair[1], "--port", "0", "--json"]
    with serving([str(place), "--as", "Eve", *words]) as (_, line):
        link = json.loads(line)["link"]
        assert link.startswith("https://127.0.0.1:")
        with httpx.Client(verify=ssl.create_default_context(cafile=pair[0]), timeout=20) as client:
            entered = client.get(link)
            assert entered.status_code == 303
            assert "secure" in entered.headers["set-cookie"].lower()
            assert "max-age=" in entered.headers["strict-transport-security"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["{place}"], "--as: is missing"),
        (["{place}", "--as", " "], "--as: is no text"),
        (["{place}", "--as", "Eve", "--listen", "0.0.0.0"], "can be reached from elsewhere"),
        (["{place}", "--as", "Eve", "--port", "70000"], "is no port"),
        (["{place}/nothing", "--as", "Eve"], "there is nothing here"),
        (["{place}/segments", "--as", "Eve"], "there is no record here"),
        (["{place}", "--as", "Eve", "--texts", "{place}/nothing"], "a file of texts"),
        (["{place}", "--as", "Eve", "--table-key", "x+0+y"], "--table-key"),
    ],
)
def test_mistakes_are_told_in_a_line(
    place: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    code = main(["review", *(word.format(place=place) for word in words)])
    said = capsys.readouterr()
    assert code == EXIT_USAGE
    assert told in said.err
    assert (said.err.count("\n"), said.out) == (1, "")


def test_who_looks_is_asked_for_at_a_terminal(looking: Looking) -> None:
    master, slave = os.openpty()
    try:
        command = [sys.executable, "-m", "controller.cli", "review", str(looking.source.record)]
        process = subprocess.Popen(
            [*command, "--port", "0"],
            stdin=slave,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with process:
            os.write(master, b"Ida\n")
            assert process.stdout is not None
            assert httpx.get(process.stdout.readline().strip(), timeout=20).status_code == 303
            process.send_signal(signal.SIGINT)
            _, words = process.communicate(timeout=_WAIT)
        assert "Who looks?" in words
        assert '"who":"Ida"' in access_log_file(looking.source.record).read_text()
    finally:
        os.close(master)
        os.close(slave)
