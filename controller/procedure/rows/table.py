"""Opening and closing the table, and the step after a round."""

from __future__ import annotations

from msgspec.structs import replace

from controller.procedure.model.effects import BankCounted, Effect
from controller.procedure.model.events import Go, TableClosed, TableOpened
from controller.procedure.model.felt import second_person
from controller.procedure.model.game import Game
from controller.procedure.model.row import Refusal, Row
from controller.procedure.model.state import OPEN, Shoe, State, Step
from controller.rules.option_constraints import MAX_MONEY

BETWEEN = (Step.SHUFFLE_NEEDED, Step.SHUFFLING, Step.LOADING, Step.BURNING, Step.WAGERING)


# Opening and closing


def _counted_twice(e: TableOpened | TableClosed) -> bool:
    same = e.counted_again in (None, e.bank)
    return second_person(e, e.second) and same and 0 <= e.bank <= MAX_MONEY


def _bank(g: Game, s: State, e: TableOpened | TableClosed, after: State) -> tuple[Effect, ...]:
    return (BankCounted(e.bank, e.actor.name, e.second.name if e.second else ""),)


def _opens(g: Game, s: State, e: TableOpened) -> bool:
    return _counted_twice(e)


def shut(s: State) -> State:
    """Returns the closed state: it keeps the round's number, lost devices and bad decks."""
    return State(round=s.round, lost=s.lost, shoe=Shoe(decks_out=s.shoe.decks_out))


def _opened(g: Game, s: State, e: TableOpened) -> State:
    return shut(s)


def _closes(g: Game, s: State, e: TableClosed) -> bool:
    return _counted_twice(e) and not s.seats


def _closed(g: Game, s: State, e: TableClosed) -> State:
    return shut(s)


def _close_later(g: Game, s: State, e: TableClosed) -> bool:
    return _counted_twice(e)


def _closing(g: Game, s: State, e: TableClosed) -> State:
    return replace(s, closing=True)


# The next round


def shoe_is_out(g: Game, s: State) -> bool:
    most = g.options.shuffle.max_rounds
    return s.shoe.rounds_left == 0 or (most is not None and s.shoe.rounds >= most)


def _must_close(g: Game, s: State, e: Go) -> bool:
    return s.closing


def _must_shuffle(g: Game, s: State, e: Go) -> bool:
    return not s.closing and (shoe_is_out(g, s) or not s.shoe.loaded)


def another_round(g: Game, s: State) -> bool:
    """Whether another round follows: the shoe has one left and no close was requested."""
    return not s.closing and s.shoe.loaded and not shoe_is_out(g, s)


def _another_round(g: Game, s: State, e: Go) -> bool:
    return another_round(g, s) and "shoe" not in s.lost


def fresh_felt(s: State) -> State:
    """Returns the state without the last round: its number, the shoe and the spare card remain."""
    spare = None if s.spare is None or s.spare.exposed else s.spare
    return State(
        round=s.round,
        shoe=s.shoe,
        seen=s.seen,
        lost=s.lost,
        closing=s.closing,
        spare=spare,
    )


def _next(g: Game, s: State, e: Go) -> State:
    return fresh_felt(s)


def _shut(g: Game, s: State, e: Go) -> State:
    return shut(s)


ROWS = (
    Row(
        "open_table",
        (Step.CLOSED,),
        TableOpened,
        Step.SHUFFLE_NEEDED,
        "The floor opens the table with a second person; cards are shuffled before anything else.",
        when=_opens,
        do=_opened,
        effects=_bank,
        why="the floor opens a table, with a second person who counts the same bank",
    ),
    Row(
        "close_table",
        (*BETWEEN,),
        TableClosed,
        Step.CLOSED,
        "With no wager on the felt the floor closes the table with a second person.",
        when=_closes,
        do=_closed,
        effects=_bank,
        why="the floor closes a table with a second person, and not over a wager on the felt",
    ),
    *(
        Row(
            f"close_after_round_at_{step.value}",
            (step,),
            TableClosed,
            step,
            "The table closes when the round is over.",
            when=_close_later,
            do=_closing,
            effects=_bank,
            why="the floor closes a table, with a second person who counts the same bank",
        )
        for step in OPEN
        if step not in BETWEEN
    ),
    Row(
        "next_round",
        (Step.NEXT_ROUND,),
        Go,
        Step.WAGERING,
        "Wagers may be placed for the next round.",
        when=_another_round,
        do=_next,
    ),
    Row(
        "close_now",
        (Step.NEXT_ROUND,),
        Go,
        Step.CLOSED,
        "The round is over and the table closes.",
        when=_must_close,
        do=_shut,
    ),
    Row(
        "shuffle_now",
        (Step.NEXT_ROUND,),
        Go,
        Step.SHUFFLE_NEEDED,
        "The shoe has dealt its last round: shuffle.",
        when=_must_shuffle,
        do=_next,
    ),
)


REFUSALS = (
    Refusal("already_open", OPEN, TableOpened, "the table is open"),
    Refusal("table_closed_already", (Step.CLOSED,), TableClosed, "the table is closed"),
)
