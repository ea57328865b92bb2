"""The keys of this host: who may touch them, what is damaged, and what a crash leaves."""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from drivers.keys import KeyProblem, KeyStore
from drivers.keys import store as key_store
from tests.support.drivers.paired_keys import changing, paired, raw

AT = "2026-07-29T17:30:00Z"


@pytest.fixture
def store(tmp_path: Path) -> KeyStore:
    return KeyStore.create(tmp_path / "keys")


def mode(place: Path) -> int:
    return stat.S_IMODE(place.stat().st_mode)


def test_the_hosts_key_is_made_once(tmp_path: Path, store: KeyStore) -> None:
    key = raw(store)
    assert (raw(store), raw(KeyStore(tmp_path / "keys"))) == (key, key)
    with pytest.raises(KeyProblem, match="the host has its key already"):
        KeyStore.create(tmp_path / "keys")
    assert raw(store) == key


def test_all_that_is_made_is_ours_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = KeyStore.create(tmp_path / "keys")
        store.add(paired())
    finally:
        os.umask(before)
    for place in (tmp_path / "keys", tmp_path / "keys/devices"):
        assert mode(place) == 0o700
        for file in place.iterdir():
            assert mode(file) == (0o700 if file.is_dir() else 0o600), file


def test_devices_are_stored_found_and_removed(store: KeyStore) -> None:
    assert (store.devices(), store.find("SH-1")) == ([], None)
    store.add(paired("SH-2"))
    store.add(paired("SH-1"))
    assert store.devices() == [paired("SH-1"), paired("SH-2")]
    assert store.find("SH-2") == paired("SH-2")
    store.forget("SH-2", ("Cid", "Dee"), "2026-07-30T00:00:00Z")
    assert store.find("SH-2") is None
    with pytest.raises(KeyProblem, match="no such device is paired"):
        store.forget("SH-2", ("Cid", "Dee"), AT)
    history = (store.directory / "history.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in history] == [
        {
            "what": what,
            "at": at,
            "by": by,
            "serial": serial,
            "fingerprint": paired().fingerprint,
        }
        for what, at, by, serial in (
            ("paired", AT, ["Ann", "Bob"], "SH-2"),
            ("paired", AT, ["Ann", "Bob"], "SH-1"),
            ("forgotten", "2026-07-30T00:00:00Z", ["Cid", "Dee"], "SH-2"),
        )
    ]


def test_a_pairing_is_replaced_only_when_that_is_said(store: KeyStore) -> None:
    store.add(paired())
    other = paired(key=bytes(32))
    with pytest.raises(KeyProblem, match="paired already"):
        store.add(other)
    assert store.find("SH-1") == paired()
    store.add(other, replace=True)
    assert store.find("SH-1") == other


@pytest.mark.parametrize("serial", ["", "..", "../host", "a/b", "a b", "x" * 21, "a\n"])
def test_a_serial_number_is_no_path(store: KeyStore, serial: str) -> None:
    if serial == "..":
        assert store.find(serial) is None  # its file would be "...json"
        return
    with pytest.raises(KeyProblem, match="is no serial number"):
        store.find(serial)
    with pytest.raises(KeyProblem, match="is no serial number"):
        store.add(paired(serial))


def test_keys_are_in_no_repr(store: KeyStore) -> None:
    assert raw(store).hex() not in repr(key_store.read_host(store.directory / "host.json"))
    assert repr(paired()) == f"Paired(SHOE, 'SH-1', {paired().fingerprint})"


# --- refused ----------------------------------------------------------------------------------


def test_no_directory(tmp_path: Path) -> None:
    with pytest.raises(KeyProblem) as caught:
        KeyStore(tmp_path / "none")
    assert str(caught.value) == (
        f"{tmp_path}/none: there is no such directory; allowed: `holecard devices init` makes one"
    )
    (tmp_path / "file").write_text("")
    for make in (KeyStore, KeyStore.create):
        with pytest.raises(KeyProblem, match=r"is no directory|cannot be made: file exists"):
            make(tmp_path / "file")
        with pytest.raises(KeyProblem, match="not a directory"):
            make(tmp_path / "file" / "below")


