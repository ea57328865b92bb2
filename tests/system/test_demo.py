"""`holecard demo`: whole tables, looked on at; what it shows and keeps, and how it ends."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from controller.audit.verify import verify
from controller.cli import main
from controller.commands import run
from controller.config import load_table
from controller.procedure.model.effects import Prompt, Tell
from controller.procedure.prompts import MoneyFormat
from hil.simulator import exclusive_use
from hil.table.demo import cli
from hil.table.demo.demo import (
    MISHAPS,
    TABLES,
    Demo,
    Plan,
    people_text,
    same_standing_bets,
    sum_up,
    summary_table,
)
from hil.table.demo.terminal import Tally, pause_before, screen_for
from hil.table.robots import SeatClaims
from hil.table.setup import DEALER, GUEST, STAFF_AND_VISITORS, example
from hil.table.setup.house import SHOE, House
from tests.support.paths import ROOT

ESCAPE = "\x1b"


def demo(*arguments: str) -> int:
    return run(["demo", *arguments], cli.register)


class Kept(NamedTuple):
    """The folder of a demo, and what it has shown."""

    folder: Path
    code: int
    out: str
    err: str


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """The demo of the README. What is shown later in its folder continues its record."""
    readme = (ROOT / "README.md").read_text("utf-8")
    words = re.findall(r"^holecard (demo [^#\n]*)", readme, re.MULTILINE)[0].split()
    folder = tmp_path_factory.mktemp("demo") / "kept"
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = main([*words, "--dir", str(folder)])
    return Kept(folder, code, out.getvalue(), err.getvalue())


@pytest.mark.timeout(200)
def test_a_demo_is_dealt_by_the_daemon_and_kept(kept: Kept) -> None:
    assert (kept.code, kept.err) == (0, "")
    assert ESCAPE not in kept.out
    order = [
        "Floor: open the table - count the bank with a second person",
        "Shuffle 6 decks",
        "Wait for the shuffle of 6 decks",
        "Cut, and load the shoe - 312 cards",
        "Burn 1 card",
        "seat 1: $",
        "seat 4: $",
        "4 seats in, the first card locks them",
        "Deal seat 4, first card",
        "Deal the dealer's up card, face up",
        "Deal the hole card, face down -> face down",
        "##",
        "Turn the hole card over",
        "Pick up the cards",
        "the dealer calls a misdeal",
        "All rounds",
        "holecard audit verify:",
        "RIGHT",
    ]
    places = [kept.out.index(line) for line in order]
    assert places == sorted(places)
    assert "wrong:" not in kept.out
    report = verify(kept.folder / "record")
    assert (report.findings, report.code) == ((), 0)


@pytest.mark.timeout(200)
def test_a_demo_continues_the_record_of_its_folder(
    kept: Kept, capsys: pytest.CaptureFixture[str]
) -> None:
    before = verify(kept.folder / "record")
    assert demo("--game", "sf21x", "--rounds", "1", "--json", "--dir", str(kept.folder)) == 0
    out, err = capsys.readouterr()
    assert err == ""
    told: dict[str, Any] = json.loads(out)
    (game,) = told["games"]
    assert (game["table"], game["rounds"], told["interrupted"]) == ("Super Fun 1", 1, False)
    assert game["rounds_an_hour"] > 0
    assert game["wagers"] > 0
    assert (told["verify"]["exit"], told["verify"]["boots"]) == (0, before.boots + 1)
    assert told["verify"]["records"] > before.records


@pytest.mark.timeout(200)
def test_nothing_tells_of_the_hole_card_before_it_is_turned(
    kept: Kept, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of one deck each card is there once, so its name would give it away."""
    shown = ["--game", "maxtime", "--rounds", "2", "--seats", "3", "--dir", str(kept.folder)]
    assert demo(*shown) == 0
    out, err = capsys.readouterr()
    assert err == ""
    before, *rounds = re.split(r"Turn the hole card over -> (\S+)", out)
    assert len(rounds) == 2 * 2
    for card, after in zip(rounds[::2], rounds[1::2], strict=True):
        shoe = before.rpartition("Cut, and load the shoe")[2]
        assert "##" in shoe
        assert re.search(r"\b10[CDHS]\b|\b[2-9AJQK][CDHS]\b", shoe)
        assert not re.search(rf"\b{card}\b", shoe)
        assert card in after
        before += card + after


