"""The machine of a table: users, udev, programs that probe, clock, service, software, disk."""

import grp
import os
import pwd
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from controller.doctor import host, record
from controller.doctor.check import Machine
from controller.doctor.host import RULES, UNIT, deployed, numbered
from controller.doctor.record import Mount, bytes_a_day, mount_of, mounts
from tests.support.daemon.doctor_house import NOON, House, as_installed, clock

MOUNTS = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw,discard
30 27 0:33 / {place} rw,relatime - {kind} none {options}
"""


def group(name: str, number: int, *members: str) -> grp.struct_group:
    return grp.struct_group((name, "x", number, list(members)))


def as_somebody(made: House, *groups: grp.struct_group, within: tuple[int, ...] = ()) -> None:
    made.machine = replace(
        made.machine,
        uid=4711,
        user="house",
        groups=frozenset(within),
        every_group=lambda: list(groups),
    )


@pytest.mark.parametrize(("scope", "verdict"), [("0\n", "warning"), ("1\n", "ok"), ("3\n", "ok")])
def test_who_may_debug_the_table_while_it_starts(made: House, scope: str, verdict: str) -> None:
    made.elsewhere(**{"/proc/sys/kernel/yama/ptrace_scope": scope})
    check = made.check("debugging")
    assert check.verdict == verdict
    if verdict == "warning":
        assert "sysctl -w kernel.yama.ptrace_scope=1" in str(check.problems[0].commands)


def test_a_kernel_without_yama_is_not_checked(made: House) -> None:
    made.elsewhere()
    assert made.check("debugging").verdict == "skipped"


# --- users and groups -------------------------------------------------------------------------


def test_root_sees_less_than_the_tables_own_user(made: House) -> None:
    made.machine = replace(made.machine, uid=0, user="root")
    problem = made.expect("user", grade="warning")
    if made.keys.stat().st_uid == 0:
        assert "a user of its own" in problem.mend
    else:
        assert problem.commands[0].startswith("runuser -u ")
    as_somebody(made)
    assert made.check("user").note == "house"


def test_a_user_without_a_shell_is_helped_by_root(made: House) -> None:
    """What it is to own, it makes itself, or it is given."""
    as_somebody(made)
    made.machine = replace(made.machine, login=False)
    assert made.check("user").note.endswith("no shell: commands are written for root")
    made.edit('"run/record"', '"far/record"')
    made.expect("record's place", commands=(f"install -d -o house -m 700 {made.place / 'far'}",))
    made.people.unlink()
    case = made.case()
    ours = f"runuser -u house -- {made.machine.holecard}"
    assert case.ours("keys", "show") == f"{ours} keys show"
    assert case.admin("udevadm", "trigger") == "udevadm trigger"


@pytest.mark.parametrize(
    ("shell", "login"), [("/usr/sbin/nologin", False), ("/bin/false", False), ("/bin/sh", True)]
)
def test_who_has_a_shell(monkeypatch: pytest.MonkeyPatch, shell: str, login: bool) -> None:
    entry = pwd.struct_passwd(("house", "x", 4711, 4711, "", "/nowhere", shell))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: entry)
    here = Machine.here()
    assert (here.user, here.login) == ("house", login)


def test_a_directory_of_another_user_is_looked_at_as_that_one(
    made: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "owner_of", lambda place: 4711)
    made.machine = replace(made.machine, uid=0, user="root")
    made.expect(
        "user", commands=(f"runuser -u 4711 -- {made.machine.holecard} doctor {made.file}",)
    )


def test_a_user_in_no_group(made: House) -> None:
    as_somebody(made, group("dialout", 20), group("holecard", 998))
    assert [one.commands for one in made.check("groups").problems] == [
        ("sudo usermod -aG dialout house",),
        ("sudo usermod -aG holecard house",),
    ]


def test_a_group_that_is_not_there(made: House) -> None:
    as_somebody(made, group("dialout", 20), within=(20,))
    assert made.problem("groups").commands == (
        "sudo groupadd --system holecard",
        "sudo usermod -aG holecard house",
    )


def test_a_group_since_the_last_login(made: House) -> None:
    every = (group("dialout", 20, "house"), group("holecard", 998))
    as_somebody(made, *every, within=(998,))
    assert made.problem("groups").commands == ("newgrp dialout",)
    as_somebody(made, *every, within=(20, 998))
    assert made.check("groups").verdict == "ok"


# --- udev and what opens ports ----------------------------------------------------------------


def test_a_machine_without_udev(made: House) -> None:
    made.elsewhere()
    assert made.check("udev").verdict == made.check("service").verdict == "skipped"


def test_rules_that_are_not_installed(made: House) -> None:
    made.elsewhere(**{"/run/udev/control": "", "/etc/udev/rules.d/other": ""})
    problem = made.expect("udev", exactly="the udev rules are not installed")
    assert [one.rpartition("udevadm ")[2] for one in problem.commands[1:]] == [
        "control --reload",
        "trigger",
    ]
    made.shell(problem.commands[0])
    found = made.check("udev")
    assert (found.verdict, found.note) == ("ok", f"/etc/udev/rules.d/{RULES}")


def test_rules_of_another_version(made: House) -> None:
    ours = deployed(RULES).read_text()
    made.elsewhere(**{"/run/udev/control": "", f"/usr/lib/udev/rules.d/{RULES}": ours})
    assert made.check("udev").verdict == "ok"
    made.put(f"/etc/udev/rules.d/{RULES}", ours.replace("1", "2"))
    old = made.expect("udev", exactly=f"/etc/udev/rules.d/{RULES} is not the current version")
    made.shell(old.commands[0])
    assert made.check("udev").verdict == "ok"


@pytest.mark.parametrize("name", ["ModemManager", "brltty"])
def test_programs_that_open_ports(made: House, name: str) -> None:
    made.elsewhere(**{"/proc/1/comm": "systemd\n", "/proc/812/comm": f"{name}\n"})
    problem = made.expect("probing", begins=f"{name} runs")
    assert problem.commands[0].endswith(f"systemctl disable --now {name}.service")
    made.put("/proc/812/comm", "cron\n")
    assert made.check("probing").verdict == "ok"


def test_a_program_that_the_rules_hold_off(made: House) -> None:
    ours = deployed(RULES).read_text()
    made.elsewhere(**{"/proc/8/comm": "ModemManager\n", f"/etc/udev/rules.d/{RULES}": ours})
    assert made.check("probing").verdict == "ok"


# --- the clock --------------------------------------------------------------------------------


def test_a_clock_that_follows_nobody(made: House) -> None:
    assert made.check("clock").verdict == "ok"
    made.elsewhere()
    made.machine = replace(made.machine, clock=clock(NOON, "unsynced"))
    assert made.problem("clock").commands[0].endswith("apt-get install chrony")
    made.machine = replace(made.machine, which=lambda name: f"/usr/bin/{name}")
    assert made.problem("clock").commands[0].endswith("chronyc makestep")
    (made.root / "run/systemd/system").mkdir(parents=True)
    made.machine = replace(made.machine, which={"timedatectl": "there"}.get)
    assert made.problem("clock").commands[0].endswith("timedatectl set-ntp true")


def test_a_clock_of_which_only_systemd_says_something(made: House) -> None:
    made.elsewhere()
    made.machine = replace(made.machine, clock=clock(NOON, "unknown"))
    assert "it is unknown" in made.problem("clock").what
    made.put("/run/systemd/timesync/synchronized", "")
    assert made.check("clock").verdict == "ok"


# --- the service ------------------------------------------------------------------------------


def test_a_unit_that_is_not_installed(made: House) -> None:
    as_installed(made)
    missing, enabled = made.check("service").problems
    assert missing.what == f"{UNIT} is not installed"
    assert missing.commands[1].endswith("systemctl daemon-reload")
    assert enabled.commands[0].endswith("systemctl enable --now holecard@first.service")
    made.shell(missing.commands[0])
    assert made.check("service").problems == (enabled,)
    wants = made.root / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir()
    (wants / "holecard@first.service").symlink_to(deployed(UNIT))
    assert made.check("service").verdict == "ok"


def test_a_unit_of_another_version(made: House) -> None:
    text = deployed(UNIT).read_text()
    as_installed(made, **{f"/etc/systemd/system/{UNIT}": text.replace("notify", "simple")})
    old, _ = made.check("service").problems
    assert old.what == f"/etc/systemd/system/{UNIT} is not the current version"
    made.shell(old.commands[0])
    assert [one.what.partition(" ")[2] for one in made.check("service").problems] == [
        "does not start at boot"
    ]


def test_a_file_that_no_service_reads(made: House) -> None:
    made.elsewhere(**{"/run/systemd/system/x": ""})
    assert made.check("service").verdict == "skipped"


def test_the_unit_s_directory(made: House) -> None:
    as_installed(made)
    place = made.root / "run/holecard/first"
    # A short name: the system takes 107 bytes.
    made.file.write_text(made.file.read_text().replace(f"{made.run}/control.sock", f"{place}/s"))
    assert f"{place}, for the socket, does not exist" in made.problem("socket").what
    made.put(f"/etc/systemd/system/{UNIT}", deployed(UNIT).read_text())
    assert made.check("socket").verdict == "ok"


# --- software ---------------------------------------------------------------------------------


def test_packages_that_are_too_old_or_missing(made: House, monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"holecard": "1.0", "apsw": "3.9", "msgspec": "0.19.1"}

    def version(name: str) -> str:
        if name not in there:
            raise PackageNotFoundError(name)
        return there[name]

    needed = ["apsw>=3.51.3", "msgspec>=0.19", "rich>=13.7", 'pytest>=8; extra == "test"']
    monkeypatch.setattr(host, "version", version)
    monkeypatch.setattr(host, "requires", lambda name: needed)
    old, missing = made.check("software").problems
    assert old.what == "apsw 3.9 is installed, and 3.51.3 is needed"
    assert old.commands[0].endswith(" -m pip install 'apsw>=3.51.3'")
    assert missing.what == "the package rich is not installed"
    there.update(apsw="3.51.3", rich="14")
    assert made.check("software").verdict == "ok"


def test_every_package_that_we_name_is_looked_at(made: House) -> None:
    """Where we would name one in another form, this would not see it."""
    needed = requires("holecard") or []
    ours = [one for one in needed if "extra ==" not in one]
    assert len(ours) > 8
    assert all(host.REQUIREMENT.match(one) for one in ours)
    assert made.check("software").verdict == "ok"


@given(st.lists(st.integers(0, 99), min_size=1, max_size=4), st.sampled_from(["", "rc1", ".post1"]))
def test_a_version_in_numbers(parts: list[int], rest: str) -> None:
    text = ".".join(map(str, parts))
    assert numbered(text) == tuple(parts)
    assert numbered(text + rest)[: len(parts)] == tuple(parts)


# --- the disk ---------------------------------------------------------------------------------


def roomy(free: int, files: int = 10**6) -> os.statvfs_result:
    return os.statvfs_result((4096, 4096, 10**9, 0, free // 4096, 10**7, 0, files, 0, 255))


@pytest.mark.parametrize(
    ("days", "grade"), [(0, "wrong"), (1, "wrong"), (3, "warning"), (29, "warning"), (31, "")]
)
def test_room_in_days(made: House, monkeypatch: pytest.MonkeyPatch, days: int, grade: str) -> None:
    free = bytes_a_day(3) * days + 4096
    monkeypatch.setattr(os, "statvfs", lambda place: roomy(free))
    found = made.check("room")
    assert [one.grade for one in found.problems] == ([grade] if grade else [])
    assert f"{days} days of " in found.note
    if grade:
        made.shell(found.problems[0].commands[0])


def test_room_for_the_next_segments(made: House, monkeypatch: pytest.MonkeyPatch) -> None:
    made.edit("segment_mib = 1", "segment_mib = 1024")
    monkeypatch.setattr(os, "statvfs", lambda place: roomy(2**31))
    assert made.problem("room").grade == "wrong"


def test_play_that_a_served_table_can_record(made: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next segment cannot be made; what is left of the current one is known."""
    monkeypatch.setattr(os, "statvfs", lambda place: roomy(2**19))
    log = made.begin()
    try:
        log.spares.take().unlink()
        problem = made.problem("room")
        assert "cannot be made: about 10 min of play can be recorded" in problem.what
        made.shell(problem.commands[0])
        monkeypatch.setattr(os, "statvfs", lambda place: roomy(2**20))
        assert "of play" not in made.problem("room").what  # it is being made
    finally:
        log.close()
    monkeypatch.setattr(os, "statvfs", lambda place: roomy(2**19))
    assert "of play" not in made.problem("room").what


