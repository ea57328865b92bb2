"""Opening and closing, the shuffle, the shoe and burning, and the cut card at any time."""

from __future__ import annotations

from msgspec.structs import replace

from controller.procedure.model.effects import BankCounted, Burned, Effect
from controller.procedure.model.events import (
    CardBurned,
    CutCardSeen,
    DecksChanged,
    Event,
    Go,
    ShoeLoaded,
    ShoeRanOut,
    ShuffleCalled,
    ShuffleDone,
    ShuffleStarted,
    TableClosed,
    TableOpened,
)
from controller.procedure.model.felt import name_of, second_person
from controller.procedure.model.game import Game
from controller.procedure.model.row import Refusal, Row
from controller.procedure.model.state import OPEN, Shoe, State, Step, elsewhere
from controller.rules.option_constraints import MAX_MONEY

BETWEEN = (Step.SHUFFLE_NEEDED, Step.SHUFFLING, Step.LOADING, Step.BURNING, Step.WAGERING)


# Opening and closing


def _counted_twice(g: Game, s: State, e: TableOpened | TableClosed) -> bool:
    same = e.counted_again in (None, e.bank)
    return second_person(e, e.second) and same and 0 <= e.bank <= MAX_MONEY


def _bank(g: Game, s: State, e: TableOpened | TableClosed, after: State) -> tuple[Effect, ...]:
    return (BankCounted(e.bank, e.actor.name, name_of(e.second)),)


def shut(s: State) -> State:
    """Returns the closed state: it keeps the round's number, lost devices and bad decks."""
    return State(round=s.round, lost=s.lost, shoe=Shoe(decks_out=s.shoe.decks_out))


def _closes(g: Game, s: State, e: TableClosed) -> bool:
    return _counted_twice(g, s, e) and not s.seats


# The next round


def shoe_is_out(g: Game, s: State) -> bool:
    most = g.options.shuffle.max_rounds
    return s.shoe.rounds_left == 0 or (most is not None and s.shoe.rounds >= most)


def another_round(g: Game, s: State) -> bool:
    """Whether another round follows: the shoe has one left and no close was requested."""
    return not s.closing and s.shoe.loaded and not shoe_is_out(g, s)


def fresh_felt(g: Game, s: State, e: Event) -> State:
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


def no_shuffler(g: Game, s: State, e: ShuffleStarted) -> bool:
    return "shuffler" in s.lost and not s.shoe.decks_out


def _may_shuffle(g: Game, s: State, e: ShuffleStarted) -> bool:
    return not s.shoe.decks_out and not no_shuffler(g, s, e)


def _other_decks(g: Game, s: State, e: DecksChanged) -> bool:
    return s.shoe.decks_out and second_person(e, e.second)


def complete(g: Game, s: State, e: ShuffleDone) -> bool:
    return e.missing == 0 and e.extra == 0


def whole_shoe(g: Game, e: ShoeLoaded) -> bool:
    return e.count == g.decks * 52


def no_shoe(g: Game, s: State, e: ShoeLoaded) -> bool:
    return "shoe" in s.lost


def _loaded_and_burn(g: Game, s: State, e: ShoeLoaded) -> bool:
    return whole_shoe(g, e) and g.options.burn.on_shuffle > 0 and not no_shoe(g, s, e)


def _loaded_no_burn(g: Game, s: State, e: ShoeLoaded) -> bool:
    return whole_shoe(g, e) and g.options.burn.on_shuffle == 0 and not no_shoe(g, s, e)


def _loaded(g: Game, s: State, e: ShoeLoaded) -> State:
    return replace(s, shoe=Shoe(loaded=True), seen=0, burn=g.options.burn.on_shuffle)


def more_to_burn(g: Game, s: State, e: CardBurned) -> bool:
    return s.burn > 1


def last_to_burn(g: Game, s: State, e: CardBurned) -> bool:
    return s.burn == 1


def burned_one(g: Game, s: State, e: CardBurned) -> State:
    return replace(s, burn=s.burn - 1)


def burned(g: Game, s: State, e: CardBurned, after: State) -> tuple[Effect, ...]:
    return (Burned(),)


def _cut(g: Game, s: State, e: CutCardSeen) -> State:
    # Between rounds the round that starts next is one of those that are left, and is dealt.
    left = g.jurisdiction.rounds_after_cut
    if s.step in (Step.WAGERING, Step.BURNING):
        left = max(1, left)
    return replace(s, shoe=replace(s.shoe, rounds_left=left))


