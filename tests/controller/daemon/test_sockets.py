"""Sockets are taken whole or not at all, from nobody who lives, and given back."""

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from controller.config import ControlPlace
from controller.daemon.sockets import listening
from controller.errors import UsageProblem
from tests.support.daemon.rig import free_port


@contextmanager
def bound(place: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.bind(str(place))
        sock.listen()
        yield sock


def refused(control: ControlPlace) -> str:
    with pytest.raises(UsageProblem) as caught, listening(control, "t.toml"):
        pytest.fail("it is taken")
    return str(caught.value)


def calls(place: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        return sock.connect_ex(str(place)) == 0


def test_all_of_them_listen_and_are_gone_afterwards(tmp_path: Path) -> None:
    port, figures = free_port(), free_port()
    place = tmp_path / "s"
    with listening(ControlPlace(place, port, figures), "t.toml") as found:
        assert len(found.control) == 2
        assert stat.S_IMODE(place.stat().st_mode) == 0o660
        assert calls(place)
        for one in (port, figures):
            socket.create_connection(("127.0.0.1", one), timeout=5).close()
        found.check()
        assert sorted(one.name for one in tmp_path.iterdir()) == ["s"]
    assert list(tmp_path.iterdir()) == []
    for one in (port, figures):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", one), timeout=5)


def test_only_this_machine_is_listened_to(tmp_path: Path) -> None:
    with listening(ControlPlace(tmp_path / "s", free_port(), free_port()), "t.toml") as found:
        for sock in (found.tcp, found.metrics):
            assert sock is not None
            assert sock.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize("which", ["port", "metrics_port"])
def test_a_port_that_is_taken_is_named_and_nothing_is_left(which: str, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        ports = {"port": free_port(), "metrics_port": free_port(), which: port}
        words = refused(ControlPlace(tmp_path / "s", **ports))
    assert words.startswith(f"t.toml: control.{which}: port {port} is in use by another program")
    assert f"ss -ltnp 'sport = :{port}'" in words
    assert list(tmp_path.iterdir()) == []


def test_what_a_dead_process_has_left_is_replaced(tmp_path: Path) -> None:
    place = tmp_path / "s"
    with bound(place):
        pass
    assert place.is_socket()
    with listening(ControlPlace(place), "t.toml"):
        assert calls(place)
    assert not place.exists()


def test_what_somebody_listens_at_stays_theirs(tmp_path: Path) -> None:
    place = tmp_path / "s"
    with bound(place):
        words = refused(ControlPlace(place))
        assert calls(place)
    assert words == (
        f"t.toml: control.socket: another process listens at {place} already; "
        "allowed: one controller for a table: stop the other one first"
    )


def test_one_who_is_too_busy_to_answer_lives(tmp_path: Path) -> None:
    place = tmp_path / "s"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.bind(str(place))
        sock.listen(0)
        waiting = []
        for _ in range(8):
            one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            one.setblocking(False)
            waiting.append(one)
            one.connect_ex(str(place))
        assert "another process listens" in refused(ControlPlace(place))
        for one in waiting:
            one.close()


def test_a_place_that_was_taken_from_us_is_noticed_and_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "s"
    with listening(ControlPlace(place), "t.toml") as found:
        place.rename(tmp_path / "kept")  # so that its inode is not given to the next one
        with bound(place), pytest.raises(UsageProblem, match="was replaced by another process"):
            found.check()
    assert place.is_socket()


def _file(place: Path) -> None:
    place.write_text("mine")


def _link(place: Path) -> None:
    place.symlink_to(place.parent / "elsewhere")


@pytest.mark.parametrize("make", [_file, _link])
def test_what_is_no_socket_stays(make: object, tmp_path: Path) -> None:
    place = tmp_path / "s"
    make(place)  # type: ignore[operator]
    assert "exists and is not a socket" in refused(ControlPlace(place))
    assert place.is_symlink() or place.read_text() == "mine"


def test_a_directory_that_anyone_may_write_in(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    assert refused(ControlPlace(folder / "s")) == (
        f"t.toml: control.socket: every user may write in {folder} (mode 777); "
        f"allowed: close it to others: chmod o-w {folder}"
    )
    folder.chmod(0o755)
    with listening(ControlPlace(folder / "s"), "t.toml"):
        assert (folder / "s").is_socket()


def test_a_directory_that_is_not_there_or_is_none(tmp_path: Path) -> None:
    words = refused(ControlPlace(tmp_path / "no" / "s"))
    assert words.endswith(f"allowed: create it first: mkdir -m 750 {tmp_path / 'no'}")
    (tmp_path / "file").touch()
    assert "file is not a directory" in refused(ControlPlace(tmp_path / "file" / "s"))


def test_a_path_that_is_too_long(tmp_path: Path) -> None:
    folder = tmp_path
    while len(os.fsencode(folder)) < 120:
        folder /= "f" * 20
    folder.mkdir(parents=True)
    words = refused(ControlPlace(folder / "s"))
    assert "allowed: a path of up to 107 bytes, the kernel's limit" in words


def test_the_longest_path(tmp_path: Path) -> None:
    room = 107 - len(os.fsencode(tmp_path)) - 1
    place = tmp_path / ("s" * room)
    with listening(ControlPlace(place), "t.toml"):
        assert calls(place)
    assert len(os.fsencode(place)) == 107


def test_an_end_where_the_place_has_gone_already(tmp_path: Path) -> None:
    place = tmp_path / "s"
    with listening(ControlPlace(place), "t.toml"):
        place.unlink()
    assert not place.exists()
