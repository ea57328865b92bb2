"""A disk whose calls fail as a test says."""

from __future__ import annotations

from pathlib import Path

from controller.audit.files import Disk


class FaultyDisk(Disk):
    """Raises what `fails` has for a call, before the call; "second segment": after its rename."""

    def __init__(self, **fails: BaseException) -> None:
        self.fails: dict[str, BaseException] = dict(fails)
        self.short = 0
        """The most bytes that a write writes; 0: all."""

    def _may(self, call: str) -> None:
        if call in self.fails:
            raise self.fails[call]

    def create(self, file: Path) -> int:
        self._may("create")
        return super().create(file)

    def write(self, fd: int, data: bytes, offset: int) -> int:
        self._may("write")
        return super().write(fd, data[: self.short or None], offset)

    def sync(self, fd: int) -> None:
        self._may("sync")
        super().sync(fd)

    def rename(self, old: Path, new: Path) -> None:
        self._may("rename")
        super().rename(old, new)

    def sync_directory(self, directory: Path) -> None:
        super().sync_directory(directory)
        if (directory / "00000002.seg").exists():
            self._may("second segment")
