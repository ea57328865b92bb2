"""Creation of keys is atomic and durable, and never replaces a key."""

import errno
import fcntl
import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controller.audit.keys import Role, list_keys, misplaced_keys
from controller.audit.keys.store import ROLES, create_key, find_key
from drivers.keys import KeyProblem, KeyStore
from tests.support.audit.record.table import failing
from tests.support.audit.tools.key_places import NAMES, WITNESS, contents, filled, mode, secrets_of

FILES: dict[Role, list[str]] = {
    "table": ["table.key", "table.pub"],
    "hole": ["hole.key"],
    "surveillance": ["surveillance.key", "surveillance.pub"],
    "witness": ["witness.key", "witness.pub"],
}


@pytest.mark.parametrize("role", ROLES)
def test_created_files_are_private(tmp_path: Path, role: Role) -> None:
    place = tmp_path / "deep/keys"
    before = os.umask(0)
    try:
        made = create_key(place, role, NAMES[role])
    finally:
        os.umask(before)
    assert (sorted(contents(place)), mode(place)) == (FILES[role], 0o700)
    assert {mode(file) for file in place.iterdir()} == {0o600}
    assert [(file.name, bits) for file, bits in made.files] == [(n, "600") for n in FILES[role]]
    assert made == find_key(place, role)


@pytest.mark.parametrize("role", ROLES)
def test_each_key_is_different(tmp_path: Path, role: Role) -> None:
    every = [create_key(tmp_path / str(number), role, NAMES[role]) for number in range(3)]
    assert len({found.fingerprint for found in every}) == 3


@pytest.mark.parametrize("role", ROLES)
def test_a_key_is_never_replaced(tmp_path: Path, role: Role) -> None:
    place = filled(tmp_path / "keys")
    before = contents(place)
    with pytest.raises(KeyProblem) as caught:
        create_key(place, role, NAMES[role])
    assert str(caught.value) == (
        f"{place}/{role}.key: is there already; allowed: another directory: "
        "a key is made once and never replaced"
    )
    assert contents(place) == before


@pytest.mark.parametrize("role", ["table", "surveillance", "witness"])
def test_an_incomplete_key_is_not_completed(tmp_path: Path, role: Role) -> None:
    place = filled(tmp_path / "keys")
    for name, what in (
        (f"{role}.pub", f"{role}.key: is there already, without its {role}.pub; allowed: "),
        (f"{role}.key", f"{role}.pub: is there already; allowed: another directory"),
    ):
        kept = (place / name).read_bytes()
        (place / name).unlink()
        before = contents(place)
        with pytest.raises(KeyProblem, match=what):
            create_key(place, role, NAMES[role])
        assert contents(place) == before
        (place / name).write_bytes(kept)
        (place / name).chmod(0o600)


@pytest.mark.parametrize("what", ["dangling", "directory", "empty"])
def test_an_existing_file_of_any_type_is_kept(tmp_path: Path, place: Path, what: str) -> None:
    place.mkdir(mode=0o700)
    file = place / "hole.key"
    if what == "dangling":
        file.symlink_to(tmp_path / "nowhere")
    elif what == "directory":
        file.mkdir()
    else:
        file.write_bytes(b"")
    with pytest.raises(KeyProblem, match=r"hole\.key: is there already"):
        create_key(place, "hole")
    assert os.path.lexists(file)
    assert not (tmp_path / "nowhere").exists()


def test_only_a_witness_has_a_name(place: Path) -> None:
    with pytest.raises(KeyProblem, match="--name: is missing: a witness signs with its name"):
        create_key(place, "witness")
    for role in ("table", "hole", "surveillance"):
        with pytest.raises(KeyProblem, match=f"--name: no {role} has one when its key is made"):
            create_key(place, role, WITNESS)
    for name in (
        "",
        "a b",
        "a+b",
        "a\nb",
        "a\u2003b",
        "\ud800",
        "a\x9bb",
        "a\u202eb",
        "x" * 200_000,
    ):
        with pytest.raises(KeyProblem, match=r"is no name of a key; allowed: the witness's name"):
            create_key(place, "witness", name)
    assert not place.exists()
    assert create_key(place, "witness", "Aufsicht/Süd").name == "Aufsicht/Süd"


