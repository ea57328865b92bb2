"""Keys on a disk that fails: what the system says is a KeyProblem, without a key in its words."""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.pretty import pretty_repr

from drivers.keys import KeyProblem, KeyStore
from drivers.keys import store as key_store
from drivers.keys.private_files import make_private_directory
from tests.support.drivers.paired_keys import changing, paired, raw
from tests.support.hil.conform.failing_disk import FailingDisk


@pytest.fixture
def store(tmp_path: Path) -> KeyStore:
    made = KeyStore.create(tmp_path / "keys")
    made.add(paired())
    return made


def failing(number: int) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


def each_step(folder: Path, patch: pytest.MonkeyPatch, try_it: Callable[[KeyStore], object]) -> int:
    """On a store with one device, with no room left from each step on; how many steps there are.
    Each time nothing half made is left, and it is done as soon as there is room."""
    for at in itertools.count():
        place = folder / f"step-{at}"
        store = KeyStore.create(place)
        store.add(paired())
        with patch.context() as patched:
            disk = FailingDisk(patched, place, errno.ENOSPC, at)
            try:
                try_it(store)
            except KeyProblem as problem:
                text = str(problem)
            else:
                assert disk.asked <= at
                return at
        assert "no space left on device; allowed: room on that disk" in text, at
        files = {str(file.relative_to(place)) for file in place.rglob("*") if file.is_file()}
        allowed = {"host.json", "lock", "history.jsonl", "devices/SH-1.json", "devices/SH-2.json"}
        assert files <= allowed, at
        lines = (place / "history.jsonl").read_bytes().splitlines(keepends=True)
        assert [json.loads(line)["serial"] for line in lines][:1] == ["SH-1"], at
        assert all(line.endswith(b"\n") for line in lines), at
        assert paired() in store.devices(), at
        with suppress(KeyProblem):  # the last step fails when all is done
            store.add(paired("SH-2"))
        assert store.devices() == [paired(), paired("SH-2")], at
    raise AssertionError


@pytest.mark.parametrize(
    ("try_it", "steps"), [(lambda store: store.add(paired("SH-2")), 7), (KeyStore.check_room, 5)]
)
def test_a_disk_that_is_full_at_any_step(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    try_it: Callable[[KeyStore], object],
    steps: int,
) -> None:
    assert each_step(tmp_path, monkeypatch, try_it) >= steps


def test_a_pairing_that_finds_no_room_is_not_in_the_history(
    store: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (store.directory / "history.jsonl").read_bytes()
    with monkeypatch.context() as patched:
        FailingDisk(patched, store.directory / "devices", errno.ENOSPC, 1)
        with pytest.raises(KeyProblem):
            store.add(paired("SH-2"))
    assert (store.directory / "history.jsonl").read_bytes() == before


def test_a_line_of_history_for_which_there_is_no_room_is_taken_back(
    store: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = store.directory / "history.jsonl"
    before = history.read_bytes()
    write = os.write

    def half(descriptor: int, data: bytes) -> int:
        if not os.readlink(f"/proc/self/fd/{descriptor}").endswith("history.jsonl"):
            return write(descriptor, data)
        if len(data) < 20:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[: len(data) // 2])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", half)
        with pytest.raises(KeyProblem, match=r"history\.jsonl: cannot be written"):
            store.add(paired("SH-2"))
    assert (history.read_bytes(), store.devices()) == (before, [paired()])


def test_a_store_for_whose_key_there_is_no_room_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (errno.ENOSPC, errno.EROFS):
        for at in itertools.count():
            above = tmp_path / f"{number}-{at}"
            above.mkdir()
            with monkeypatch.context() as patched:
                disk = FailingDisk(patched, above, number, at)
                try:
                    KeyStore.create(above / "deep" / "keys")
                except KeyProblem as problem:
                    text = str(problem)
                else:
                    assert at > 5
                    break
            assert text.startswith(str(above / "deep")), at
            made = list(above.rglob("*"))
            assert not made or above / "deep/keys/host.json" in made, (at, made)
            assert disk.asked > at


def test_a_lock_that_is_removed_while_it_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a store that could not be made: whoever comes next would hold another lock."""
    store = KeyStore.create(tmp_path / "keys")
    flock = fcntl.flock

    def late(descriptor: int, how: int) -> None:
        flock(descriptor, how)
        (tmp_path / "keys" / "lock").unlink()

    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", late)
        with pytest.raises(KeyProblem, match="was removed while it was waited for"):
            store.add(paired())
    store.add(paired())


READS: dict[str, Callable[[KeyStore], object]] = {
    "own": KeyStore.own,
    "standing": KeyStore.existing_own,
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


@pytest.mark.parametrize(
    ("module", "function", "number", "use"),
    [
        # What cannot be seen is not taken as missing.
        *((os, "lstat", errno.EACCES, READS[name]) for name in ("own", "devices", "find")),
        (os, "lstat", errno.EACCES, lambda store: KeyStore(store.directory)),
        (os, "listdir", errno.EIO, KeyStore.devices),
        (fcntl, "flock", errno.ENOLCK, lambda store: store.add(paired("SH-2"))),
        (os, "fsync", errno.EIO, lambda store: make_private_directory(store.directory / "more")),
    ],
)
def test_what_the_system_refuses_is_a_key_problem(
    store: KeyStore,
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    function: str,
    number: int,
    use: Callable[[KeyStore], object],
) -> None:
    monkeypatch.setattr(module, function, failing(number))
    with pytest.raises(KeyProblem, match=os.strerror(number).lower()):
        use(store)


def test_no_part_of_a_damaged_key_is_said(store: KeyStore) -> None:
    file, key = store.directory / "host.json", raw(store).hex()
    data = file.read_bytes()
    at = data.index(key.encode()) + 60
    file.write_bytes(data[:at] + b"\xff" + data[at + 1 :])
    for read in (store.own, store.existing_own):
        with pytest.raises(KeyProblem, match="is damaged") as caught:
            read()
        shown: BaseException | None = caught.value
        while shown is not None:
            assert key[:16] not in repr(shown) + str(shown)
            shown = shown.__cause__ or shown.__context__


def test_keys_are_not_pretty_printed(store: KeyStore) -> None:
    host = key_store.read_host(store.directory / "host.json")
    assert raw(store).hex() not in pretty_repr(host)
    assert host.fingerprint in pretty_repr(host)
    assert raw(store).hex() not in pretty_repr({"host": [host]})


def test_the_existing_key_is_read_without_waiting(
    store: KeyStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """For an event loop: it takes no lock and makes nothing."""
    monkeypatch.setattr(time, "sleep", failing(errno.EDEADLK))
    monkeypatch.setattr(key_store, "LOCK_TIMEOUT", 60.0)
    with changing(store):
        assert store.existing_own().private_bytes_raw() == raw(store)
        place = tmp_path / "empty"
        place.mkdir(mode=0o700)
        with pytest.raises(KeyProblem, match="is missing"):
            KeyStore(place).existing_own()
        assert list(place.iterdir()) == []
