"""Records scripted rounds, and many simulated rounds to fill a record quickly."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Final

from controller.audit.files import Disk
from controller.audit.format.segments import SIZE
from controller.audit.keys import (
    Role,
    create_key,
    key_file,
    load_hole_key,
    load_surveillance_public,
    load_table_private,
)
from controller.audit.log import Clock, RecordOpening
from controller.audit.simulate.recorder import MAX_TOGETHER, Keyring, Recorder, RecorderKeys
from controller.commands import say
from controller.errors import UsageProblem
from controller.games import player, wagering
from controller.procedure.engine import Procedure
from controller.procedure.model.events import WagerPlaced
from controller.procedure.model.game import Game
from controller.procedure.model.row import Decision
from controller.procedure.model.state import State, Step
from controller.rules.cards import DECK, NAMES, Card
from controller.rules.hands import total_of
from controller.sim.play import POLICIES, Play, PlaySetup, Strategy, stakes_for
from controller.sim.scripts import (
    ENGINE,
    RoundResult,
    RoundWatcher,
    Script,
    ScriptAction,
    ScriptRound,
    ScriptSeat,
    ScriptStart,
    play_at,
    run_rounds,
    run_scripts,
    usable,
)
from controller.terminal import usage_errors
from drivers.keys import path_exists

SCRIPTS: Final = "scripts"
"""The table name of scripted rounds."""
SCRIPTS_SIZE: Final = 1024 * 1024
"""Segment size for scripts: each change of game is a boot, which reads the last segment."""
PAR: Final = "par"
_SEAT: Final = 1
_SEATS: Final = 5
_UP: Final = range(7, 10)
"""Values of up cards after which no insurance is offered."""
_STANDS: Final = range(17, 21)
"""Totals on which every dealer stands."""
_PLAYED: Final = range(12, 21)
"""Totals of a hand that may stand and is no blackjack."""


# --- scripts ----------------------------------------------------------------------------------


def play_recorded(
    recorder: Recorder, scripted: ScriptRound, watch: RoundWatcher | None, procedure: Procedure
) -> RoundResult:
    """Play a scripted round into the record, from a shuffle on. Raises RecordProblem,
    UsageProblem.

    If the script is not the first of its shuffle, a plain round is dealt before it. A round that
    the script leaves open is ended before the next one.
    """
    recorder.begin(procedure)
    recorder.fresh_shoe()
    if not scripted.script.first_round_of_shuffle:
        _play_plain(recorder, scripted, procedure)
    return play_at(ScriptStart(recorder, recorder.state, recorder.vault), scripted, watch)


def check_recordable(scripted: ScriptRound, procedure: Procedure) -> None:
    """Raise UsageProblem if a script needs a plain round before it that cannot be dealt."""
    if scripted.script.first_round_of_shuffle:
        return
    if procedure.game.options.shuffle.max_rounds == 1:
        raise UsageProblem(
            f"{scripted.where}: first_round_of_shuffle",
            "this game shuffles after every round",
            "true",
        )
    plain_round(scripted, procedure)


def plain_round(scripted: ScriptRound, procedure: Procedure) -> ScriptRound:
    """The round before a script's: player and dealer stand, with cards that the script does not
    use. Raises UsageProblem if there are none, or no wager is accepted."""
    where = f"{scripted.where}: first_round_of_shuffle"
    left = Counter(DECK * procedure.game.decks) - Counter(scripted.cards)
    cards = next(_plain_cards(left), None)
    if cards is None:
        raise UsageProblem(where, "the script leaves no cards for a round before it", "true")
    amount = _plain_wager(scripted.script, procedure)
    if amount is None:
        raise UsageProblem(where, "no wager is taken in a round before it", "true")
    return ScriptRound(
        Script(
            f"before {scripted.script.id}",
            scripted.script.game,
            [ScriptSeat(_SEAT, {"main": amount})],
            [NAMES[card] for card in cards],
            actions=[ScriptAction("play", _SEAT, "stand", 0)],
        ),
        cards,
        where,
    )


def _play_plain(recorder: Recorder, scripted: ScriptRound, procedure: Procedure) -> None:
    plain = plain_round(scripted, procedure)
    result = play_at(ScriptStart(recorder, recorder.state, recorder.vault), plain)
    if not result.ok or recorder.state.step is not Step.WAGERING:
        raise UsageProblem(plain.where, f"no round can stand before it: {result.failures}", "true")


def _plain_cards(left: Counter[Card]) -> Iterator[tuple[Card, ...]]:
    """First card, up card, second card, hole card with which standing is the only decision."""
    for up, hole in _pairs(sorted(left), left):
        if total_of((up,))[0] not in _UP or not _hard(up, hole, _STANDS):
            continue
        rest = left - Counter((up, hole))
        for first, second in _pairs(sorted(rest), rest):
            if _hard(first, second, _PLAYED):
                yield first, up, second, hole


def _pairs(cards: list[Card], left: Counter[Card]) -> Iterator[tuple[Card, Card]]:
    for one, other in combinations(cards, 2):
        yield one, other
        yield other, one
    yield from ((card, card) for card in cards if left[card] > 1)


def _hard(one: Card, other: Card, totals: range) -> bool:
    total, soft = total_of((one, other))
    return not soft and total in totals


def _plain_wager(script: Script, procedure: Procedure) -> int | None:
    """An accepted main wager: one of the script's, or the minimum."""
    limit, unit = procedure.game.limits["main"], procedure.game.money.unit
    least = limit.min or limit.step or unit
    for amount in (
        *(seat.bets.get("main", 0) for seat in script.seats),
        least,
        -(-least // unit) * unit,
    ):
        wager = WagerPlaced(player(_SEAT), _SEAT, "main", amount)
        if isinstance(procedure.step(wagering(), wager), Decision):
            return amount
    return None


# --- simulated rounds -------------------------------------------------------------------------


def record_par(  # noqa: PLR0913 - all but the first four have a usual value
    place: Path,
    game: Game,
    rounds: int,
    keyring: Keyring,
    *,
    seed: int = 1,
    seats: int = _SEATS,
    strategy: Strategy = POLICIES["mimic"],
    table: str = PAR,
    size: int = SIZE,
    disk: Disk | None = None,
    clock: Clock | None = None,
) -> int:
    """Record rounds of a game, from a shuffle to the cut card each time; returns the seq of the
    last record. Many records share a sync and a checkpoint. Raises RecordProblem."""
    recorder = Recorder(
        place, table, keyring, size=size, disk=disk, clock=clock, together=MAX_TOGETHER
    )
    with recorder:
        recorder.begin(Procedure(game))
        recorder.close_table()
        begun: State = recorder.state
        setup = PlaySetup(seats, stakes_for(game, side=True), cut=True)
        play = Play(
            recorder, strategy, setup, Random(seed).random, vault=recorder.vault, start=begun
        )
        for _ in range(rounds):
            play.round()
    return recorder.seq


DEMO_KEYS: Final = "keys"
_ROLES: Final[tuple[Role, ...]] = ("table", "hole", "surveillance")
_DEMO: Final = (
    "{place}: demo keys, beside the record that they sign: who can read them can write "
    "it anew. Keys that prove something are made by: holecard keys new"
)


def play(args: argparse.Namespace) -> int:
    """Play every round of the files; with --record, into a record."""
    if args.record is None:
        if args.keys is not None:
            raise UsageProblem("--keys", "nothing is recorded", "--record DIR beside it")
        return run_scripts(args)
    if args.over != ENGINE:
        raise UsageProblem(
            "--record", f"--over {args.over} keeps a record of its own", f"--over {ENGINE}"
        )
    for option, value in (("--record", args.record), ("--keys", args.keys)):
        if value is not None and (not value or "\0" in value):
            raise UsageProblem(option, "is no directory's name", "a directory")
    return _record(args, Path(args.record))


def _record(args: argparse.Namespace, place: Path) -> int:
    rounds = usable(args.files)
    for scripted, procedure in rounds:
        check_recordable(scripted, procedure)

    recorder = Recorder(place, SCRIPTS, _Keyring(place, args.keys), size=SCRIPTS_SIZE)
    recorder.on_warning = say

    try:
        with recorder:
            return run_rounds(args, rounds, partial(play_recorded, recorder))
    finally:  # also if the disk is full, or the user has interrupted it
        if recorder.seq:
            say(f"{place}: recorded, the last record is {recorder.seq}")


class _Keyring:
    """The keys of --keys, or demo keys beside the record; the same ones for every boot."""

    def __init__(self, place: Path, given: str | None) -> None:
        self._demo = given is None
        self._directory = place / DEMO_KEYS if given is None else Path(given)
        self._keys: RecorderKeys | None = None

    def __call__(self, opening: RecordOpening) -> RecorderKeys:
        if self._keys is None:
            with usage_errors():
                if self._demo:
                    self._make_missing(begun=opening.snapshot is not None)
                self._keys = RecorderKeys(
                    load_table_private(self._directory),
                    load_hole_key(self._directory),
                    load_surveillance_public(self._directory),
                )
        return self._keys

    def _make_missing(self, *, begun: bool) -> None:
        place = self._directory
        missing = [role for role in _ROLES if not path_exists(key_file(place, role))]
        if missing and begun:
            raise UsageProblem(
                "--keys",
                f"the record was begun with other keys than demo keys: {place} has none",
                "the directory of the keys that it was begun with",
            )
        for role in missing:
            create_key(place, role)
        say(_DEMO.format(place=place))
