"""The largest records that a table can write are within the limit."""

from contextlib import closing
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from controller.audit.format.records import MAX_RECORD_BYTES, DeviceCursor, RecordActor, RecordEntry
from controller.audit.read.reader import read_segment, segments
from controller.audit.replay import event_entry
from controller.procedure.model.effects import Settled
from controller.procedure.model.events import Actor, AllPaid
from controller.procedure.model.row import Decision
from controller.procedure.model.state import Due, Hold, Place, Seat, Spare, State, Step
from controller.rules.hands import Hand
from controller.rules.irregularities import WAYS, Irregularity
from controller.rules.money import Denomination, Odds
from tests.support.audit.record.dealing import boot
from tests.support.audit.record.table import note
from tests.support.procedure.random_games import game_as_it_is

SEATS: Final = range(1, 8)
BETS: Final = tuple(f"{'side_bet_of_24_letters_'}{number}" for number in range(1, 9))
"""As many side bets as a sheet may have, with the longest names."""
AMOUNT: Final = 10**10
"""One hundred million, in cents."""
CARDS: Final = tuple(range(12))
"""More cards than fit into a hand of 21, but for aces."""
NAME: Final = "A person with a name of forty characters"
COMMITMENT: Final = "ab" * 32
SHOE: Final = RecordActor("device", "shoe")


def dues() -> tuple[Due, ...]:
    hands = [
        Due(seat, 4 * seat + number, number, "main", "even_money", Odds(10**4, 10**4), AMOUNT,
            2 * AMOUNT, "dealer_bust_push", CARDS, True)
        for seat in SEATS
        for number in range(4)
    ]  # fmt: skip
    beside = [
        Due(seat, -1, -1, bet, "surrender", Odds(10**4, 10**4), AMOUNT, 2 * AMOUNT, "x" * 24)
        for seat in SEATS
        for bet in (*BETS, "toke_main", "insurance")
    ]
    return (*hands, *beside)


def largest() -> State:
    """Seven seats with four hands each, all bets, and a hold for each irregularity."""
    bets = tuple((bet, AMOUNT) for bet in (*BETS, "toke_main", *(f"toke_{bet}" for bet in BETS)))
    hold = Hold(
        Irregularity.LATE_WAGER, Step.DOUBLE_CONFIRM, None, (), 7, 51, COMMITMENT, "x" * 60,
        "shuffler", NAME, NAME, NAME,
    )  # fmt: skip
    return State(
        step=Step.DOUBLE_CONFIRM,
        round=10**9,
        seen=(1 << 208) - 1,
        seats=tuple(Seat(seat, AMOUNT, bets, AMOUNT, "even_money") for seat in SEATS),
        hands=tuple(
            Hand(seat, 2 * AMOUNT, AMOUNT, number, CARDS, 20, True, 3, True, done=True)
            for seat in SEATS
            for number in range(4)
        ),
        dealer=CARDS,
        hole=COMMITMENT,
        checked=False,
        places=tuple(Place("hand", seat, 3, 4 * seat) for seat in SEATS for _ in range(6)),
        due=dues(),
        quiet=tuple(SEATS),
        spare=Spare(COMMITMENT, 51, True, True),
        holds=tuple(replace(hold, what=what, options=WAYS[what]) for what in Irregularity),
        lost=("shoe", "shuffler", "station"),
    )


def test_the_largest_snapshot_fits(place: Path) -> None:
    game = game_as_it_is("mega")
    chips = tuple(Denomination(f"chip number {number}", 5**number) for number in range(1, 16))
    game = type(game)(
        game.name, replace(game.options, chips=chips), game.jurisdiction, game.title,
        game.seats, game.clauses,
    )  # fmt: skip
    serials = ["SHOE-0123456789", "SHUFFLER-0123456789", *(f"STATION-012345678{n}" for n in SEATS)]
    with closing(boot(place, game, largest(), size=1 << 18)) as log:
        for serial in serials:
            cursor = DeviceCursor(serial, 2**32 - 1, 7, "f" * 16, 2**32, 2**62)
            log.write(
                [RecordEntry("device", RecordActor("device", "x"), {"what": "x"}, 0, 0, cursor)]
            )
        while len(list(segments(place))) == 1:
            log.write([note("x", 60_000)])
        snapshot = read_segment(place, 2).frames[0].data
    assert len(snapshot) > 30_000
    assert len(snapshot) <= MAX_RECORD_BYTES * 7 // 8, len(snapshot)


def test_the_largest_decision_fits(place: Path) -> None:
    """All is paid at once."""
    paid = tuple(
        Settled(10**9, due.seat, due.hand, due.bet, due.outcome, due.odds, due.stake, due.returned,
                due.why, True, due.cards)
        for due in dues()
    )  # fmt: skip
    answer = Decision(("pay_all",), largest(), paid)
    with closing(boot(place, game_as_it_is("mega"), size=1 << 18)) as log:
        made = log.write([event_entry(AllPaid(Actor("dealer", NAME)), answer, State())])
    (frame,) = [one for one in read_segment(place, 1).frames if one.seq == made[0].seq]
    assert 15_000 < len(frame.data) <= MAX_RECORD_BYTES * 3 // 4, len(frame.data)