def test_a_directory_open_to_others_is_rejected(place: Path) -> None:
    place.mkdir()
    place.chmod(0o711)
    with pytest.raises(KeyProblem, match=r"others may touch it \(mode 711\)"):
        create_key(place, "hole")
    assert list(place.iterdir()) == []


def test_device_keys_may_share_the_directory(place: Path) -> None:
    create_key(place, "hole")
    own = KeyStore.create(place).own().private_bytes_raw()
    create_key(place, "table")
    assert KeyStore(place).own().private_bytes_raw() == own
    assert [found.role for found in list_keys(place)] == ["table", "hole"]


# --- crashes, failing disks, others -----------------------------------------------------------


def test_a_locked_directory_is_rejected(place: Path) -> None:
    place.mkdir(mode=0o700)
    lock = os.open(place / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        with pytest.raises(KeyProblem, match="lock: another program changes the keys"):
            create_key(place, "hole")
        assert contents(place) == {}
    finally:
        os.close(lock)
    create_key(place, "hole")


def test_a_lock_file_removed_meanwhile_is_rejected(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock

    def late(descriptor: int, what: int) -> None:
        (place / "lock").unlink()
        flock(descriptor, what)

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", late)
        with pytest.raises(KeyProblem, match="another program changes the keys"):
            create_key(place, "hole")
    assert contents(place) == {}
    create_key(place, "hole")


def test_a_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", failing(errno.ENOLCK))
    with pytest.raises(KeyProblem, match="lock: cannot be locked: no locks available"):
        create_key(tmp_path / "keys", "hole")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("function", ["write", "fsync", "open", "link"])
def test_a_disk_that_fails_at_any_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: Role, function: str
) -> None:
    """Fails at the first call, then at the second, until a run succeeds."""
    real: Callable[..., Any] = getattr(os, function)
    for nth in range(20):
        place = tmp_path / str(nth)
        left = [nth]

        def failing(*given: Any, left: list[int] = left, **named: Any) -> Any:
            left[0] -= 1
            if left[0] == -1:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(*given, **named)

        with monkeypatch.context() as patch:
            patch.setattr(os, function, failing)
            try:
                create_key(place, role, NAMES[role])
            except KeyProblem as problem:
                assert "no space left on device" in str(problem)  # noqa: PT017 - or it went well
            else:
                assert left[0] >= 0
                break
        assert not place.exists() or contents(place) == {}
        assert create_key(place, role, NAMES[role]).fingerprint
    else:
        pytest.fail("it never went through")
    assert nth > 0


def _killed_at(place: Path, role: Role, nth: int) -> None:
    """Create a key, and be killed before the nth call that changes a file. Ends with SIGTERM
    after the last call."""
    left = [nth]

    def dying(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] == -1:
                signal.raise_signal(signal.SIGKILL)
            return real(*given, **named)

        return call

    for name in ("open", "write", "fsync", "link", "unlink", "mkdir"):
        setattr(os, name, dying(getattr(os, name)))
    create_key(place, role, NAMES[role])
    signal.raise_signal(signal.SIGTERM)


def _killed_in_turn(place: str, role: Role) -> list[int]:
    """The exit codes of processes that are each killed one call later; the last one succeeds."""
    ends: list[int] = []
    while -signal.SIGTERM not in ends and len(ends) < 99:
        child = os.fork()
        if child == 0:
            _killed_at(Path(place) / str(len(ends)), role, len(ends))
        ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    return ends


@pytest.mark.parametrize("role", ["surveillance", "hole"])
def test_killed_before_any_call(tmp_path: Path, role: Role) -> None:
    """A .pub never exists without its secret part, no file is partial, and leftovers do no harm."""
    # a single-threaded process that may fork
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        ends = pool.apply(_killed_in_turn, (str(tmp_path), role))
        pool.close()
        pool.join()
    assert set(ends) == {-signal.SIGKILL, -signal.SIGTERM}
    seen = set()
    for nth in range(len(ends)):
        place = tmp_path / str(nth)
        there = [name for name in FILES[role] if (place / name).exists()]
        seen.add(len(there))
        assert there == FILES[role][: len(there)]
        if len(there) == len(FILES[role]):
            assert find_key(place, role).problem is None
        elif there:
            with pytest.raises(KeyProblem, match="is there already, without its"):
                create_key(place, role, NAMES[role])
        else:
            assert create_key(place, role, NAMES[role]).fingerprint
            assert sorted(contents(place)) == FILES[role]
    assert seen == set(range(len(FILES[role]) + 1))


def _try(place: str) -> str:
    try:
        create_key(Path(place), "table")
    except KeyProblem as problem:
        return str(problem)
    return "made"


def test_concurrent_creation_makes_one_key(place: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(3) as pool:
        told = pool.map(_try, [str(place)] * 12, chunksize=1)
        pool.close()
        pool.join()
    assert told.count("made") == 1
    assert all(
        "another program" in one or "is there already" in one for one in told if one != "made"
    )
    assert find_key(place, "table").problem is None


def test_files_are_synced_before_they_are_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []
    fsync, link = os.fsync, os.link

    def synced(descriptor: int) -> None:
        steps.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        fsync(descriptor)

    def linked(old: Path, new: Path) -> None:
        steps.append(f"-> {new.name}")
        link(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "link", linked)
    create_key(tmp_path / "keys", "surveillance")
    private = steps.index("-> surveillance.key")
    assert steps.index("surveillance.key.new") < private
    assert steps.index("surveillance.pub.new") < private
    assert steps[private:] == ["-> surveillance.key", "keys", "-> surveillance.pub", "keys"]


def test_a_file_created_meanwhile_is_reported(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a process that ignores the lock. The existing key is kept."""
    theirs = filled(tmp_path / "theirs")
    link = os.link

    def late(old: Path, new: Path) -> None:
        if new.name == "table.pub":
            (theirs / "table.pub").rename(new)
        link(old, new)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(KeyProblem, match=r"does not belong to table\.pub"):
        create_key(place, "table")
    assert list(contents(place)) == ["table.pub"]


# --- what may be known ------------------------------------------------------------------------


def test_the_listing_contains_no_secret(tmp_path: Path) -> None:
    place = filled(tmp_path / "keys")
    found = list_keys(place)
    assert [one.role for one in found] == list(ROLES)
    assert all(one.fingerprint and one.private and one.problem is None for one in found)
    assert not [secret for secret in secrets_of(place) if secret in repr(found)]


def test_misplaced_secret_keys_are_reported(tmp_path: Path) -> None:
    place = filled(tmp_path / "keys")
    assert [words.partition(";")[0] for words in misplaced_keys(list_keys(place))] == [
        "surveillance.key lies beside table.key",
        "witness.key lies beside table.key",
    ]
    (place / "table.key").unlink()
    assert misplaced_keys(list_keys(place))[0].startswith("surveillance.key lies beside hole.key; ")
    (place / "hole.key").unlink()
    assert misplaced_keys(list_keys(place)) == ()


def test_an_unreadable_file_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = filled(tmp_path / "keys")
    lstat = Path.lstat

    def blind(self: Path) -> os.stat_result:
        if self.name == "hole.key":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return lstat(self)

    monkeypatch.setattr(Path, "lstat", blind)
    found = {one.role: one for one in list_keys(place)}
    assert "permission denied" in str(found["hole"].problem)
    assert found["table"].problem is None
