"""The file of the people: what is refused, what a change leaves behind, what the history says."""

import errno
import fcntl
import itertools
import json
import os
import shlex
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace
from rich.pretty import pretty_repr

from controller.cli import main
from controller.people import People, PeopleFile, Person, history_differences
from controller.people.directory import people_place
from controller.people.person import (
    MAX_FILE_BYTES,
    KeyFile,
    check_roles,
    key_bytes,
    people_bytes,
    read_key,
)
from controller.people.pins import PeopleKey
from controller.people.service import renew_verifier
from drivers.keys import KeyProblem
from tests.support.commands import Says
from tests.support.hil.conform.failing_disk import FailingDisk
from tests.support.table.simulated.house import (
    AT,
    CHEAP,
    DEARER,
    KEY,
    NEW,
    PINS,
    TWO,
    add,
    everybody,
    has_pin,
    history_of,
    house,
    lines,
    mode,
    put,
    who,
)
from tests.support.table.simulated.house import person as a_person
from tests.support.table.typed.at_command import TWO as TWO_OPTIONS
from tests.support.table.typed.at_command import alone, found, people
from tests.support.table.typed.at_desk import change as change_roles


def refused(file: PeopleFile, words: str) -> None:
    """Whoever reads or changes it is told so, and it stays as it is."""
    before = file.file.is_file() and file.file.read_bytes()
    for use in (PeopleFile.read, add):
        with pytest.raises(KeyProblem, match=words):
            use(file)
    assert (file.file.is_file() and file.file.read_bytes()) == before
    assert not file.history_file.exists()


# --- what is there ----------------------------------------------------------------------------


def test_a_house_begins_without_people(tmp_path: Path) -> None:
    file = PeopleFile(tmp_path / "a" / "b" / "people.json", tmp_path / "c" / "keys")
    with pytest.raises(KeyProblem, match=r"no such directory; allowed: `holecard people init "):
        file.read()
    made = file.begin()
    assert made.every == ()
    places = file.file, file.key_file, file.file.parent, file.keys
    assert [mode(one) for one in places] == [0o600, 0o600, 0o700, 0o700]
    with pytest.raises(KeyProblem, match="exists already"):
        file.begin()
    assert file.read().key.fingerprint == made.key.fingerprint


def test_the_command_that_is_named_makes_this_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is printed, whatever the places are called and wherever else people might lie."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    place = tmp_path / "a table's"
    file = PeopleFile(place / "people.json", place / "keys")
    for gone in ("all", "file"):
        with pytest.raises(KeyProblem) as caught:
            file.read()
        _, command, rest = str(caught.value).split("`")
        holecard, *words = shlex.split(command)
        assert (holecard, main(words), rest) == ("holecard", 0, " makes one")
        assert file.read().every == (), gone
        file.file.unlink()
    assert not (tmp_path / "home").exists()


def test_another_file_has_the_same_key(tmp_path: Path) -> None:
    second = PeopleFile(tmp_path / "house" / "other.json", house(tmp_path).keys)
    assert second.begin().key.fingerprint == KEY.fingerprint


def test_people_are_found_by_their_badges(file: PeopleFile) -> None:
    people = file.read()
    # Verifiers differ each time.
    pairs = zip(everybody(), people.every, strict=True)
    assert people.every == tuple(replace(one, pin=other.pin) for one, other in pairs)
    assert (people.find(" d-17 "), people.find("D-1")) == (people.every[0], None)
    assert [one.badge for one in people.floor()] == ["F-2", "F-3", "F-9"]
    assert has_pin(file, "D-17", PINS["D-17"])


def test_nothing_of_a_pin_is_shown(tmp_path: Path) -> None:
    people = house(tmp_path).read()
    shown = f"{people!r} {pretty_repr(people)} {people.key!r}".lower()
    assert "argon2" not in shown
    assert KEY.open().hex() not in shown


def test_where_the_file_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLECARD_PEOPLE", str(tmp_path / "one"))
    assert people_place(tmp_path / "two") == tmp_path / "two"
    assert people_place(None) == tmp_path / "one"
    monkeypatch.delenv("HOLECARD_PEOPLE")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert people_place(None) == tmp_path / "holecard" / "people.json"


# --- who may touch it -------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [0o620, 0o602, 0o640, 0o604, 0o666, 0o777])
def test_a_file_that_others_may_touch_is_refused(file: PeopleFile, bits: int) -> None:
    file.file.chmod(bits)
    refused(file, f"mode {bits:o}.*allowed: mode 600: chmod 600 ")
    file.file.chmod(0o600)
    file.key_file.chmod(bits)
    refused(file, f"people.key: others may touch it .mode {bits:o}")


