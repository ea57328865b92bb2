"""Runs `holecard devices init`, `list`, `show`, `forget` and `ports`."""

from __future__ import annotations

import argparse
import sys

from controller.commands import show
from controller.errors import EXIT_NO, UsageProblem
from controller.terminal import (
    PromptCancelled,
    keys_directory_of,
    two_people,
    usage_errors,
    utc_now,
)
from drivers.keys import KeyStore, PairedDevice
from drivers.ports import OWN_BACKEND, PortRefused, serial_ports, usb_devices
from firmware_protocol.tablelink import fingerprint_of, fingerprint_text


def device_line(paired: PairedDevice) -> str:
    """A paired device in one line."""
    return (
        f"{paired.device_class.name.lower():<8} {paired.serial:<20} {paired.fingerprint}  "
        f"{paired.maker} {paired.model}, {paired.paired_at} by {' and '.join(paired.by)}"
    )


def device_json(paired: PairedDevice) -> dict[str, object]:
    """A paired device for JSON output."""
    return {
        "class": paired.device_class.name.lower(),
        "serial": paired.serial,
        "maker": paired.maker,
        "model": paired.model,
        "fingerprint": paired.fingerprint,
        "paired_at": paired.paired_at,
        "by": list(paired.by),
    }


def init_keys(args: argparse.Namespace) -> int:
    """Create the directory and the host's key."""
    with usage_errors():
        place = keys_directory_of(args)
        own = _own_fingerprint(KeyStore.create(place))
    show(args, {"keys": str(place), "host": own}, f"made {place}\nthis host's key: {own}")
    return 0


def list_devices(args: argparse.Namespace) -> int:
    """Print all paired devices."""
    with usage_errors():
        store = KeyStore(keys_directory_of(args))
        own, devices = _own_fingerprint(store), store.devices()
    found = {"host": own, "devices": [device_json(one) for one in devices]}
    lines = [f"this host's key: {own}", *map(device_line, devices)]
    show(args, found, "\n".join(lines if devices else [*lines, "no device is paired"]))
    return 0


def show_device(args: argparse.Namespace) -> int:
    """Print what is stored about one device."""
    with usage_errors():
        paired = _find(KeyStore(keys_directory_of(args)), args.serial)
    rows = {
        "class": paired.device_class.name.lower(),
        "maker": paired.maker,
        "model": paired.model,
        "serial number": paired.serial,
        "key": paired.fingerprint,
        "paired": f"{paired.paired_at} by {' and '.join(paired.by)}",
    }
    show(args, device_json(paired), "\n".join(f"{name:<14} {text}" for name, text in rows.items()))
    return 0


def forget(args: argparse.Namespace) -> int:
    """Delete a device's key from the store."""
    with usage_errors():
        store = KeyStore(keys_directory_of(args))
        paired = _find(store, args.serial)
        try:
            by = two_people(args)
        except PromptCancelled:
            print("\nnot forgotten: the question was not answered", file=sys.stderr)
            return EXIT_NO
        store.forget(paired.serial, by, utc_now())
    show(args, device_json(paired), f"forgotten: {device_line(paired)}")
    return 0


def _find(store: KeyStore, serial: str) -> PairedDevice:
    paired = store.find(serial)
    if paired is None:
        known = ", ".join(one.serial for one in store.devices())
        raise UsageProblem("SERIAL", f"{serial} is not paired", known or "none is paired yet")
    return paired


def _own_fingerprint(store: KeyStore) -> str:
    return fingerprint_text(fingerprint_of(store.own()))


def show_ports(args: argparse.Namespace) -> int:
    """Print the serial ports and USB devices that are connected."""
    if not args.usb:
        raise UsageProblem("--usb", "is empty", "NAME or NAME=ARGUMENT of a USB backend")
    found = serial_ports()
    try:
        plugged = usb_devices(args.usb)
        if not plugged and args.usb != OWN_BACKEND:
            print(f"no USB devices are found through {args.usb}", file=sys.stderr)
        found += plugged
    except PortRefused as problem:
        if args.usb != OWN_BACKEND:
            raise UsageProblem("--usb", str(problem)) from None
        print(f"no USB devices are listed: {problem}", file=sys.stderr)
    rows = [
        {
            "port": str(one.address),
            "path": one.path,
            "serial": one.serial,
            "maker": one.maker,
            "model": one.model,
        }
        for one in found
    ]
    lines = []
    for one in found:
        path = None if one.path and str(one.address).endswith(one.path) else one.path
        lines.append("  ".join(filter(None, (str(one.address), path, one.maker, one.model))))
    show(args, {"ports": rows}, "\n".join(lines) or "nothing is plugged in")
    return 0
