"""A real disk that fills up; `make torture` plays whole tables on full and broken ones."""

from pathlib import Path

from tests.conftest import require
from tests.support.system.disks import can_mount, can_mount_images, run_scenario


def test_a_log_fills_a_disk_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    require(can_mount(), "root, and unshare(1), to mount a small disk")
    counted = run_scenario("segments", tmp_path)
    assert counted["full disks"] == 2
    assert counted["records"] > 50


def test_a_start_after_a_failed_sync_reads_what_the_disk_has(tmp_path: Path) -> None:
    require(can_mount_images(), "root, loop devices and e2fsprogs, to mount a disk without space")
    assert run_scenario("unwritten", tmp_path)["failed syncs"] == 1
