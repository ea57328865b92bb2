"""The whole daemon on a disk that fills up, is remounted read-only, or breaks.

Each scenario runs in a mount namespace of its own, as root:

    python -m tests.support.system.disks full FOLDER
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from controller.audit.errors import DiskFull, LogFailed
from controller.audit.files import Disk
from controller.audit.format.segments import spare_file
from controller.audit.read.reader import records
from controller.audit.verify import verify
from hil.table.robots import ApiProblem, Console, Robot, RobotOptions, Unreachable, open_console
from hil.table.setup import FEW, DidNotServe, Stage, example, staged, until
from tests.support.audit.record.table import SMALL, begun, note
from tests.support.paths import ROOT
from tests.support.table.simulated.serving import Policy

MIB: Final = 1 << 20
PATIENCE: Final = 300.0
"""Seconds to fill a segment of one MiB, on a busy machine."""
RETRIES: Final = 3.0
"""Seconds in which a stopped table retries its record more than once."""
ONE_SEGMENT: Final = 1600
"""KiB of a disk with room for one segment and little more."""
ENOUGH: Final = 64 * 1024
DISK_FAILS: Final = 74
"""Exit code of a daemon whose disk fails."""


class Wrong(AssertionError):
    """A daemon did something else than it must."""


def check(true: object, what: str) -> None:
    if not true:
        raise Wrong(what)


# --- from outside -----------------------------------------------------------------------------


def can_mount() -> bool:
    """Whether this process may mount file systems, in a namespace of its own."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    tried = subprocess.run(
        ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False
    )
    return tried.returncode == 0


def can_mount_images() -> bool:
    """Whether it may also mount a file as a disk."""
    tools = all(shutil.which(name) for name in ("mkfs.ext4", "e2fsck", "fallocate"))
    return tools and Path("/dev/loop-control").exists() and can_mount()


def run_scenario(name: str, folder: Path) -> dict[str, int]:
    """Run a scenario in a child process; returns its counts."""
    ended = subprocess.run(
        ["unshare", "-m", sys.executable, "-m", "tests.support.system.disks", name, str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE,
        check=False,
    )
    if ended.returncode:
        raise Wrong(f"{name}: {ended.stdout[-2000:]}{ended.stderr[-6000:]}")
    counted: dict[str, int] = json.loads(ended.stdout.splitlines()[-1])
    return counted


# --- disks ------------------------------------------------------------------------------------


def _run(*command: str | Path, codes: tuple[int, ...] = (0,)) -> None:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    check(ended.returncode in codes, f"{command}: {ended.returncode} {ended.stderr}")


class MemoryDisk:
    """A small file system in memory."""

    def __init__(self, place: Path, kib: int) -> None:
        self.place = place
        place.mkdir()
        _run("mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", place)

    def fill(self) -> None:
        """Leave no space."""
        with (self.place / "ballast").open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))

    def resize(self, kib: int) -> None:
        _run("mount", "-o", f"remount,size={kib}k", self.place)


class ImageDisk:
    """An ext4 file system in a sparse file."""

    def __init__(self, place: Path, image: Path, mib: int) -> None:
        self.place = place
        self._image = image
        place.mkdir()
        with image.open("wb") as file:
            file.truncate(mib * MIB)
        _run("mkfs.ext4", "-q", image)
        self._mount()

    def _mount(self) -> None:
        _run("mount", "-o", "loop,errors=remount-ro", self._image, self.place)

    def abort(self) -> None:
        """What the kernel does at an error: remount it read-only."""
        _run("mount", "-o", "remount,abort", self.place)

    def dig(self) -> None:
        """Give the space of all zeros back, as a thin disk may: then writing there needs space."""
        os.sync()
        _run("fallocate", "--dig-holes", self._image)

    def repair(self) -> None:
        _run("umount", self.place)
        _run("e2fsck", "-fp", self._image, codes=(0, 1))
        self._mount()


# --- a table ----------------------------------------------------------------------------------


@asynccontextmanager
async def table_on(place: Path, folder: Path) -> AsyncIterator[Stage]:
    """A table whose record is on this disk, in segments of one MiB."""
    async with staged(folder / "table", FEW) as stage:
        stage.write(example("blackjack-1"))
        file, usual = stage.daemon.file, f'"{stage.house.record}"'
        text = file.read_text()
        check(text.count(usual) == 1, "the table file names its record once")
        record = f'"{place / "record"}"\nsegment_mib = 1'
        file.write_text(text.replace(usual, record))
        yield stage


