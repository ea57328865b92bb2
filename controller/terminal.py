"""Problems of keys and ports as mistakes of the user, and how a paired device is shown."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from controller.errors import UsageProblem
from drivers.keys.store import KeyProblem, Paired, keys_directory
from drivers.ports.address import AddressProblem
from drivers.ports.port import PortRefused


@contextmanager
def mistakes() -> Iterator[None]:
    """A problem of keys, ports or addresses as the user's mistake that it is."""
    try:
        yield
    except KeyProblem as problem:
        raise UsageProblem(problem.where, problem.what, problem.allowed) from None
    except AddressProblem as problem:
        raise UsageProblem("PORT", problem.what, problem.allowed) from None
    except PortRefused as problem:
        raise UsageProblem("PORT", str(problem)) from None


def keys_place(args: argparse.Namespace) -> Path:
    """The directory of the keys."""
    if args.keys == "":
        raise UsageProblem("--keys", "is empty", "a directory")
    return keys_directory(None if args.keys is None else Path(args.keys))


def utc() -> str:
    """Now, as the store keeps it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def line(paired: Paired) -> str:
    """A paired device in one line."""
    return (
        f"{paired.device_class.name.lower():<8} {paired.serial:<20} {paired.fingerprint}  "
        f"{paired.maker} {paired.model}, {paired.paired_at} by {' and '.join(paired.by)}"
    )


def as_json(paired: Paired) -> dict[str, object]:
    """A paired device as JSON has it."""
    return {
        "class": paired.device_class.name.lower(),
        "serial": paired.serial,
        "maker": paired.maker,
        "model": paired.model,
        "fingerprint": paired.fingerprint,
        "paired_at": paired.paired_at,
        "by": list(paired.by),
    }


def show(args: argparse.Namespace, found: object, text: str) -> None:
    """Print the one or the other. The name of a directory need not be UTF-8."""
    readable = text.encode(errors="surrogateescape").decode(errors="replace")
    print(json.dumps(found, indent=2) if args.json else readable)