@pytest.mark.parametrize("bits", [0o750, 0o701, 0o777])
def test_a_directory_that_others_may_touch(store: KeyStore, bits: int) -> None:
    store.add(paired())
    for place in (store.directory, store.directory / "devices"):
        place.chmod(bits)
        with pytest.raises(KeyProblem) as caught:
            KeyStore(store.directory)
        assert str(caught.value) == (
            f"{place}: others may touch it (mode {bits:o}); allowed: mode 700: chmod 700 {place}"
        )
        place.chmod(0o700)
    KeyStore(store.directory)


@pytest.mark.parametrize("bits", [0o640, 0o604, 0o666])
@pytest.mark.parametrize("name", ["host.json", "devices/SH-1.json", "lock", "history.jsonl"])
def test_a_file_that_others_may_touch(store: KeyStore, name: str, bits: int) -> None:
    store.add(paired())
    file = store.directory / name
    file.chmod(bits)

    def use() -> None:
        store.own()
        store.devices()
        store.add(paired("SH-2"))

    with pytest.raises(KeyProblem) as caught:
        use()
    assert str(caught.value) == (
        f"{file}: others may touch it (mode {bits:o}); allowed: mode 600: chmod 600 {file}"
    )


def test_what_belongs_to_someone_else(store: KeyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    us = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: us + 1)
    for use in (lambda: KeyStore(store.directory), store.own):
        with pytest.raises(KeyProblem, match=f"number {us}, not to us") as caught:
            use()
        assert f"chown {us + 1} " in str(caught.value)


def test_links_and_other_things_are_no_files(store: KeyStore, tmp_path: Path) -> None:
    host = store.directory / "host.json"
    host.rename(tmp_path / "elsewhere.json")
    host.symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(KeyProblem, match="cannot be opened"):
        store.own()
    host.unlink()
    os.mkfifo(host, 0o600)
    with pytest.raises(KeyProblem, match="is no file"):
        store.own()


# --- damage -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"format": 1', '"format": 2'),
        ('"private_key_hex"', '"key"'),
        ("{", ""),
    ],
)
def test_a_damaged_host_key_is_refused(store: KeyStore, before: str, after: str) -> None:
    file = store.directory / "host.json"
    key = raw(store).hex()
    file.write_text(file.read_text().replace(before, after))
    with pytest.raises(KeyProblem, match="is damaged") as caught:
        store.own()
    assert key not in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_host_key_that_lost_a_bit_is_refused(store: KeyStore) -> None:
    file = store.directory / "host.json"
    key = raw(store).hex()
    other = key[:-1] + ("0" if key[-1] != "0" else "1")
    file.write_text(file.read_text().replace(key, other))
    # Bits that X25519 does not look at may change; the last digit's are looked at.
    with pytest.raises(KeyProblem, match="do not belong together"):
        store.own()
    file.write_text(file.read_text().replace(other, "xyz"))
    with pytest.raises(KeyProblem, match="is not 64 digits"):
        store.own()
    file.write_text("")
    with pytest.raises(KeyProblem, match="is damaged"):
        store.own()


def test_a_lost_host_key_is_not_made_anew_while_devices_are_paired(store: KeyStore) -> None:
    store.add(paired())
    (store.directory / "host.json").unlink()
    with pytest.raises(KeyProblem, match="is missing, and devices are paired with it"):
        store.own()
    assert not (store.directory / "host.json").exists()


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ('"shoe"', '"toaster"', "Invalid enum value"),
        ('"SH-1"', '"SH-2"', "it is that of the device 'SH-2'"),
        ('"0001', '"zz01', "is not 64 digits"),
        ('"0001', '"1001', "do not belong together"),
        ('"maker"', '"made"', "damaged"),
        ("}", "", "damaged"),
    ],
)
def test_a_damaged_device_is_refused_and_named(
    store: KeyStore, before: str, after: str, what: str
) -> None:
    store.add(paired("SH-0"))
    store.add(paired("SH-1"))
    file = store.directory / "devices/SH-1.json"
    assert before in file.read_text()
    file.write_text(file.read_text().replace(before, after))
    for look in (store.devices, lambda: store.find("SH-1")):
        with pytest.raises(KeyProblem, match=what) as caught:
            look()
        assert str(file) in str(caught.value)
    assert store.find("SH-0") == paired("SH-0")


