"""What is wrong with a table's file, directories, keys and people, and that the commands which are
printed mend it: they are run as they are."""

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from controller.audit.keys import create_key
from controller.people import People
from controller.people.person import people_bytes
from tests.support.daemon.doctor_house import House, fill_keys, owned
from tests.support.table.simulated.house import KEY, PINS, mode, person, put

# --- the table file ---------------------------------------------------------------------------


def test_a_key_that_the_file_may_not_have(made: House) -> None:
    made.edit("decks = 8", "decks = 9")
    problem = made.expect(
        "table file",
        grade="wrong",
        what="decks: 9 is not valid here",
        mend="allowed: ",
        commands=(f"{made.machine.holecard} config check {made.file}",),
    )
    made.edit("decks = 9", "decks = 8")
    made.shell(problem.commands[0])
    assert made.check("table file").verdict == "ok"


def test_a_wrong_file_stops_no_other_check(made: House) -> None:
    made.edit("decks = 8", "decks = 9")
    made.keys.chmod(0o755)
    every = made.all()
    assert (every["table file"].verdict, every["keys' place"].verdict) == ("wrong", "wrong")
    assert every["put together"].verdict == "skipped"
    assert every["record"].verdict == every["people's place"].verdict == "ok"


@pytest.mark.parametrize("name", ["record", "keys", "people", "control"])
def test_a_section_that_is_missing_is_added(made: House, name: str) -> None:
    head, _, rest = made.file.read_text().partition(f"[{name}]\n")
    made.file.write_text(head + rest[rest.find("\n[") + 1 :] if "\n[" in rest else head)
    assert f"has no [{name}]" in made.problem("sections").what
    made.mend("sections")
    assert made.check("table file").verdict == "ok"
    assert getattr(made.case().equipment, name) is not None


def test_devices_are_for_people_to_name(made: House) -> None:
    text = made.file.read_text()
    made.file.write_text(text[: text.find("[devices")] + text[text.find("[record]") :])
    made.expect("sections", what="has no [devices]", mend="[devices.shoe]")
    assert made.check("pairing").verdict == made.check("ports").verdict == "skipped"


def test_what_serving_refuses_beside_all_that_is_told_one_by_one(made: House) -> None:
    made.edit("decks = 8", 'decks = 8\ndecisions.by = "buttons"')
    made.edit("seats = [1, 2, 3]", "seats = [1, 2]")
    assert "seats 3 have no station" in made.problem("put together").what
    made.edit("seats = [1, 2]", "seats = [1, 2, 3]")
    assert made.check("put together").verdict == "ok"


# --- directories ------------------------------------------------------------------------------


def test_a_place_for_the_record_that_is_not_there(made: House) -> None:
    made.edit('"run/record"', '"far/away/record"')
    made.expect("record's place", commands=(f"mkdir -p -m 700 {made.place / 'far' / 'away'}",))
    made.mend("record's place")
    made.recorded()
    assert made.check("record").verdict == "ok"


def test_a_record_that_others_may_change(made: House) -> None:
    made.recorded()
    segment = next((made.record / "segments").glob("0*.seg"))
    segment.chmod(0o660)
    made.record.chmod(0o770)
    assert "users other than its owner may change" in made.problem("record's place").what
    made.mend("record's place")
    assert (mode(made.record), mode(segment)) == (0o750, 0o640)


def test_a_record_that_everybody_may_read(made: House) -> None:
    made.recorded()
    made.record.chmod(0o755)
    assert made.problem("record's place").grade == "warning"
    made.mend("record's place")
    assert mode(made.record) == 0o750


def test_a_record_in_a_file(made: House) -> None:
    made.record.write_text("no directory")
    assert "is not a directory" in made.problem("record's place").what
    assert made.check("record").verdict == "skipped"


@pytest.mark.parametrize("name", ["record", "keys"])
def test_a_directory_of_something_else_is_let_alone(made: House, name: str) -> None:
    """What would be done to it would be done to others."""
    place = made.place / "letters"
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    (place / "to-bo.txt").write_text("Dear Bo")
    made.edit(f'"run/{name}"', '"letters"')
    made.expect(
        f"{name}'s place" if name == "record" else "keys' place",
        what=f"{place} is not used by ",
        commands=(),
        mend=f"at [{name}]",
    )