@pytest.mark.parametrize("bits", [0o770, 0o707, 0o722, 0o1777])
def test_a_place_where_others_may_replace_it_is_refused(file: PeopleFile, bits: int) -> None:
    file.file.parent.chmod(bits)
    refused(file, "others may replace people.json")
    file.file.parent.chmod(0o755)
    assert file.read().every


def test_directories_of_others_are_refused(
    file: PeopleFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: ours + 1)
    refused(file, "belongs to the user" if ours == 0 else "may replace people.json")


def test_a_link_to_another_file_is_refused(file: PeopleFile, tmp_path: Path) -> None:
    file.file.rename(tmp_path / "elsewhere")
    file.file.symlink_to(tmp_path / "elsewhere")
    refused(file, "people.json: cannot be opened")


def test_a_directory_in_its_place_is_refused(file: PeopleFile) -> None:
    file.file.unlink()
    file.file.mkdir(mode=0o700)
    refused(file, "is no file")


def test_a_file_in_the_place_of_its_directory_is_refused(file: PeopleFile) -> None:
    refused(
        PeopleFile(file.file / "people.json", file.keys), "is not a directory|cannot be checked"
    )


# --- what is damaged --------------------------------------------------------------------------


def change(text: str, instead: str) -> Callable[[str], str]:
    def made(found: str) -> str:
        assert text in found
        return found.replace(text, instead, 1)

    return made