def test_bytes_that_are_no_text_are_damage(store: KeyStore) -> None:
    store.add(paired())
    (store.directory / "devices/SH-1.json").write_bytes(b"\xff\xfe\0")
    with pytest.raises(KeyProblem, match="is damaged"):
        store.devices()


# --- crashes and others -----------------------------------------------------------------------


@pytest.mark.parametrize("step", ["fsync", "replace", "write"])
def test_a_write_that_is_cut_short_leaves_the_old(
    store: KeyStore, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    store.add(paired())

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path if step == "replace" else os, step, fail)
        with pytest.raises(KeyProblem, match="cannot be written: no space left"):
            store.add(paired(key=bytes(32)), replace=True)
        with pytest.raises(KeyProblem, match="cannot be written: no space left"):
            store.check_room()
    assert store.devices() == [paired()]
    store.add(paired(key=bytes(32)), replace=True)
    store.check_room()
    assert store.devices() == [paired(key=bytes(32))]
    assert [file.name for file in (store.directory / "devices").iterdir()] == ["SH-1.json"]


def test_a_line_of_history_that_was_cut_short_stays_alone(store: KeyStore) -> None:
    store.add(paired("SH-1"))
    history = store.directory / "history.jsonl"
    history.write_bytes(history.read_bytes() + b'{"what":"pai')
    store.add(paired("SH-2"))
    lines = history.read_text().splitlines()
    assert (len(lines), json.loads(lines[2])["serial"]) == (3, "SH-2")


def test_what_others_put_there_is_no_device(store: KeyStore) -> None:
    store.add(paired())
    (store.directory / "devices/SH-1.json~").write_text("an editor's copy")
    assert store.devices() == [paired()]


def test_everything_is_synced_before_it_counts(
    store: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []
    fsync, replace = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        steps.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        fsync(descriptor)

    def replaced(self: Path, target: Path) -> Path:
        steps.append(f"-> {target.name}")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    store.add(paired())
    assert steps == [
        "keys",
        "SH-1.json.new",
        "history.jsonl",
        "keys",
        "-> SH-1.json",
        "devices",
    ]


def test_a_store_that_is_held_by_another_is_waited_for_and_no_longer(
    store: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_store, "LOCK_TIMEOUT", 0.05)
    with changing(store), pytest.raises(KeyProblem, match="another program changes the keys"):
        store.add(paired())
    store.add(paired())


def _make(place: str, number: int) -> str:
    store = KeyStore(Path(place))
    key = store.own().private_bytes_raw().hex()
    for count in range(5):
        store.add(paired(f"P{number}-{count}"))
    return key


def test_several_processes_at_once(tmp_path: Path) -> None:
    place = tmp_path / "keys"
    place.mkdir(mode=0o700)
    context = multiprocessing.get_context("spawn")
    with context.Pool(3) as pool:
        keys = pool.starmap(_make, [(str(place), number) for number in range(3)])
        pool.close()
        pool.join()
    assert len(set(keys)) == 1
    store = KeyStore(place)
    assert (raw(store).hex(), len(store.devices())) == (keys[0], 15)
    assert len((place / "history.jsonl").read_text().splitlines()) == 15


def test_an_own_key_that_another_made_first_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "keys"
    place.mkdir(mode=0o700)
    first: list[bytes] = []
    flock = fcntl.flock

    def flock_after_another(lock: Any, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        other = KeyStore(place)
        first.append(raw(other))
        other.add(paired())
        flock(lock, operation)

    monkeypatch.setattr(fcntl, "flock", flock_after_another)
    store = KeyStore(place)
    own = store.own()
    assert isinstance(own, X25519PrivateKey)
    assert ([own.private_bytes_raw()], store.devices()) == (first, [paired()])
    files = sorted(file.name for file in place.iterdir())
    assert files == ["devices", "history.jsonl", "host.json", "lock"]