ROWS: tuple[Row, ...] = (
    Row(
        "open_table",
        (Step.CLOSED,),
        TableOpened,
        Step.SHUFFLE_NEEDED,
        "The floor opens the table with a second person; cards are shuffled before anything else.",
        when=_counted_twice,
        do=lambda g, s, e: shut(s),
        effects=_bank,
        why="the floor opens a table, with a second person who counts the same bank",
    ),
    Row(
        "close_table",
        BETWEEN,
        TableClosed,
        Step.CLOSED,
        "With no wager on the felt the floor closes the table with a second person.",
        when=_closes,
        do=lambda g, s, e: shut(s),
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
            when=_counted_twice,
            do=lambda g, s, e: replace(s, closing=True),
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
        when=lambda g, s, e: another_round(g, s) and "shoe" not in s.lost,
        do=fresh_felt,
    ),
    Row(
        "close_now",
        (Step.NEXT_ROUND,),
        Go,
        Step.CLOSED,
        "The round is over and the table closes.",
        when=lambda g, s, e: s.closing,
        do=lambda g, s, e: shut(s),
    ),
    Row(
        "shuffle_now",
        (Step.NEXT_ROUND,),
        Go,
        Step.SHUFFLE_NEEDED,
        "The shoe has dealt its last round: shuffle.",
        when=lambda g, s, e: not s.closing and (shoe_is_out(g, s) or not s.shoe.loaded),
        do=fresh_felt,
    ),
    Row(
        "start_shuffle",
        (Step.SHUFFLE_NEEDED,),
        ShuffleStarted,
        Step.SHUFFLING,
        "The cards are shuffled.",
        when=_may_shuffle,
        do=lambda g, s, e: replace(s, shoe=Shoe(), seen=0, spare=None),
        why="the decks are out of play: the floor brings other ones first",
    ),
    Row(
        "change_decks",
        (Step.SHUFFLE_NEEDED,),
        DecksChanged,
        Step.SHUFFLE_NEEDED,
        "The floor and a second person bring other decks in place of those out of play.",
        when=_other_decks,
        do=lambda g, s, e: replace(s, shoe=Shoe()),
        why="no decks are out of play, or a second person is missing",
    ),
    Row(
        "shuffle_done",
        (Step.SHUFFLING,),
        ShuffleDone,
        Step.LOADING,
        "The shuffle is complete and no card is missing or too many: cut and load the shoe.",
        when=complete,
    ),
    Row(
        "load_and_burn",
        (Step.LOADING,),
        ShoeLoaded,
        Step.BURNING,
        "The whole of the decks is in the shoe; cards are to be burned before the first round.",
        when=_loaded_and_burn,
        do=_loaded,
        rule=("classic.deal5", "maxtime.intro1", "mega.intro4"),
    ),
    Row(
        "load",
        (Step.LOADING,),
        ShoeLoaded,
        Step.WAGERING,
        "The whole of the decks is in the shoe; wagers may be placed.",
        when=_loaded_no_burn,
        do=_loaded,
        rule=(
            "classic.deal5",
            "maxtime.intro1",
            "mega.intro4",
        ),
    ),
    Row(
        "burn_more",
        (Step.BURNING,),
        CardBurned,
        Step.BURNING,
        "A card is burned; another one follows.",
        when=more_to_burn,
        do=burned_one,
        effects=burned,
    ),
    Row(
        "burn_last",
        (Step.BURNING,),
        CardBurned,
        Step.WAGERING,
        "The last card to burn is burned; wagers may be placed.",
        when=last_to_burn,
        do=burned_one,
        effects=burned,
    ),
    *(
        Row(
            f"shoe_ran_out_at_{step.value}",
            (step,),
            ShoeRanOut,
            Step.SHUFFLE_NEEDED,
            "The shoe has no card left for a round: all cards are shuffled. Wagers stay, or go "
            "back.",
            do=lambda g, s, e: replace(s, shoe=Shoe(), seen=0, burn=0, spare=None, holds=()),
        )
        for step in (Step.BURNING, Step.WAGERING, Step.RELIEF_BURN)
    ),
    Row(
        "call_shuffle",
        (Step.WAGERING,),
        ShuffleCalled,
        Step.SHUFFLE_NEEDED,
        "With no wager on the felt the cards may be shuffled before the next round.",
        when=lambda g, s, e: not s.seats,
        why="wagers lie on the felt: play the round first, or give them back",
    ),
    *(
        Row(
            f"cut_card_at_{step.value}",
            (step,),
            CutCardSeen,
            step,
            "The cut card came out: after this round only the rounds that the house allows.",
            when=lambda g, s, e: s.shoe.rounds_left < 0,
            do=_cut,
            why="the last rounds of this shoe are counted already",
        )
        for step in OPEN
        if step not in (Step.SHUFFLE_NEEDED, Step.SHUFFLING, Step.LOADING)
    ),
)

REFUSALS: tuple[Refusal, ...] = (
    Refusal("already_open", OPEN, TableOpened, "the table is open"),
    Refusal("table_closed_already", (Step.CLOSED,), TableClosed, "the table is closed"),
    Refusal(
        "not_shuffling",
        elsewhere(Step.SHUFFLE_NEEDED, Step.REFILL),
        ShuffleStarted,
        "no shuffle is wanted now",
    ),
    Refusal(
        "no_decks_to_change",
        elsewhere(Step.SHUFFLE_NEEDED),
        DecksChanged,
        "no decks are to be changed now",
    ),
    Refusal(
        "no_shuffle_to_end",
        elsewhere(Step.SHUFFLING, Step.REFILL),
        ShuffleDone,
        "no shuffle is under way",
    ),
    Refusal(
        "no_shoe_wanted",
        elsewhere(Step.LOADING, Step.REFILL),
        ShoeLoaded,
        "no shoe is to be loaded now: shuffle first",
    ),
    Refusal(
        "no_burn",
        elsewhere(Step.BURNING, Step.RELIEF_BURN),
        CardBurned,
        "no card is to be burned now",
    ),
    Refusal(
        "no_shuffle_now",
        elsewhere(Step.WAGERING),
        ShuffleCalled,
        "a shuffle can be called between rounds only",
    ),
    Refusal(
        "no_shoe_no_cut_card",
        (Step.CLOSED, Step.SHUFFLE_NEEDED, Step.SHUFFLING, Step.LOADING),
        CutCardSeen,
        "no shoe is in play",
    ),
)