async def play(stage: Stage, screen: Console, seen: list[int]) -> None:
    """Play on whenever the table works, until the daemon ends; `seen` gets acknowledged seqs."""
    screen.watched.append(lambda view: seen.append(view.record.seq))
    robot = Robot(stage, screen, Policy(), RobotOptions(buttons=True, dwell_ms=0))
    while True:
        try:
            await robot.play(lambda shown: False)
        except Unreachable:
            return
        except (ApiProblem, TimeoutError):
            continue  # it is stopped


@asynccontextmanager
async def playing(stage: Stage, seen: list[int]) -> AsyncIterator[Console]:
    async with open_console(stage.control) as screen:
        task = asyncio.create_task(play(stage, screen, seen))
        try:
            yield screen
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def rounds(screen: Console, count: int) -> None:
    """So many more rounds are played."""
    wanted = screen.view.state.round + count
    await until(lambda: screen.view.state.round >= wanted, PATIENCE)


def check_record(record: Path, seen: list[int]) -> int:
    """All that was acknowledged is there, and the record is valid; returns its length."""
    there = {one.seq for _, one in records(record)}
    check(max(seen) in there, f"record {max(seen)} was shown, and is gone")
    findings = [str(one) for one in verify(record).findings]
    check(not findings, f"the record is wrong: {findings}")
    return len(there)


def kinds(record: Path) -> list[str]:
    return [one.kind for _, one in records(record)]


# --- scenarios --------------------------------------------------------------------------------


@asynccontextmanager
async def _full(folder: Path) -> AsyncIterator[tuple[MemoryDisk, Stage, list[int], Console]]:
    """A table that has stopped at the end of the only segment that its disk has room for. It was
    announced before, and the table stays stopped."""
    disk, seen = MemoryDisk(folder / "disk", ONE_SEGMENT), [0]
    async with table_on(disk.place, folder) as stage:
        await stage.daemon.start()
        async with playing(stage, seen) as screen:
            await until(lambda: screen.view.record.full != "", PATIENCE)
            check(not screen.view.stopped, "it is announced after it has stopped")
            await until(lambda: "no room for the next segment" in screen.view.stopped, PATIENCE)
            stood = screen.view.record.seq
            await asyncio.sleep(RETRIES)
            check(screen.view.stopped, "a full disk was recorded to for a moment")
            check(screen.view.record.seq == stood, "a stopped table has recorded")
            yield disk, stage, seen, screen


async def full(folder: Path) -> dict[str, int]:
    """The disk fills up, and the table goes on by itself when there is room."""
    async with _full(folder) as (disk, stage, seen, screen):
        disk.resize(ENOUGH)
        await until(lambda: not screen.view.stopped, PATIENCE)
        await until(lambda: screen.view.record.full == "", PATIENCE)
        await rounds(screen, 2)
        check(await stage.daemon.stop() == 0, "it did not end regularly")
        length = check_record(disk.place / "record", seen)
    return {"full disks": 1, "records": length}


async def ended_full(folder: Path) -> dict[str, int]:
    """A table on a full disk is stopped, and started while the disk is full."""
    async with _full(folder) as (disk, stage, seen, _):
        record = disk.place / "record"
        check(await stage.daemon.stop() == 0, "a table on a full disk did not end regularly")
        check(kinds(record)[-2:] == ["closed", "checkpoint"], f"it ended so: {kinds(record)[-5:]}")
        check_record(record, seen)
        refused = await _start_fails(stage)
        check(refused in (None, DISK_FAILS), f"a start on a full disk ended with {refused}")
        disk.resize(ENOUGH)
        length = await _goes_on(stage, record, seen, starts=refused is not None)
    return {"full disks": 1, "records": length}


async def read_only(folder: Path) -> dict[str, int]:
    """The disk is remounted read-only in a round."""
    memory = MemoryDisk(folder / "memory", 96 * 1024)
    disk = ImageDisk(folder / "disk", memory.place / "image", 64)
    record, seen = disk.place / "record", [0]
    async with table_on(disk.place, folder) as stage:
        await stage.daemon.start()
        async with playing(stage, seen) as screen:
            await rounds(screen, 2)
            disk.abort()
            await until(lambda: not stage.daemon.running, PATIENCE)
        check(await stage.daemon.stop() == DISK_FAILS, "a read-only disk has another exit code")
        refused = await _start_fails(stage)
        check(refused == DISK_FAILS, f"a start on a read-only disk ended with {refused}")
        disk.repair()
        length = await _goes_on(stage, record, seen, starts=True)
    return {"read-only disks": 1, "records": length}


