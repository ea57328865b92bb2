"""A disk one of whose calls is interrupted."""

from pathlib import Path

from controller.audit.files import RealDisk


class Interrupted(RealDisk):
    """KeyboardInterrupt in one of its calls."""

    def __init__(self) -> None:
        self.at = ""

    def sync(self, fd: int) -> None:
        if self.at == "sync":
            raise KeyboardInterrupt
        super().sync(fd)

    def sync_directory(self, directory: Path) -> None:
        super().sync_directory(directory)
        if self.at == "rename" and (directory / "00000002.seg").exists():
            raise KeyboardInterrupt