def test_room_for_files(made: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda place: roomy(2**40, 3))
    assert "has space for only 3 more files" in made.problem("room").what


def test_days_are_those_of_a_table_that_is_played_at() -> None:
    """A table of seven that is never closed makes some 90 MB a day, one of one hardly less."""
    assert 80e6 < bytes_a_day(1) <= bytes_a_day(7) < 120e6


@pytest.mark.parametrize(
    ("kind", "options", "grade"),
    [
        ("ext4", "rw", ""),
        ("xfs", "rw,noatime", ""),
        ("btrfs", "rw", ""),
        ("tmpfs", "rw", "warning"),
        ("overlay", "rw", "warning"),
        ("nfs4", "rw", "warning"),
        ("fuse.sshfs", "rw", "warning"),
        ("vfat", "rw", "warning"),
        ("ext4", "ro,errors=remount-ro", "wrong"),
    ],
)
def test_file_systems(made: House, kind: str, options: str, grade: str) -> None:
    text = MOUNTS.format(place=made.run, kind=kind, options=options)
    made.elsewhere(**{"/proc/self/mountinfo": text})
    assert [one.grade for one in made.check("file system").problems] == ([grade] if grade else [])


def test_a_mount_is_that_of_the_longest_path(tmp_path: Path) -> None:
    every = mounts(
        "27 1 254:0 / / rw - ext4 /dev/vda rw\n"
        f"28 27 0:9 / {tmp_path}/a\\040b rw shared:3 - tmpfs none rw\n"
        f"29 27 0:9 / {tmp_path}/a\\040b rw - xfs none ro\n"
        "a line that is none\n"
    )
    assert mount_of(tmp_path / "a b" / "c", every) == Mount(f"{tmp_path}/a b", "xfs", True)
    assert mount_of(tmp_path / "a bc", every) == Mount("/", "ext4", False)
    assert mount_of(tmp_path, []) is None


def test_what_is_written_to_measure_leaves_nothing(made: House) -> None:
    made.recorded()
    before = sorted(made.run.rglob("*"))
    assert made.check("syncs").note.startswith("4 KiB durable in ")
    assert sorted(made.run.rglob("*")) == before


def test_a_disk_that_is_slow(made: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "syncs", lambda place: [1.0, 30.0, 40.0])
    made.expect("syncs", grade="warning", what="in 30.00 ms, at most 40.00 ms of 3")


def test_a_disk_that_fails(made: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(fd: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", failing)
    made.expect("syncs", grade="wrong", what="Input/output error")