async def broken(folder: Path) -> dict[str, int]:
    """The device behind the file system has no more space: syncs fail with EIO."""
    memory = MemoryDisk(folder / "memory", 24 * 1024)
    disk = ImageDisk(folder / "disk", memory.place / "image", 64)
    record, seen = disk.place / "record", [0]
    async with table_on(disk.place, folder) as stage:
        await stage.daemon.start()
        async with playing(stage, seen) as screen:
            await rounds(screen, 1)
            memory.fill()
            await until(lambda: not stage.daemon.running, PATIENCE)
        check(await stage.daemon.stop() == DISK_FAILS, "a broken disk has another exit code")
        memory.resize(256 * 1024)
        disk.repair()
        length = await _goes_on(stage, record, seen, starts=True)
    return {"broken disks": 1, "records": length}


async def _start_fails(stage: Stage) -> int | None:
    """The exit code of a start that fails; None if it serves."""
    try:
        await stage.daemon.start()
    except DidNotServe as problem:
        return problem.code
    return None


async def _goes_on(stage: Stage, record: Path, seen: list[int], *, starts: bool) -> int:
    """The disk is in order again: two more rounds are played, and the table ends."""
    if starts:
        await stage.daemon.start()
    async with asyncio.timeout(PATIENCE):
        while not await _plays_on(stage, seen):
            pass
    check(await stage.daemon.stop() == 0, "it did not end regularly")
    return check_record(record, seen)


async def _plays_on(stage: Stage, seen: list[int]) -> bool:
    try:
        async with playing(stage, seen) as screen:
            await rounds(screen, 2)
    except ApiProblem:
        return False  # it has not retried its record yet
    return True


async def segments(folder: Path) -> dict[str, int]:
    """A log alone, in small segments: quick."""
    disk = MemoryDisk(folder / "disk", 96)
    record, count = disk.place / "record", 0
    log = begun(record, disk=Disk())
    for larger in (192, 384):  # KiB of the disk from then on
        with suppress(DiskFull):
            while True:
                log.write([note(f"{count}", 500)])
                count += 1
        check(log.room().problem == os.strerror(errno.ENOSPC), "the log does not say so")
        check(not spare_file(record).exists(), "a spare that does not fit takes the rest")
        disk.resize(larger)
    log.write([note("after", 500)])
    log.close()
    check(kinds(record)[-2:] == ["closed", "checkpoint"], f"it ended so: {kinds(record)[-5:]}")
    check(kinds(record).count("note") == count + 1, "a record is missing, or one too many")
    return {"full disks": 2, "records": check_record(record, [count])}


async def unwritten(folder: Path) -> dict[str, int]:
    """A sync fails, and the page cache keeps what the disk does not have. The next start reads the
    disk, and goes on without what was not acknowledged."""
    memory = MemoryDisk(folder / "memory", 24 * 1024)
    disk = ImageDisk(folder / "disk", memory.place / "image", 64)
    record = disk.place / "record"
    log = begun(record, disk=Disk(), size=16 * SMALL)
    for number in range(20):
        log.write([note(f"{number}", 500)])
    acknowledged = log.sign().seq
    disk.dig()
    memory.fill()
    failed = None
    try:
        for number in range(20, 80):
            acknowledged = log.write([note(f"{number}", 3000)])[0].seq
    except LogFailed as problem:
        failed = problem.first
    log.release()
    check(isinstance(failed, OSError), f"no sync has failed, but {failed}")
    memory.resize(256 * 1024)
    begun(record, disk=Disk()).close()
    length = check_record(record, [acknowledged])
    return {"failed syncs": 1, "records": length}


SCENARIOS: Final[dict[str, Callable[[Path], Awaitable[dict[str, int]]]]] = {
    "full": full,
    "ended_full": ended_full,
    "read_only": read_only,
    "broken": broken,
    "segments": segments,
    "unwritten": unwritten,
}


async def _main(name: str, folder: Path) -> None:
    print(json.dumps(await SCENARIOS[name](folder)))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], Path(sys.argv[2])))