@pytest.mark.parametrize(
    ("line", "check"),
    [
        ('"run/record"', "record's place"),
        ('"run/keys"', "keys' place"),
        ('"run/people.json"', "people's place"),
        ('"run/control.sock"', "socket"),
    ],
)
@pytest.mark.parametrize("place", ["sticky", "/tmp", "/dev/shm"])
def test_nobody_is_told_to_change_a_directory_that_all_use(
    made: House, line: str, check: str, place: str
) -> None:
    (made.place / "sticky").mkdir()
    (made.place / "sticky").chmod(0o1777)
    name = line.strip('"').removeprefix("run/")
    made.edit(line, f'"{place}/{name if "." in name else ""}"')
    made.expect(check, grade="wrong", commands=(), mend=str(made.file))


def test_a_place_below_one_that_only_root_may_write(made: House) -> None:
    far = made.place / "far"
    far.mkdir()
    made.edit('"run/record"', '"far/record"')
    made.edit('"run/keys"', '"far/keys"')
    made.machine = replace(made.machine, user="house", may=lambda place, how: place != far)
    sudo = "" if made.machine.uid == 0 else "sudo "
    record, keys = made.problem("record's place"), made.problem("keys' place")
    assert record.commands == (f"{sudo}install -d -o house -m 750 {far / 'record'}",)
    assert keys.commands[0] == f"{sudo}install -d -o house -m 700 {far / 'keys'}"
    assert keys.commands[1].endswith(f"devices init --keys {far / 'keys'}")


def test_a_file_that_this_user_may_not_write(made: House) -> None:
    text = made.file.read_text()
    made.file.write_text(text[: text.find("[control]")])
    made.machine = replace(made.machine, may=lambda place, how: place != made.file)
    assert f" tee -a {made.file}" in made.problem("sections").commands[0]
    made.mend("sections")


def test_a_record_that_is_closed_to_its_owner(made: House) -> None:
    made.recorded()
    made.machine = replace(made.machine, may=lambda place, how: place != made.record)
    made.record.chmod(0o550)
    problem = made.problem("record's place")
    assert "is closed to its owner (mode 550)" in problem.what
    made.shell(problem.commands[0])
    assert mode(made.record) == 0o750
    problem = made.problem("record's place")
    assert problem.what == f"{made.record} cannot be written, independent of its permissions"
    made.shell(problem.commands[0])


OTHER = 4711
"""A user who has no name."""
PLACES = {
    "record's place": "run/record",
    "keys' place": "run/keys",
    "people's place": "run/people.json",
}


def of_somebody(made: House, patch: pytest.MonkeyPatch, name: str, uid: int) -> Path:
    """This place belongs to that user, and the directory it is in to the one who asks."""
    made.machine = replace(made.machine, uid=made.machine.uid + 1, user="house")
    owned(patch, made.run, uid=made.machine.uid)
    owned(patch, made.place / PLACES[name], uid=uid)
    return made.place / PLACES[name]


