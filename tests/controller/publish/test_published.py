"""`holecard procedure`: the words and the picture are those of the rows that run the table."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from controller.cli import main
from controller.config import files
from controller.errors import UsageProblem
from controller.procedure.engine import EVENTS, REFUSALS, rows_of
from controller.procedure.engine.dispatch import ROWS
from controller.procedure.model.state import Step
from controller.publish import EVENTS as EVENT_WORDS
from controller.publish import command, pages
from controller.publish import rows as publish
from controller.publish.diagram import LEFT_OUT, diagram
from controller.publish.guards import CONDITIONS, condition_of
from controller.publish.rows import RowFamily, families
from controller.publish.terms import AFTER_RULINGS, STEPS, Part, part_of, steps_words
from tests.support.commands import Says
from tests.support.paths import ROOT

GAMES = tuple(files.installed("game"))
EVERYTHING = publish.load("sf21x", {"double.natural": True, "even_money.offered": False})
_BOX = re.compile(r'  state "([^"]+)" as (\w+)')
_STYLE = re.compile(r"  Class (\w+) s_(waits|passes)")
_ARROW = re.compile(r"  (\w+|\[\*\]) --> (\w+)(?:: (.+))?")


def _families(game: str) -> list[RowFamily]:
    return list(families(rows_of(publish.load(game).game)))


# --- words ------------------------------------------------------------------------------------


def test_every_step_and_event_has_words() -> None:
    assert set(STEPS) == set(Step)
    words = [each.words for each in STEPS.values()]
    assert len(set(words)) == len(words)
    assert {event.__name__ for event in EVENTS} | {"Go"} == set(EVENT_WORDS)


def test_every_guard_has_words_and_all_words_have_a_guard() -> None:
    used, silent = set(), []
    for family in families(ROWS):
        row = family.one
        if row.when is not None and not condition_of(row.id, family.id):
            silent.append(family.id)
        if row.when is None and condition_of(row.id, family.id):
            silent.append(f"{family.id} has no guard")
        used |= {row.id, family.id}
    assert not silent, "say in controller/publish/guards.py when these rows fire"
    assert not set(CONDITIONS) - used
    assert not AFTER_RULINGS - used


@pytest.mark.parametrize("game", GAMES)
def test_no_row_of_the_game_is_left_out(game: str) -> None:
    rows = rows_of(publish.load(game).game)
    shown = {row.id for family in families(rows) for row in family.rows}
    # No game lets a dealt blackjack be doubled: nobody comes to the step that asks for it.
    assert {row.id for row in rows} - shown == {
        row.id for row in rows if {*row.at, row.to} & {Step.NATURALS} and len(row.at) == 1
    }


def test_with_every_option_on_every_row_is_shown() -> None:
    rows = rows_of(EVERYTHING.game)
    assert {row.id for row in rows} == {row.id for each in families(rows) for row in each.rows}


def test_rows_that_say_the_same_at_many_steps_are_one_line() -> None:
    of = {(family.id, family.one.id): family for family in _families("classic")}
    cut = of["cut_card_at_*", "cut_card_at_burning"]
    assert len(cut.rows) == len(cut.steps) > 10
    assert of["second_card_at_wagering", "second_card_at_wagering"].rows[0].at == (Step.WAGERING,)
    assert len([family for family in of.values() if family.id.startswith("resume_")]) == 1


def test_sets_of_steps_read_as_people_say_them() -> None:
    every = frozenset(Step)
    of_round = next(row for row in ROWS if row.id == "void_round").at
    but_check = [step for step in of_round if step is not Step.CHECK]
    two = [Step.TURN, Step.CHECK]
    for steps, among, words in (
        (of_round, every, "every step of a round"),
        (but_check, every, "every step of a round except hole card to be checked"),
        (two, every, "hole card to be checked, hand in turn"),
        (two, frozenset({Step.TURN}), "hand in turn"),
    ):
        assert steps_words(steps, among) == words


@pytest.mark.parametrize("game", GAMES)
def test_the_page_goes_in_the_order_of_play(game: str) -> None:
    page = publish.page(publish.load(game))
    assert [chapter.title for chapter in page.chapters] == [part.value for part in Part]
    told = [entry.id for chapter in page.chapters for entry in chapter.entries]
    order = [
        *("open_table", "load_and_burn", "place_wager", "first_card", "deal_card", "deal_hole"),
        *("pay_with_deal", "open_insurance", "no_dealer_blackjack", "settle_after_check"),
        *("turn_to_hand", "double", "busts", "reveal_hole", "dealer_must_draw", "settle"),
        *("pay", "clear", "next_round", "void_round", "floor_decides", "resume_*"),
    ]
    assert sorted(order, key=told.index) == order


def test_plain_text_quotes_each_row_with_its_clauses(said: Says) -> None:
    out = said(main(["procedure", "mega"])).out
    lines = out.splitlines()
    assert max(map(len, lines)) <= 100
    for family in _families("mega"):
        assert family.id in lines
    text = " ".join(out.split())
    for row in rows_of(publish.load("mega").game):
        for clause in row.rule:
            if clause.startswith("mega."):
                sentence = " ".join(publish.load("mega").sheet.clauses[clause].split())
                assert f"{clause}: {sentence}" in text
    assert "maxtime." not in out


def test_what_is_set_is_what_is_shown(said: Says) -> None:
    before = said(main(["procedure", "sf21x", "--json"])).json
    settings = ["--set", "blackjack.tie=push", "--set", "surrender.when=never"]
    after = said(main(["procedure", "sf21x", "--json", *settings])).json
    tie = next(each for each in before["settings"] if each["path"] == "blackjack.tie")
    assert tie["value"] == "player_wins"
    assert "sf21x.4a" in [clause["id"] for clause in tie["clauses"]]
    now = {setting["path"]: setting for setting in after["settings"]}
    assert (now["blackjack.tie"]["value"], now["blackjack.tie"]["clauses"]) == ("push", [])
    for shown, count in ((before, 1), (after, 0)):
        ids = [entry["id"] for chapter in shown["chapters"] for entry in chapter["entries"]]
        assert ids.count("surrender") == count


def test_a_table_file_is_shown_under_its_own_jurisdiction(tmp_path: Path, said: Says) -> None:
    table = tmp_path / "t.toml"
    table.write_text('schema = 1\n[table]\nname = "t"\ngame = "classic"\njurisdiction = "strict"\n')
    assert said(main(["procedure", str(table), "--markdown"])).told(
        "Jurisdiction: Strict house (house rules; no published text).", "| `burn.on_shuffle` | 3 |"
    )


# --- Markdown ---------------------------------------------------------------------------------


@pytest.mark.parametrize("game", GAMES)
def test_the_page_is_sound_markdown(game: str) -> None:
    lines = command.fresh(game).splitlines()
    fences = [number for number, line in enumerate(lines) if line.startswith("```")]
    assert len(fences) == 2
    assert lines[fences[0]] == "```mermaid"
    wide = 0
    for number, line in enumerate(lines):
        if line.startswith("|"):
            columns = len(re.findall(r"(?<!\\)\|", line))
            assert columns == (wide or columns), line
            wide = columns
        else:
            wide = 0
        if line.startswith("#") and number:
            assert lines[number - 1] == ""
    assert "{" not in "\n".join(lines[: fences[0]] + lines[fences[1] :])
    titles = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    assert [line.partition("]")[0][3:] for line in lines if line.startswith("- [")] == titles


def test_the_page_has_each_refusal_and_option() -> None:
    page = command.fresh("classic")
    published = publish.load("classic")
    for refusal in REFUSALS:
        if refusal.at != (Step.NATURALS,):
            assert f"| `{refusal.id}` |" in page
    for path in published.sheet.origin:
        assert f"`{path}`" in page or path.startswith(("limits", "instant", "bonus", "chips"))


def test_other_peoples_text_is_no_markup() -> None:
    assert pages.escaped("a *b* _c_ <d> | [e] `f` \\") == (
        r"a \*b\* \_c\_ \<d\> \| \[e\] \`f\` " + "\\\\"
    )


# --- the picture ------------------------------------------------------------------------------


def _styled(line: str) -> str | None:
    found = _STYLE.fullmatch(line)
    return found and found[1]


@pytest.mark.parametrize("whole", [False, True], ids=["of play", "whole"])
@pytest.mark.parametrize("game", GAMES)
def test_the_diagram_has_the_rows_and_nothing_else(game: str, whole: bool) -> None:
    title, *lines = diagram(publish.load(game).game, whole=whole).splitlines()[1:]
    assert title.startswith('title: "')
    assert lines[:2] == ["---", "stateDiagram-v2"]
    boxes = [found for line in lines if (found := _BOX.fullmatch(line))]
    names = {box[2] for box in boxes}
    assert len(names) == len({box[1] for box in boxes}) == len(boxes)
    assert set(filter(None, (_styled(line) for line in lines))) == names
    arrows = [found for line in lines if (found := _ARROW.fullmatch(line))]
    assert {end for arrow in arrows for end in arrow.group(1, 2)} == names | {"[*]"}
    pairs = [(arrow[1], arrow[2]) for arrow in arrows]
    assert len(set(pairs)) == len(pairs)
    drawn = {row for arrow in arrows if arrow[3] for row in arrow[3].split(" | ")}
    play = {
        family.id
        for family in _families(game)
        if whole
        or not (family.id.endswith("*") or part_of(family.one) in (Part.IRREGULAR, Part.RULINGS))
    }
    assert drawn == play
    assert (f"  %% {LEFT_OUT}" in lines) is not whole
    known = len(boxes) * 2 + len(arrows)
    rest = [line for line in lines if line and not line.startswith(("---", "  %%"))]
    assert len(rest) - known == 4  # the kind, the direction, the two classes


def test_the_diagrams_arrows_are_the_rows() -> None:
    lines = diagram(publish.load("maxtime").game).splitlines()
    arrows = {
        "  wagering --> wagering: place_wager | remove_wager",
        "  turn --> paying: surrender",
        "  [*] --> closed",
    }
    assert arrows <= set(lines)
    assert not [line for line in lines if "naturals" in line]
    assert [line for line in diagram(EVERYTHING.game).splitlines() if "--> naturals" in line]


# --- the published pages ----------------------------------------------------------------------


def test_the_published_pages_are_fresh_whatever_the_process() -> None:
    """In a process of its own: nothing may hang on the order that objects have in memory."""
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-m", "controller.cli", "procedure", "--check"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (run.returncode, run.stderr) == (0, ""), run.stdout + run.stderr


def test_stale_pages_are_named_and_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Says
) -> None:
    monkeypatch.setattr(command, "folder", lambda: tmp_path / "procedures")
    assert said(main(["procedure", "--check"])) == (
        1,
        "".join(f"configs/procedures/{game}.md is missing\n" for game in GAMES),
        "write them anew with: holecard procedure --write\n",
    )
    assert main(["procedure", "--write"]) == 0
    assert said(main(["procedure", "--check"])).told("\nok: ")
    page = tmp_path / "procedures" / "mega.md"
    page.write_text(page.read_text("utf-8") + " ", "utf-8")
    (tmp_path / "procedures" / "faro.md").write_text("# Faro\n")
    (tmp_path / "procedures" / "notes.txt").write_text("kept\n")
    assert said(main(["procedure", "--check"]))[:2] == (
        1,
        "configs/procedures/mega.md is stale\nconfigs/procedures/faro.md is the page of no game\n",
    )
    assert main(["procedure", "--write"]) == 0
    assert main(["procedure", "--check"]) == 0
    assert (tmp_path / "procedures" / "notes.txt").is_file()


def test_pages_that_cannot_be_written_are_a_users_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Says
) -> None:
    monkeypatch.setattr(command, "folder", lambda: tmp_path / "no" / "such")
    assert said(main(["procedure", "--write"])).refused(
        "configs/procedures: cannot be written: no such file"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "GAME: is missing; allowed: classic, maxtime, mega, sf21x"),
        (["faro"], "game: there is no game 'faro'; allowed: classic, maxtime"),
        (["classic", "--whole"], "--whole: only a diagram can be drawn whole"),
        (["--check", "classic"], "--check: the published pages are those of our games"),
        (["--write", "--set", "decks=6"], "--write: the published pages are those of our games"),
        (["classic", "--set", "decks"], "--set: 'decks' sets nothing; allowed: PATH=VALUE"),
        (["classic", "--set", "decks=3"], "--set: decks: 3 is not valid here; allowed: 1, 2, 4"),
    ],
)
def test_mistakes_are_said_in_one_line(arguments: list[str], words: str, said: Says) -> None:
    assert said(main(["procedure", *arguments])).mistaken(f"holecard: {words}")


def test_a_jurisdiction_has_no_procedure(tmp_path: Path) -> None:
    path = tmp_path / "j.toml"
    path.write_text('schema = 1\n[jurisdiction]\nname = "j"\ntitle = "J"\n')
    with pytest.raises(UsageProblem, match=r"is the file of a jurisdiction"):
        publish.load(str(path))
