"""A real disk that fills up; `make torture` plays whole tables on full and broken ones."""

from pathlib import Path

from tests.conftest import require
from tests.support.system.disks import can_mount, run_scenario


def test_a_log_fills_a_disk_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    require(can_mount(), "root, and unshare(1), to mount a small disk")
    counted = run_scenario("segments", tmp_path)
    assert counted["full disks"] == 2
    assert counted["records"] > 50
