"""A disk whose calls fail as a test says."""

import errno
from collections.abc import Mapping
from pathlib import Path

from controller.audit.files import Disk


class FaultyDisk(Disk):
    """Raises what `fails` has for a call, before the call; "second segment": after its rename."""

    def __init__(
        self, fails: Mapping[str, BaseException] | None = None, *, power_off_at: int = -1
    ) -> None:
        self.fails = dict(fails or {})
        self.short = 0
        """The most bytes that a write writes; 0: all."""
        self.calls: list[str] = []
        self._power_off_at = power_off_at
        """The power is lost before the call of this number."""

    def _may(self, call: str, file: Path | None = None) -> None:
        if len(self.calls) == self._power_off_at:
            raise OSError(errno.EIO, "power is gone")
        if call in self.fails:
            raise self.fails[call]
        self.calls.append(call if file is None else f"{call} {file.name}")

    def create(self, file: Path) -> int:
        self._may("create", file)
        return super().create(file)

    def write(self, fd: int, data: bytes, offset: int) -> int:
        self._may("write")
        return super().write(fd, data[: self.short or None], offset)

    def sync(self, fd: int) -> None:
        self._may("sync")
        super().sync(fd)

    def rename(self, old: Path, new: Path) -> None:
        self._may("rename", new)
        super().rename(old, new)

    def sync_directory(self, directory: Path) -> None:
        self._may("sync directory")
        super().sync_directory(directory)
        if "second segment" in self.fails and (directory / "00000002.seg").exists():
            raise self.fails["second segment"]