DAMAGE: Final[dict[str, tuple[Callable[[str], str], str]]] = {
    "empty": (lambda text: "", "is damaged: "),
    "cut": (lambda text: text[:-20], "is damaged: "),
    "format": (change('"format": 1', '"format": 2'), "is damaged: .*format"),
    "field": (change('"disabled"', '"barred": 0, "disabled"'), "is damaged: .*barred"),
    "less": (change('"disabled": false,', ""), "is damaged: .*disabled"),
    "type": (change("false", '"no"'), "is damaged: .*disabled"),
    "twice": (
        change('"disabled": false', '"disabled": true, "disabled": false'),
        "'disabled' appears tw",
    ),
    "role": (change('"dealer"', '"boss"'), "is damaged: .*boss.*roles"),
    "roles": (change('"dealer"', '"dealer", "dealer"'), r"people\[0\].roles: a role is given tw"),
    "no role": (change('"dealer"', ""), r"people\[0\].roles: no role is given"),
    "same": (change("D-18", "d-17"), r"people\[1\].badge: d-17 is used twice"),
    "badge": (change("D-18", "D 18"), r"people\[1\].badge: 'D 18' is not a badge"),
    "control": (
        change("Ann Lee", r"Ann\u0007Lee"),
        r"people\[0\].name: 'Ann\\x07Lee' is not a name",
    ),
    "blanks": (change("Ann Lee", " Ann Lee"), r"people\[0\].name"),
    "long": (change("Ann Lee", "A" * 65), r"people\[0\].name"),
    "verifier": (change("$m=8,", "$m=9999999,"), r"people\[0\].pin: asks for more"),
    "other key": (change(KEY.fingerprint, "0000"), "went through another key than that of"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_file_is_refused(file: PeopleFile, name: str) -> None:
    damage, words = DAMAGE[name]
    put(file.file, damage(file.file.read_text()).encode())
    refused(file, words)


def test_bytes_that_are_no_text_are_refused(file: PeopleFile) -> None:
    put(file.file, file.file.read_bytes().replace(b"Ann", b"\xff\xfe\xfd"))
    refused(file, "is damaged: ")


def test_more_than_any_house_has_is_refused(file: PeopleFile) -> None:
    put(file.file, b" " * (MAX_FILE_BYTES + 1))
    refused(file, f"more than {MAX_FILE_BYTES} bytes")


def test_a_key_that_is_damaged_gone_or_another_is_refused(file: PeopleFile, tmp_path: Path) -> None:
    good = file.key_file.read_bytes()
    for key, words in (
        (good.replace(b"00", b"01", 1), "its key and its fingerprint do not belong together"),
        (good.replace(b"0001", b"XX01", 1), "its key is not 64 digits"),
        (key_bytes(PeopleKey.generate()), "went through another key"),
    ):
        put(file.key_file, key)
        refused(file, words)
    file.key_file.unlink()
    refused(file, r"people.key: is missing; allowed: the file from a backup")
    file.keys.rename(tmp_path / "gone")
    refused(file, "keys: there is no such directory")


def test_the_words_for_a_damaged_key_hold_nothing_of_it(tmp_path: Path) -> None:
    file = tmp_path / "people.key"
    digits = KEY.open().hex()
    for text in (digits, f'{{"format": 1, "key_hex": {digits}}}', f'"{digits}"\xff'):
        put(file, text.encode("latin-1"))
        with pytest.raises(KeyProblem) as caught:
            read_key(file)
        assert digits[2:] not in str(caught.value)
        assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert "key_hex" not in repr(KeyFile(1, digits, "ab"))


# --- roles ------------------------------------------------------------------------------------


def test_roles_are_kept_in_the_order_of_the_house() -> None:
    assert check_roles(("technician", "dealer")) == ("dealer", "technician")
    for wrong, words in (
        (("player",), "no role 'player'"),
        (("dealer", "dealer"), "twice"),
        ((), "no role"),
    ):
        with pytest.raises(ValueError, match=words):
            check_roles(wrong)


HAL = "Hal Gone (dealer, floor"
SINCE = f"since {AT}, by Ann Lee and Bo Chan"


@pytest.fixture
def known(file: PeopleFile) -> PeopleFile:
    """The history says how everybody came there."""
    put(file.history_file, history_of(everybody()))
    return file


def by_hand(file: PeopleFile, make: Callable[[Person], Person | None], badge: str = "D-17") -> None:
    """Somebody edits the file."""
    every = [make(one) if one.badge == badge else one for one in everybody()]
    put(file.file, people_bytes(People(KEY, tuple(one for one in every if one is not None))))


CASES: dict[str, tuple[Callable[[Person], Person | None], str, str]] = {
    "name": (
        lambda one: replace(one, name="Ann Leigh"),
        "D-17",
        f"D-17 is Ann Leigh (dealer) in the file; by the history Ann Lee (dealer), {SINCE}",
    ),
    "roles": (
        lambda one: replace(one, roles=("dealer", "floor")),
        "D-17",
        f"D-17 is Ann Lee (dealer, floor) in the file; by the history Ann Lee (dealer), {SINCE}",
    ),
    "enabled": (
        lambda one: replace(one, disabled=False),
        "X-1",
        f"X-1 is {HAL}) in the file; by the history {HAL}, disabled), {SINCE}",
    ),
    "gone": (
        lambda one: None,
        "D-17",
        f"D-17, Ann Lee, is not in the file; the history has them, {SINCE}",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_was_done_by_hand_is_told(known: PeopleFile, case: str) -> None:
    make, badge, words = CASES[case]
    assert history_differences(known, known.read()) == []
    by_hand(known, make, badge)
    assert history_differences(known, known.read()) == [words]


def test_somebody_who_was_put_there_by_hand(known: PeopleFile) -> None:
    one = a_person("D-99", "Nick Nobody", ("dealer",))
    put(known.file, people_bytes(People(KEY, (*everybody(), one))))
    words = "D-99, Nick Nobody, is in the file, but in no line of the history"
    assert history_differences(known, known.read()) == [words]


def test_what_is_done_with_the_command_is_no_difference(
    known: PeopleFile,
    monkeypatch: pytest.MonkeyPatch,
    said: Says,
) -> None:
    found(known, monkeypatch)
    alone(monkeypatch)
    for words in (("disable", "D-17"), ("enable", "X-1"), ("roles", "D-18", "dealer,floor")):
        assert people(*words, *TWO_OPTIONS) == 0
    change_roles(known, "D-19", lambda one: one)
    assert said(people("list")).done()


def test_the_list_says_what_is_odd(
    known: PeopleFile, monkeypatch: pytest.MonkeyPatch, said: Says
) -> None:
    found(known, monkeypatch)
    alone(monkeypatch)
    known.history_file.unlink()
    assert said(people("list")).done(
        f"warning: {known.history_file} is missing: the origin of these people is unknown\n"
    )


def test_lines_that_are_none_and_a_file_that_others_may_touch(known: PeopleFile) -> None:
    with known.history_file.open("ab") as lines:
        lines.write(b'{"what":"pai\n\xff\n')
    number = len(everybody()) + 2
    assert history_differences(known, known.read()) == [
        f"line {at} of {known.history_file} is not a valid change" for at in (number, number + 1)
    ]
    known.history_file.chmod(0o666)
    with pytest.raises(KeyProblem, match="others may touch it"):
        history_differences(known, known.read())


def test_a_house_without_people_needs_no_history(tmp_path: Path) -> None:
    made = house(tmp_path, ())
    assert history_differences(made, made.read()) == []


# --- changing ---------------------------------------------------------------------------------


def test_a_change_is_kept_and_stands_in_the_history(file: PeopleFile) -> None:
    assert add(file).every[-1] == NEW
    disabled = replace(NEW, disabled=True)
    file.change("disabled", "d-20", lambda people: disabled, ("Cy", "Di"), AT)
    assert (len(file.read().every), file.read().every[-1]) == (len(PINS) + 1, disabled)
    first, second = lines(file)
    assert first.pop("account")
    assert first == {
        "at": AT,
        "what": "added",
        "by": ["Ann Lee", "Bo Chan"],
        "badge": "D-20",
        "name": "Ivy North",
        "roles": ["dealer"],
    }
    assert (second["what"], second["by"]) == ("disabled", ["Cy", "Di"])
    assert [mode(one) for one in (file.file, file.history_file)] == [0o600, 0o600]


def test_what_cannot_stand_in_the_file_is_not_kept(file: PeopleFile) -> None:
    before = file.file.read_bytes()
    for one in (
        replace(NEW, badge="D 20"),
        replace(NEW, name="Ivy\nNorth"),
        replace(NEW, roles=()),
        replace(NEW, pin="402931"),
    ):
        with pytest.raises(KeyProblem, match=r"people\[9\]"):
            add(file, one)
    assert file.file.read_bytes() == before
    assert not file.history_file.exists()


def test_a_house_that_is_full_is_told_so(file: PeopleFile, monkeypatch: pytest.MonkeyPatch) -> None:
    before = file.file.read_bytes()
    monkeypatch.setattr("controller.people.person.MAX_FILE_BYTES", len(before) + 20)
    with pytest.raises(KeyProblem, match="too many people for one file"):
        add(file)
    assert file.file.read_bytes() == before


@contextmanager
def held(file: Path) -> Iterator[None]:
    """Another program holds this lock."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def test_one_changes_at_a_time(file: PeopleFile) -> None:
    with held(file.file.with_name("people.json.lock")):
        with pytest.raises(KeyProblem, match="another process is changing the people"):
            file.change("added", "D-20", lambda people: NEW, TWO, AT, timeout=0)
        assert len(file.read().every) == len(PINS)
    assert len(add(file).every) == len(PINS) + 1


def test_nobody_is_lost_when_many_are_added_at_once(tmp_path: Path) -> None:
    file = house(tmp_path, ())
    badges = [f"N-{at}" for at in range(8)]
    new = [replace(NEW, badge=badge) for badge in badges]
    threads = [threading.Thread(target=add, args=(file, one)) for one in new]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.badge for one in file.read().every) == badges
    assert sorted(str(line["badge"]) for line in lines(file)) == badges


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_disk_that_fails_at_any_step_of_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    for at in itertools.count():
        file = house(tmp_path / f"step-{at}")
        before = file.read().every
        with monkeypatch.context() as patched:
            disk = FailingDisk(patched, tmp_path, number, at)
            try:
                add(file)
            except KeyProblem as problem:
                text = str(problem)
            else:
                assert disk.asked <= at
                break
        assert os.strerror(number).lower() in text, at
        assert file.read().every in (before, (*before, NEW)), at
        assert not file.file.with_name("people.json.new").exists(), at
        if file.history_file.exists():
            assert [line["badge"] for line in lines(file)] in ([], ["D-20"]), at
        assert add(file).every == (*before, NEW), at
    assert at > 6


def test_a_change_that_is_kept_is_never_without_its_line(
    file: PeopleFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line is on the disk before the file is."""
    seen: list[bool] = []
    real = os.replace

    def watched(*arguments: str) -> None:
        seen.append(file.history_file.exists() and lines(file)[-1]["badge"] == "D-20")
        real(*arguments)

    monkeypatch.setattr(os, "replace", watched)
    add(file)
    assert seen == [True]


def test_a_line_that_power_has_cut_short_does_not_take_the_next_one_with_it(
    file: PeopleFile,
) -> None:
    put(file.history_file, b'{"at":"2027-01-1')
    add(file)
    _, last = file.history_file.read_text().splitlines()
    assert json.loads(last)["badge"] == "D-20"


# --- a verifier that is renewed ---------------------------------------------------------------


def test_a_verifier_is_made_anew_at_the_present_cost(file: PeopleFile) -> None:
    ann = who(file, "D-17")
    renew_verifier(file, ann, PINS["D-17"], DEARER, AT)
    now = who(file, "D-17")
    assert (now.verifier().cost, replace(now, pin=ann.pin)) == (DEARER, ann)
    assert has_pin(file, "D-17", PINS["D-17"])
    assert [(line["what"], line["by"]) for line in lines(file)] == [
        ("verifier renewed", ["Ann Lee"])
    ]


def test_a_verifier_that_was_changed_meanwhile_stays(file: PeopleFile) -> None:
    ann = who(file, "D-17")
    other = replace(ann, pin=str(KEY.verifier("D-17", "918273", CHEAP)))
    file.change("PIN reset", "D-17", lambda people: other, TWO, AT)
    with pytest.raises(KeyProblem, match="D-17 has another PIN by now"):
        renew_verifier(file, ann, PINS["D-17"], DEARER, AT)
    assert who(file, "D-17") == other
