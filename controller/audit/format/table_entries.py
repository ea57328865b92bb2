"""Data of the entries in which a table reports on its own record."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

NOT_RECORDED: Final = "not_recorded"
"""`what` of a `link` entry with counts of entries that were not recorded."""

HOST_STALLED: Final = "host_stalled"
"""`what` of a `link` entry: the controller did not run for a while."""

DISK_FULL: Final = "disk_full"
"""`what` of a `fault` entry: the next segment of the record cannot be made."""


class UnrecordedData(Struct, frozen=True):
    """Data of a `link` entry: how many entries were not recorded, and when."""

    what: str
    count: int
    """Entries about links."""
    others: int
    """Other entries of the controller."""
    first: int
    """UTC of the first of them, in microseconds."""
    last: int
    devices: dict[str, int]
    """Entries about links by serial number."""


class StalledData(Struct, frozen=True):
    """Data of a `link` entry: the controller did not run, once or more often since the last one."""

    what: str
    count: int
    """Stalls of half a second or more."""
    since: int
    """UTC of the beginning of the first of them, in microseconds."""
    longest_ms: int
    """Duration of the longest one in milliseconds."""
    total_ms: int
    """Duration of all of them in milliseconds."""
    processor_ms: int
    """Processor time that the controller's event loop itself used in all of them."""


class DiskFullDetail(Struct, frozen=True):
    """Detail of a `fault` entry: the next segment of the record cannot be made."""

    problem: str
    """The error of the operating system."""
    bytes: int
    """Bytes that can still be recorded."""
    minutes: int
    """Minutes of play for which they are enough, as an estimate."""
