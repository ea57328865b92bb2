"""The file of the people: what is refused, and what a change leaves behind."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace
from rich.pretty import pretty_repr

from controller.cli import main
from controller.people import People, PeopleFile, Person, person
from controller.people.directory import people_place
from controller.people.person import MAX_FILE_BYTES, check_roles, key_bytes, read_key
from controller.people.pins import PeopleKey
from drivers.keys import KeyProblem
from tests.support.table.simulated.house import KEY, PINS, add, everybody, house, mode, put


def refused(file: PeopleFile, words: str) -> None:
    """Whoever reads or changes it is told so, and it stays as it is."""
    before = file.file.read_bytes() if file.file.is_file() else None
    with pytest.raises(KeyProblem, match=words):
        file.read()
    with pytest.raises(KeyProblem, match=words):
        add(file)
    assert (file.file.read_bytes() if file.file.is_file() else None) == before
    assert not file.history_file.exists()


# --- what is there ----------------------------------------------------------------------------


def test_a_house_begins_without_people(tmp_path: Path) -> None:
    file = PeopleFile(tmp_path / "a" / "b" / "people.json", tmp_path / "c" / "keys")
    with pytest.raises(KeyProblem, match=r"no such directory; allowed: `holecard people init "):
        file.read()
    made = file.begin()
    assert made.every == ()
    assert file.read().key.fingerprint == made.key.fingerprint
    assert [mode(one) for one in (file.file, file.key_file)] == [0o600, 0o600]
    assert [mode(one) for one in (file.file.parent, file.keys)] == [0o700, 0o700]
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
        assert rest == " makes one"
        words = shlex.split(command)
        assert words[0] == "holecard"
        assert main(words[1:]) == 0
        assert file.read().every == (), gone
        file.file.unlink()
    assert not (tmp_path / "home").exists()


def test_another_file_has_the_same_key(tmp_path: Path) -> None:
    first = house(tmp_path)
    second = PeopleFile(tmp_path / "house" / "other.json", first.keys)
    assert second.begin().key.fingerprint == KEY.fingerprint


def test_people_are_found_by_their_badges(tmp_path: Path) -> None:
    people = house(tmp_path).read()
    assert people.every == everybody_as_in(people)
    found = people.find(" d-17 ")
    assert found is not None
    assert found.name == "Ann Lee"
    assert people.find("D-1") is None
    assert [one.badge for one in people.floor()] == ["F-2", "F-3", "F-9"]
    assert people.key.fits(found.verifier(), "D-17", PINS["D-17"])


def everybody_as_in(people: People) -> tuple[Person, ...]:
    """Verifiers differ each time."""
    pairs = zip(everybody(), people.every, strict=True)
    return tuple(replace(one, pin=other.pin) for one, other in pairs)


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
def test_a_file_that_others_may_touch_is_refused(tmp_path: Path, bits: int) -> None:
    file = house(tmp_path)
    file.file.chmod(bits)
    refused(file, f"mode {bits:o}.*allowed: mode 600: chmod 600 ")
    file.file.chmod(0o600)
    file.key_file.chmod(bits)
    refused(file, f"people.key: others may touch it .mode {bits:o}")


@pytest.mark.parametrize("bits", [0o770, 0o707, 0o722, 0o1777])
def test_a_place_where_others_may_replace_it_is_refused(tmp_path: Path, bits: int) -> None:
    file = house(tmp_path)
    file.file.parent.chmod(bits)
    refused(file, "others may replace people.json")
    file.file.parent.chmod(0o755)
    assert file.read().every


def test_directories_of_others_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = house(tmp_path)
    ours = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: ours + 1)
    words = "belongs to the user" if ours == 0 else "may replace people.json"
    refused(file, words)


def test_a_link_to_another_file_is_refused(tmp_path: Path) -> None:
    file = house(tmp_path)
    file.file.rename(tmp_path / "elsewhere")
    file.file.symlink_to(tmp_path / "elsewhere")
    refused(file, "people.json: cannot be opened")


def test_a_directory_in_its_place_is_refused(tmp_path: Path) -> None:
    file = house(tmp_path)
    file.file.unlink()
    file.file.mkdir(mode=0o700)
    refused(file, "is no file")


def test_a_file_in_the_place_of_its_directory_is_refused(tmp_path: Path) -> None:
    file = house(tmp_path)
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
def test_a_damaged_file_is_refused(tmp_path: Path, name: str) -> None:
    file = house(tmp_path)
    damage, words = DAMAGE[name]
    put(file.file, damage(file.file.read_text()).encode())
    refused(file, words)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    file = house(tmp_path)
    put(file.file, file.file.read_bytes().replace(b"Ann", b"\xff\xfe\xfd"))
    refused(file, "is damaged: ")


def test_more_than_any_house_has_is_refused(tmp_path: Path) -> None:
    file = house(tmp_path)
    put(file.file, b" " * (MAX_FILE_BYTES + 1))
    refused(file, f"more than {MAX_FILE_BYTES} bytes")


def test_a_key_that_is_damaged_gone_or_another_is_refused(tmp_path: Path) -> None:
    file = house(tmp_path)
    good = file.key_file.read_bytes()
    put(file.key_file, good.replace(b"00", b"01", 1))
    refused(file, "its key and its fingerprint do not belong together")
    put(file.key_file, good.replace(b"0001", b"XX01", 1))
    refused(file, "its key is not 64 digits")
    put(file.key_file, key_bytes(PeopleKey.generate()))
    refused(file, "went through another key")
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
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
    assert "key_hex" not in repr(person.KeyFile(1, digits, "ab"))


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