@contextmanager
def on_a_terminal(*arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    controlling, terminal = os.openpty()
    program = [sys.executable, "-m", "hil.table", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        program, stdin=terminal, stdout=terminal, stderr=subprocess.PIPE, env=environment
    ) as child:
        os.close(terminal)
        try:
            yield child, controlling
        finally:
            child.terminate()
            child.wait(60)
            os.close(controlling)


def read(descriptor: int, until: str = "") -> str:
    """What a terminal shows, up to these words or until its program is gone."""
    text = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (until and until.encode() in text):
        try:
            part = os.read(descriptor, 65536)
        except OSError:  # a terminal whose other end is closed
            break
        text += part
    return text.decode(errors="replace")


def served_from(folder: Path) -> list[int]:
    """The processes whose command names this folder."""
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = command.read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        if b"serve" in words and any(str(folder).encode() in word for word in words):
            found.append(int(command.parent.name))
    return found


@pytest.mark.timeout(200)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_an_interrupt_ends_it_with_the_summary_so_far(number: signal.Signals, kept: Kept) -> None:
    """In the middle of a round: the picture stays, the record is right, no process is left."""
    arguments = ("--game", "mega", "--speed", "10", "--dir", str(kept.folder))
    with on_a_terminal(*arguments) as (child, controlling):
        text = read(controlling, "Deal seat 2, first card")
        assert len(served_from(kept.folder)) == 1
        child.send_signal(number)
        text += read(controlling)
        _, complaint = child.communicate(timeout=60)
    assert complaint == b""
    assert child.returncode == 130
    for told in (
        "Bench page",
        "Dealer's console",
        "Review",
        *(one.pin for one in STAFF_AND_VISITORS),
    ):
        assert told in text
    assert f"{ESCAPE}[?25l" in text
    assert text.rindex(f"{ESCAPE}[?25h") > text.rindex(f"{ESCAPE}[?25l")  # the cursor is back
    summary = text.partition("Interrupted: the rounds so far")[2]
    assert "Mega 1" in summary
    assert "RIGHT" in summary
    assert served_from(kept.folder) == []


@pytest.mark.timeout(200)
def test_a_record_that_is_damaged_is_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message is not from the log of the former daemon."""
    house = House(tmp_path / "house")
    house.make()
    segments = house.record / "segments"
    segments.mkdir(parents=True)
    (segments / "00000001.seg").write_bytes(bytes(4096))
    (tmp_path / "house" / "daemon.log").write_text('{"event": "of yesterday"}\n')
    assert demo("--game", "classic", "--rounds", "1", "--dir", str(tmp_path / "house")) == 1
    out, err = capsys.readouterr()
    assert "00000001.seg" in err
    assert not [word for word in ("of yesterday", '{"', "RIGHT") if word in out + err]


def test_two_demos_do_not_share_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    house = House(tmp_path / "house")
    house.make()
    with exclusive_use(house.place(SHOE)):
        assert demo("--game", "mega", "--dir", str(tmp_path / "house")) == 2
    out, err = capsys.readouterr()
    assert "All rounds" not in out
    assert "SH-1: is in use: no device can be simulated there" in err


def test_a_folder_that_others_may_write_to_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    assert demo("--dir", str(folder)) == 2
    assert "others may write there" in capsys.readouterr().err
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("--game", "poker", "choose from"),
        ("--rounds", "0", "1 to 1000"),
        ("--rounds", "1e3", "1 to 1000"),
        ("--seats", "8", "1 to 7"),
        ("--seed", "-1", "0 to "),
        ("--seed", "9" * 5000, "0 to "),
        ("--speed", "0", "0.1 to 1000, or fast"),
        ("--speed", "nan", "0.1 to 1000, or fast"),
        ("--speed", "slow", "0.1 to 1000, or fast"),
        ("--page-port", "65536", "0 to 65535"),
    ],
)
def test_a_wrong_argument_says_what_is_allowed(
    capsys: pytest.CaptureFixture[str], option: str, value: str, allowed: str
) -> None:
    assert demo(f"{option}={value}") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert allowed in err


def test_the_command_is_announced(capsys: pytest.CaptureFixture[str]) -> None:
    """By its entry point, for the controller knows nothing of it."""
    assert main(["demo", "--help"]) == 0
    assert "seven stations are simulated" in capsys.readouterr().out


def test_every_game_has_its_table() -> None:
    assert set(TABLES) == set(cli.GAMES)
    assert [load_table(table).sheet.name for table in TABLES.values()] == list(TABLES)


def test_what_goes_wrong_fits_only_where_it_can() -> None:
    assert MISHAPS["classic"].fits(Prompt(Tell.DEAL, seat=3, count=2))
    assert not MISHAPS["classic"].fits(Prompt(Tell.DEAL, place="hole", count=2))
    assert MISHAPS["sf21x"].fits(Prompt(Tell.DECIDE, seat=3))
    assert not MISHAPS["sf21x"].fits(Prompt(Tell.DEAL, seat=3, count=2))


# --- people at it ------------------------------------------------------------------------------


class At(NamedTuple):
    """A robot, and how many look at the bench page."""

    deals: bool = True
    alone: bool = True
    viewers: int = 0


BOTH = ("mega", "classic")


@pytest.mark.parametrize(
    ("games", "rounds", "played", "at", "next_game", "over"),
    [
        (BOTH, 2, 1, At(), False, False),
        (BOTH, 2, 2, At(), False, True),
        (BOTH, 2, 5, At(deals=False, alone=False), False, False),
        (BOTH, None, 2, At(), False, False),
        (BOTH, None, 3, At(), False, True),
        (("mega",), None, 500, At(), False, False),
        (BOTH, None, 9, At(alone=False), False, False),
        (BOTH, None, 9, At(viewers=1), False, False),
        (BOTH, None, 1, At(alone=False, viewers=1), True, True),
        (BOTH, None, 9, At(deals=False, alone=False), True, False),
    ],
)
def test_a_game_is_over_when_nobody_wants_to_go_on(
    games: tuple[str, ...],
    rounds: int | None,
    played: int,
    at: At,
    next_game: bool,
    over: bool,
    tmp_path: Path,
) -> None:
    plan = Plan(games, rounds, 4, 1, 1.0, 0)
    demo = Demo(plan, screen_for(io.StringIO(), plain=True), tmp_path)
    demo.claims.next_game = next_game
    found: Any = at
    assert demo.is_over(played, found, found) is over


def test_who_deals_and_who_sits_is_told() -> None:
    claims = SeatClaims(4)
    robot: Any = SimpleNamespace(dealer=SimpleNamespace(badge=DEALER.badge, name=DEALER.name))
    guest: Any = SimpleNamespace(dealer=SimpleNamespace(badge=GUEST.badge, name=GUEST.name))
    nobody: Any = SimpleNamespace(dealer=None)
    assert people_text(claims, robot) == "Ann Lee deals (robot)"
    claims.take(5)
    claims.take(2)
    assert people_text(claims, guest) == "Di Park deals - people at seat 2, 5"
    claims.trouble = "cards are stuck"
    assert people_text(claims, nobody).endswith("- waiting: cards are stuck")


@pytest.mark.parametrize("table", TABLES.values())
def test_each_seat_of_a_demo_has_a_standing_wager(table: str) -> None:
    usual = example(table).standing["1"]
    assert same_standing_bets(example(table)).standing == {str(seat): usual for seat in range(1, 8)}
    bare = replace(example(table), standing={})
    assert same_standing_bets(bare) == bare


# --- screens -----------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "plain", "quiet", "moving", "watched"),
    [
        (Terminal(), False, False, True, True),
        (Terminal(), True, False, False, True),
        (Terminal(), False, True, False, False),
        (io.StringIO(), False, False, False, False),
    ],
)
def test_a_picture_moves_where_somebody_can_see_it(
    stream: io.StringIO,
    plain: bool,
    quiet: bool,
    moving: bool,
    watched: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    screen = screen_for(stream, plain=plain, quiet=quiet)
    assert (screen.moving, screen.watched) == (moving, watched)
    screen.line("a line")
    assert stream.getvalue() == ("" if quiet else "a line\n")


@pytest.mark.parametrize("columns", [12, 30, 48, 72, 80, 140])
def test_no_money_of_the_summary_is_cut_off(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    screen = screen_for(stream, plain=True)
    tally = Tally("Blackjack 1", MoneyFormat(), rounds=7, seconds=10.0)
    tally.wagers, tally.paid, tally.tokes, tally.for_dealers = 123456789, 98765432, 25000, 31500
    sum_up(screen, summary_table([tally, tally], interrupted=False))
    shown = stream.getvalue()
    assert "\N{HORIZONTAL ELLIPSIS}" not in shown
    for words in ("Blackjack 1", "2520", "$1,234,567.89", "$987,654.32", "$246,913.57", "$315"):
        assert shown.replace("\n", "").count(words) == 2, words
    assert all(len(line) <= columns for line in shown.splitlines()) or columns < 30


def test_a_dumb_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert not screen_for(Terminal(), plain=False).moving


def test_rulings_stand_longer_than_cards() -> None:
    assert pause_before(Tell.RULE) > pause_before(Tell.PAY) > pause_before(Tell.DEAL) > 0
