"""Paired devices and keys of a store."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from drivers.keys import KeyStore, PairedDevice
from firmware_protocol.messages import DeviceClass

AT = "2026-07-29T17:30:00Z"


def paired(serial: str = "SH-1", key: bytes = bytes(range(32))) -> PairedDevice:
    return PairedDevice(DeviceClass.SHOE, serial, "Maker", "Model", key, AT, ("Ann", "Bob"))


def raw(store: KeyStore) -> bytes:
    return store.own().private_bytes_raw()


@contextmanager
def changing(store: KeyStore) -> Iterator[None]:
    """Hold the lock of a store, as another program does while it changes the keys."""
    with (store.directory / "lock").open("rb+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