@pytest.mark.parametrize("name", PLACES)
def test_a_place_of_another_user_is_looked_at_by_that_one(
    made: House, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    made.recorded()
    place = of_somebody(made, monkeypatch, name, OTHER)
    first = made.check(name).problems[0]
    assert first.what == f"{place} belongs to 4711, not to house"
    assert first.commands == (
        f"sudo runuser -u 4711 -- {made.machine.holecard} doctor {made.file}",
    )


@pytest.mark.parametrize("name", PLACES)
def test_a_place_of_root_is_given_to_who_asks(
    made: House, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    made.recorded()
    place = of_somebody(made, monkeypatch, name, 0)
    options = "" if name == "people's place" else "-R "
    assert made.check(name).problems[0].commands == (f"sudo chown {options}house: {place}",)


@pytest.mark.parametrize(
    ("name", "file"),
    [("record's place", "run/record/segments/00000001.seg"), ("keys' place", "run/keys/table.key")],
)
def test_a_file_that_a_command_of_another_user_has_left(
    made: House, monkeypatch: pytest.MonkeyPatch, name: str, file: str
) -> None:
    made.recorded()
    owned(monkeypatch, made.place / file, uid=OTHER)
    problem = made.problem(name)
    assert problem.what.startswith(f"{made.place / file} belongs to 4711, and all others there to ")
    assert " chown -R " in f" {problem.commands[0]}"
    assert problem.commands[0].endswith(f": {made.place / PLACES[name]}")


def test_a_directory_of_keys_that_is_not_there(made: House) -> None:
    shutil.rmtree(made.keys)
    made.mend("keys' place")
    assert mode(made.keys) == 0o700
    assert {one.what.rpartition("/")[2] for one in made.check("keys").problems} == {
        "table.key: is missing",
        "hole.key: is missing",
        "surveillance.pub: is missing",
    }


def test_keys_that_others_may_touch(made: House) -> None:
    made.keys.chmod(0o755)
    (made.keys / "devices").chmod(0o750)
    (made.keys / "table.key").chmod(0o644)
    (made.keys / "people.key").chmod(0o640)
    every = made.check("keys' place").problems
    assert [one.what.partition(" /")[0] for one in every] == [
        "others may read",
        "others may access",
    ]
    assert made.check("keys").verdict == "skipped"
    made.mend("keys' place")
    assert (made.check("keys").verdict, made.check("people").verdict) == ("ok", "ok")


# --- keys -------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["table", "hole"])
def test_a_key_of_a_new_table_is_made(made: House, role: str) -> None:
    for file in made.keys.glob(f"{role}.*"):
        file.unlink()
    assert f"{role}.key: is missing" in made.problem("keys").what
    made.mend("keys")


@pytest.mark.parametrize("role", ["table", "hole"])
def test_a_key_that_a_record_was_begun_with_is_not_made_anew(made: House, role: str) -> None:
    made.recorded()
    for file in made.keys.glob(f"{role}.*"):
        file.unlink()
    made.expect("keys", commands=(), mend="restore it from its backup")


@pytest.mark.parametrize(
    ("file", "check", "wanted"),
    [
        ("table.pub", "keys", {"what": "table.pub: is missing"}),
        ("host.json", "keys", {"mend": "devices are paired with it"}),
        ("people.key", "people", {"mend": "restore it from its backup"}),
    ],
    ids=["half of one is there", "devices know its host", "people went through it"],
)
def test_a_key_that_cannot_be_made_anew(
    made: House, file: str, check: str, wanted: dict[str, str]
) -> None:
    (made.keys / file).unlink()
    made.expect(check, commands=(), **wanted)


def test_the_key_of_surveillance_is_brought(made: House) -> None:
    (made.keys / "surveillance.pub").unlink()
    made.mend("keys", at=made.place / "surveillance")


def test_the_key_of_this_host(made: House) -> None:
    shutil.rmtree(made.keys / "devices")
    (made.keys / "host.json").unlink()
    assert "host.json: is missing" in made.problem("keys").what
    made.mend("keys")


def test_a_key_of_another_kind(made: House) -> None:
    put(made.keys / "table.key", (made.place / "surveillance" / "surveillance.key").read_bytes())
    made.expect("keys", what="holds another kind of key", commands=())


def test_two_keys_that_do_not_belong_together(made: House) -> None:
    create_key(made.place / "other", "table")
    put(made.keys / "table.pub", (made.place / "other" / "table.pub").read_bytes())
    assert "does not belong to table.pub" in made.problem("keys").what


def test_the_secret_of_surveillance_does_not_lie_at_the_table(made: House) -> None:
    put(made.keys / "surveillance.key", (made.place / "surveillance/surveillance.key").read_bytes())
    made.expect("keys", grade="warning", what="surveillance.key lies beside table.key")


# --- all of it ---------------------------------------------------------------------------------


def test_a_house_that_is_filled_anew_is_in_order(made: House) -> None:
    """The commands of all checks, one after the other, make a table of nothing but its file."""
    shutil.rmtree(made.run)
    shutil.rmtree(made.place / "surveillance")
    fill_keys(made.place / "spare", made.place / "surveillance")  # what only others can make
    for name in ("keys' place", "record's place"):
        if made.check(name).problems:
            made.mend(name)
    made.mend("keys", at=made.place / "surveillance")
    made.mend("people")
    assert (made.check("record").verdict, made.check("socket").verdict) == ("ok", "ok")
    assert {one.what.partition(" is ")[2] for one in made.check("pairing").problems} == {
        "not paired with this host"
    }


TWO = " --by 'Ann Lee' --and 'Bo Chan'"


@pytest.mark.parametrize("bits", [0o666, 0o640])
def test_a_file_of_people_that_others_may_touch(made: House, bits: int) -> None:
    made.people.chmod(bits)
    assert f"(mode {bits:o})" in made.problem("people's place").what
    assert made.check("people").verdict == "skipped"
    made.mend("people's place")
    assert made.check("people").verdict == "ok"


def test_a_file_of_people_that_others_may_replace(made: House) -> None:
    made.run.chmod(0o777)
    assert "others may replace" in made.problem("people's place").what
    made.mend("people's place")


def test_a_house_without_people(made: House) -> None:
    made.people.unlink()
    made.mend("people")
    assert [one.what for one in made.check("roles").problems] == [
        "no enabled person is dealer",
        "no enabled person is floor",
    ]


def test_people_whose_pins_went_through_another_key(made: House) -> None:
    made.people.write_bytes(made.people.read_bytes().replace(KEY.fingerprint.encode(), b"0" * 39))
    assert "another key" in made.problem("people").what


def test_people_who_are_not_what_their_history_says(made: House) -> None:
    assert made.check("history").verdict == "ok"
    data = made.people.read_bytes()
    made.people.write_bytes(data.replace(b'"Bo Chan"', b'"Bob Chance"'))
    problem = made.expect(
        "history",
        grade="warning",
        exactly="F-2 is Bob Chance (floor) in the file; by the history Bo Chan (floor), "
        "since 2027-01-15T08:00:00Z, by Ann Lee and Bo Chan",
    )
    assert problem.mend.startswith("ask the people who are named there")
    made.people.write_bytes(data)
    made.people.with_name("people.json.history.jsonl").unlink()
    assert "history.jsonl is missing" in made.problem("history").what


def test_of_a_whole_house_without_a_history_a_few_are_told(made: House) -> None:
    put(made.people.with_name("people.json.history.jsonl"), b"")
    problems = made.check("history").problems
    assert (len(problems), problems[-1].what) == (6, "and 4 more like that")


def _only(made: House, *who: str) -> None:
    every = {
        "D-17": person("D-17", "Ann Lee", ("dealer",)),
        "F-2": person("F-2", "Bo Chan", ("floor",)),
        "F-9": person("F-9", "Ann Lee", ("dealer", "floor")),
        "X-1": person("X-1", "Hal Gone", ("dealer", "floor"), gone=True),
        "T-1": person("T-1", "Eve Pond", ("technician",)),
    }
    put(made.people, people_bytes(People(KEY, tuple(every[badge] for badge in who))))


@pytest.mark.parametrize(("who", "role"), [(("F-2", "X-1"), "dealer"), (("D-17", "X-1"), "floor")])
def test_somebody_who_is_missing_is_added(made: House, who: tuple[str, ...], role: str) -> None:
    _only(made, *who)
    made.expect("roles", exactly=f"no enabled person is {role}")
    add_dee(made)
    assert "1 dealer, 1 floor" in made.check("roles").note


@pytest.mark.parametrize("who", [("F-9",), ("F-9", "D-17"), ("F-9", "T-1", "X-1")])
def test_two_badges_of_one_person_are_no_two_people(made: House, who: tuple[str, ...]) -> None:
    _only(made, *who)
    assert "only Ann Lee can act where two people must" in made.problem("roles").what


def test_a_second_person_is_added(made: House) -> None:
    _only(made, "F-9")
    add_dee(made)


def test_a_badge_that_is_proposed_is_nobodys(made: House) -> None:
    one = person("D-1", "Hal Gone", ("dealer",), gone=True)
    put(made.people, people_bytes(People(KEY, (one, person("F-2", "Bo Chan", ("floor",))))))
    assert " people add D-2 " in made.check("roles").problems[0].commands[0]


def add_dee(made: House) -> None:
    """As the command says, with her name and PIN."""
    put(made.place / "pin", f"{PINS['S-1']}\n".encode())
    made.mend("roles", f"{TWO} --pin-fd 3 3< {made.place / 'pin'}", said="Dee Faro\n")
