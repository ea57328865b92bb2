"""Keys on a disk that fails: what the system says is a KeyProblem, without a key in its words."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.pretty import pretty_repr

from drivers import key_files, key_store
from drivers.key_store import KeyProblem, KeyStore
from tests.drivers.test_key_store import paired, raw


@pytest.fixture
def store(tmp_path: Path) -> KeyStore:
    made = KeyStore.create(tmp_path / "keys")
    made.add(paired())
    return made


def failing(number: int) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


READS: dict[str, Callable[[KeyStore], object]] = {
    "own": KeyStore.own,
    "standing": KeyStore.standing_own,
    "devices": KeyStore.devices,
    "find": lambda store: store.find("SH-1"),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize(
    ("function", "number"),
    [("read", errno.EIO), ("open", errno.EIO), ("fstat", errno.EIO)],
)
def test_what_cannot_be_read(
    store: KeyStore,
    monkeypatch: pytest.MonkeyPatch,
    read: Callable[[KeyStore], object],
    function: str,
    number: int,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, function, failing(number))
        with pytest.raises(KeyProblem, match=os.strerror(number).lower()):
            read(store)


@pytest.mark.parametrize("read", [KeyStore.own, KeyStore.devices, READS["find"]])
def test_what_cannot_be_seen_is_not_taken_as_missing(
    store: KeyStore, monkeypatch: pytest.MonkeyPatch, read: Callable[[KeyStore], object]
) -> None:
    monkeypatch.setattr(os, "lstat", failing(errno.EACCES))
    with pytest.raises(KeyProblem, match="permission denied"):
        read(store)


def test_a_directory_that_cannot_be_listed(
    store: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "listdir", failing(errno.EIO))
    with pytest.raises(KeyProblem, match="input/output error"):
        store.devices()


def test_a_directory_that_may_not_be_looked_into(
    store: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "lstat", failing(errno.EACCES))
    with pytest.raises(KeyProblem, match="permission denied"):
        KeyStore(store.directory)


def test_a_system_that_has_no_locks_left(store: KeyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", failing(errno.ENOLCK))
    with pytest.raises(KeyProblem, match="no locks available"):
        store.add(paired("SH-2"))


def test_a_directory_that_is_made_and_cannot_be_synced(
    store: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    with pytest.raises(KeyProblem, match="input/output error"):
        key_files.make_directory(store.directory / "more")


def test_no_part_of_a_damaged_key_is_said(store: KeyStore) -> None:
    file = store.directory / "host.json"
    key = raw(store).hex()
    data = file.read_bytes()
    at = data.index(key.encode()) + 60
    file.write_bytes(data[:at] + b"\xff" + data[at + 1 :])
    for read in (store.own, store.standing_own):
        with pytest.raises(KeyProblem, match="is damaged") as caught:
            read()
        shown: BaseException | None = caught.value
        while shown is not None:
            assert key[:16] not in repr(shown) + str(shown)
            shown = shown.__cause__ or shown.__context__


def test_keys_are_not_pretty_printed(store: KeyStore) -> None:
    host = key_files.read_host(store.directory / "host.json")
    assert raw(store).hex() not in pretty_repr(host)
    assert host.fingerprint in pretty_repr(host)
    assert raw(store).hex() not in pretty_repr({"host": [host]})


def test_the_key_that_stands_is_read_without_waiting(
    store: KeyStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """For an event loop: it takes no lock and makes nothing."""
    monkeypatch.setattr(time, "sleep", failing(errno.EDEADLK))
    monkeypatch.setattr(key_store, "LOCK_SECONDS", 60.0)
    with store._locked():
        assert store.standing_own().private_bytes_raw() == raw(store)
        place = tmp_path / "empty"
        place.mkdir(mode=0o700)
        with pytest.raises(KeyProblem, match="is missing"):
            KeyStore(place).standing_own()
        assert list(place.iterdir()) == []
