"""Irregularities at the dealer's page: each is said there, or happens at a device; the way on is
taken there, with the floor's badges and PINs where they are asked for, to the end of the round.

    @tells(Odd.SEAT_MISSED, "seat_missed", wagers=THREE)
    async def a_seat_that_got_no_cards(t: AtTable) -> None: ...
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from controller.audit.read.reader import records
from controller.audit.replay import decode_decision
from controller.audit.verify import verify
from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity as Odd
from firmware_protocol.device import CutPower, MoveDoor, Plug, Put, SetJam
from hil.table.robots import ROBOT_TIMEOUT
from hil.table.robots.robot import card_of
from hil.table.setup import GUEST, until
from tests.support.screens.browser.page import page_at
from tests.support.screens.browser.table import AtTable
from tests.support.table.simulated.telling import BOTH, CARDS, DEAL, family

Story: TypeAlias = Callable[[AtTable], Awaitable[None]]
Wagers: TypeAlias = tuple[tuple[int, str, int], ...]
THREE: Final = ((1, "main", 1000), (2, "main", 1000), (3, "main", 1000))
ACE_UP: Final = ("9c", "8c", "As", "2h", "Kc", "9d", "9h")
HIT: Final[Mapping[int, str]] = MappingProxyType({1: "hit"})
NOBODY: Final[Mapping[int, str]] = MappingProxyType({})


class Told(NamedTuple):
    """A story, its shoe, and what the record holds of it."""

    tell: Story
    what: Odd
    rows: tuple[str, ...]
    cards: tuple[str, ...]
    wagers: Wagers
    plan: Mapping[int, str]


STORIES: Final[dict[str, Told]] = {}


def tells(
    what: Odd,
    *rows: str,
    cards: tuple[str, ...] = CARDS,
    wagers: Wagers = BOTH,
    plan: Mapping[int, str] = HIT,
) -> Callable[[Story], Story]:
    """`rows`: that fire, or refuse."""

    def told(story: Story) -> Story:
        name = getattr(story, "__name__", "")
        STORIES[name] = Told(story, what, rows, cards, wagers, plan)
        return story

    return told


async def play(t: AtTable, names: Iterable[str]) -> None:
    """One story after the other, each with a shoe of its own, each to the end of its round."""
    for name in names:
        told = STORIES[name]
        await t.fresh(told.cards, told.wagers, told.plan)
        await told.tell(t)
        await t.to_end()
        assert t.wrong == [], name


def recorded(record: Path, names: Iterable[str]) -> None:
    """The record verifies, and holds each story."""
    report = verify(record)
    found = [finding.what for finding in report.findings]
    assert found == [], found
    made = [one for _, one in records(record)]
    fired = {
        family(row) for one in made if one.kind == "decision" for row in decode_decision(one).rows
    }
    fired |= {msgspec.json.decode(one.data)["id"] for one in made if one.kind == "refusal"}
    for name in names:
        assert set(STORIES[name].rows) <= fired, (name, set(STORIES[name].rows) - fired)


async def ruled(t: AtTable, what: Odd, way: str) -> None:
    """The page says that the floor is to rule, and the floor does."""
    assert t.stands.step is Step.HELD, t.stands.step
    assert t.stands.holds[-1].what is what
    await t.shows("rule on", "floor")
    await t.says("FloorRuled", "floor", way=way)


# --- cards ------------------------------------------------------------------------------------


@tells(Odd.FACE_UP_CARD, "face_up_card", cards=(*DEAL, "3d", "9d"))
async def a_face_up_card_in_the_shoe(t: AtTable) -> None:
    await t.to_card(1)
    await t.says("FaceUpCardFound", card=card_of("3d"))
    await t.shows("deal seat 1, third card")
    await t.draws()
    await t.shows("deal seat 1, third card")  # another one takes its place


@tells(Odd.ERROR_CARD, "error_card", cards=(*DEAL, "9d", "9h"))
async def a_card_drawn_in_error(t: AtTable) -> None:
    await t.to_step(Step.TURN)
    await t.forces()
    await t.to_card(1)
    await t.shows("use the card beside the shoe: seat 1, third card")


@tells(Odd.ERROR_CARD_EXPOSED, "error_card_exposed", "refuse_spare")
async def a_card_drawn_in_error_and_seen(t: AtTable) -> None:
    await t.to_step(Step.TURN)
    await t.forces()
    await t.says("ErrorCardExposed", card=card_of(t.out))
    await t.shows("refuse the exposed card")
    for seat in (1, 2):
        await t.says("SpareRefused", seat=seat, hand=0)


@tells(Odd.DEALER_OVERDREW, "error_card")
async def a_dealer_who_draws_on_a_standing_total(t: AtTable) -> None:
    await t.to(lambda s: s.step is Step.PAYING and s.after is Step.CLEARING)
    words = await t.dealer.words()
    await t.forces()
    assert await t.dealer.words() == words


@tells(Odd.CARD_UNREADABLE, "card_unreadable", "enter_card", "reject_card", "confirm_card")
async def a_card_that_is_not_read(t: AtTable) -> None:
    await t.to_card(1)
    await t.draws(read="unreadable")
    await t.shows("enter the card that lies on the felt", "card not read")
    await t.entered(t.out)


@tells(Odd.CARD_UNREADABLE, "card_misread")
async def a_card_that_was_misread(t: AtTable) -> None:
    await t.to_deal(1)
    await t.draws(read="wrong")
    await t.says("CardMisread")
    await t.shows("enter the card that lies on the felt", "seat 2")
    await t.entered("8c")


@tells(Odd.UNKNOWN_CARD, "entered_card_unknown", cards=(*DEAL, "3d", "9d"))
async def a_joker(t: AtTable) -> None:
    await t.to_card(1)
    await t.draws(read="no_index")
    await t.says("UnknownCardDrawn")
    await ruled(t, Odd.UNKNOWN_CARD, "discard")
    await t.shows("deal seat 1, third card")


@tells(Odd.DECK_SUSPECT, "deck_suspect", "change_decks")
async def decks_that_somebody_doubts(t: AtTable) -> None:
    await t.to_step(Step.TURN)
    await t.says("DeckSuspect", why="short")
    await t.shows("decks in doubt")
    await ruled(t, Odd.DECK_SUSPECT, "decks_out")
    await t.to_step(Step.SHUFFLE_NEEDED)
    await t.shows("take these decks out of play")


@tells(Odd.DECK_SUSPECT, "deck_suspect")
async def a_foreign_back(t: AtTable) -> None:
    await t.to_card(1)
    await t.draws(read="foreign")
    await until(lambda: t.stands.step is Step.HELD, ROBOT_TIMEOUT)
    await t.shows("foreign back")
    await ruled(t, Odd.DECK_SUSPECT, "resume")
    await t.entered(t.out)


# --- the deal ---------------------------------------------------------------------------------


@tells(
    Odd.DEALER_CARD_MISSED, "dealer_card_missed", cards=("9c", "8c", "2h", "Kc", "9d", "8s", "Td")
)
async def a_dealer_who_missed_the_first_card(t: AtTable) -> None:
    await t.to_deal(3)
    await t.says("DealerCardMissed", which=1)
    await t.shows("deal seat 2, second card")
    await t.to_step(Step.DEALER_LATE)
    await t.shows("deal the dealer's first card")


@tells(Odd.SEAT_MISSED, "seat_missed", wagers=THREE)
async def a_seat_that_got_no_cards(t: AtTable) -> None:
    await t.to_deal(2)
    await t.says("SeatMissed", seat=2)
    await t.shows("seat 2 - dead hand", "give back $10")


@tells(Odd.SEAT_SHORTED, "seat_shorted", cards=("9c", "8c", "8s", "Kc", "Td", "2h", "9d"))
async def a_seat_that_got_one_card(t: AtTable) -> None:
    await t.to_deal(4)
    await t.says("SeatShorted", seat=1)
    await t.shows("deal the hole card")
    await t.to_deal(5)
    await t.shows("deal seat 1, second card")


@tells(Odd.MISDEAL, "misdeal", "void_round")
async def a_misdeal_and_a_round_that_is_void(t: AtTable) -> None:
    await t.to_deal(3)
    await t.says("MisdealCalled", seat=0)
    await ruled(t, Odd.MISDEAL, "resume")
    await t.to_step(Step.TURN)
    await t.says("RoundVoided", "two", reason="misdeal")
    await t.shows("round void", "give back $10")


@tells(Odd.HOLE_EXPOSED, "hole_exposed")
async def a_hole_card_that_was_seen_early(t: AtTable) -> None:
    await t.to_step(Step.TURN)
    await t.says("HoleExposed", seat=0)
    await ruled(t, Odd.HOLE_EXPOSED, "resume")


@tells(Odd.HOLE_UNCHECKED, "hole_unchecked", cards=(*ACE_UP[:5], "5d", "9d", "4c", "9h"))
async def a_hole_card_that_was_not_checked(t: AtTable) -> None:
    await t.to_step(Step.CHECK)
    await t.shows("check hole card")
    await t.forces()
    await t.says("HoleUnchecked", seat=0)
    await ruled(t, Odd.HOLE_UNCHECKED, "resume")
    await t.shows("check hole card")


@tells(Odd.HOLE_MISMATCH, "hole_mismatch", cards=("9c", "8c", "As", "2h", "Kc", "Kd", "9d"))
async def a_blackjack_that_the_check_has_missed(t: AtTable) -> None:
    await t.to_deal(5)
    await t.draws(read="wrong", confidence=60)
    await t.to_step(Step.REVEAL)
    await t.says("RevealHole")
    await t.entered("Kd")
    await t.says("RevealHole")
    await t.shows("hole card and its check disagree")
    await ruled(t, Odd.HOLE_MISMATCH, "resume")


# --- people -----------------------------------------------------------------------------------


@tells(Odd.OUT_OF_TURN, "out_of_turn")
async def a_hand_that_was_played_out_of_turn(t: AtTable) -> None:
    await t.to_step(Step.TURN)
    await t.says("PlayedOutOfTurn", seat=2)
    await t.shows("seat 2")
    await ruled(t, Odd.OUT_OF_TURN, "void")
    await t.shows("round void")


@tells(
    Odd.INSURANCE_DISPUTE,
    "insurance_dispute",
    cards=ACE_UP,
    plan=MappingProxyType({1: "insure hit"}),
)
async def an_insurance_that_is_disputed(t: AtTable) -> None:
    await t.to_step(Step.CHECK)
    await t.says("InsuranceDisputed", seat=1)
    await ruled(t, Odd.INSURANCE_DISPUTE, "reopen_insurance")
    await t.shows("insurance", "give back $5")
    await t.to_step(Step.INSURANCE)
    await t.shows("ask seat 1: insurance up to $5")


@tells(Odd.PLAYER_ABSENT, "player_absent", cards=DEAL)
async def a_player_who_leaves(t: AtTable) -> None:
    await t.to_step(Step.TURN)
    await t.says("PlayerAbsent", seat=1)
    await t.shows("seat 2 - hard 18")


@tells(Odd.CANNOT_COVER, "withdrawn", plan=MappingProxyType({1: "double hit"}))
async def a_double_that_is_not_covered(t: AtTable) -> None:
    await t.to_step(Step.DOUBLE_CONFIRM)
    await t.shows("seat 1 doubles")
    await t.says("Withdrawn")
    await t.shows("seat 1 - hard 11")


@tells(Odd.LATE_WAGER, "late_wager")
async def a_wager_that_comes_too_late(t: AtTable) -> None:
    """The question is open when the first card comes: it goes away, and says why. Whoever sends
    it all the same is refused, in words, and recorded."""
    page, hand = t.page, t.dealer.hand
    await t.to(lambda s: len(s.seats) == 2)
    await t.dealer.caught_up()
    await hand.press("act-wagerplaced-3")
    await page.wait_for_selector("#ask[open]")
    await t.draws()
    await page.wait_for_selector("#refused:not([hidden])")
    assert not await page.locator("#ask[open]").count()
    assert "not asked any more" in await page.inner_text("#refused")
    answer: dict[str, Any] = await page.evaluate(_SENDS, {"seat": 3, "bet": "main", "amount": 1000})
    assert not answer["done"]
    assert answer["said"] == "wagers are closed: hand the chips back"


_SENDS: Final = """async (fields) => {
  const meta = (name) => document.querySelector(`meta[name="${name}"]`).content;
  const body = new URLSearchParams({
    act: JSON.stringify({ type: "WagerPlaced", ...fields }),
    seq: document.getElementById("console").dataset.seq,
    secret: meta("secret"),
  });
  return (await fetch(`${meta("base")}/act`, { method: "POST", body })).json();
}"""


@tells(Odd.FLOOR_CALLED, "floor_called")
async def a_floor_that_is_called(t: AtTable) -> None:
    await t.to_step(Step.TURN)
    await t.says("FloorCalled")
    await ruled(t, Odd.FLOOR_CALLED, "resume")


@tells(Odd.WRONG_PAYMENT, "correct_payment")
async def a_wrong_payment_that_is_found_later(t: AtTable) -> None:
    await t.to_step(Step.TURN)
    await t.to_end()
    said = {"round": t.stands.round, "seat": 1, "hand": 0, "bet": "main"}
    await t.says("PaymentCorrected", "two", **said, paid=500, due=1000)


@tells(Odd.DEALER_RELIEVED, "dealer_relieved_and_burn", cards=("5c", *DEAL, "9d"))
async def a_dealer_who_is_relieved(t: AtTable) -> None:
    """At another browser; and relieved again there, where it began."""
    other = await page_at(t.browser, t.page.url, touch=t.how == "touch")
    t.listen(other)
    await t.hands_at(other).sign_in(GUEST, relieve=True)
    await t.page.locator("#now .watching").wait_for()
    assert GUEST.name in await t.page.inner_text("#now .watching")
    await until(lambda: t.stands.step is Step.RELIEF_BURN, ROBOT_TIMEOUT)
    await t.shows("burn 1 card")
    await t.draws()
    await other.context.close()
    await t.page.reload()
    if await t.page.locator("#sign-out").count():
        await t.dealer.hand.press("sign-out")
        await t.page.wait_for_selector("#sign-in")
    await t.dealer.sign_in(relieve=True)
    await until(lambda: t.stands.step is Step.RELIEF_BURN, ROBOT_TIMEOUT)
    await t.draws()


# --- devices ----------------------------------------------------------------------------------


@tells(Odd.DEVICE_LOST, "device_lost", "device_agrees", "confirm_felt")
async def a_shoe_that_is_jammed(t: AtTable) -> None:
    await t.to_card(1)
    t.stage.shoe.request(SetJam(code="stuck"))
    await until(lambda: bool(t.stands.lost), ROBOT_TIMEOUT)
    await t.shows("stop dealing", "a card is stuck")
    t.stage.shoe.request(SetJam(code=None))
    await until(lambda: t.stands.step is Step.FELT, ROBOT_TIMEOUT)
    await t.shows("compare the felt with the screen")


@tells(Odd.DEVICE_LOST, "device_lost", "accept_counters")
async def a_shoe_that_is_unplugged(t: AtTable) -> None:
    await t.to_step(Step.TURN)
    t.stage.shoe.request(Plug(connected=False))
    await until(lambda: t.stands.step is Step.DEVICE, ROBOT_TIMEOUT)
    await t.shows("stop dealing", "device lost")
    assert await t.page.locator("#status .mark-alarm").count() == 1
    await t.says("CountersAccepted", "two")
    await t.shows("compare the felt with the screen")
    t.stage.shoe.request(Plug(connected=True))


@tells(Odd.DEVICE_LOST, "device_lost")
async def a_shoe_that_loses_its_power(t: AtTable) -> None:
    await t.to_card(1)
    t.stage.shoe.request(CutPower(cause="brown_out", off_ms=3500))
    await until(lambda: t.stands.step in (Step.DEVICE, Step.FELT), ROBOT_TIMEOUT)
    await t.shows("device lost")
    await until(lambda: t.stands.step is Step.FELT, ROBOT_TIMEOUT)


@tells(Odd.DECK_SUSPECT, "shuffle_short_or_long")
async def a_batch_that_is_short(t: AtTable) -> None:
    await t.says("ShuffleCalled")
    await t.to_step(Step.SHUFFLE_NEEDED)
    t.stage.shuffler.request(Put(decks=t.stage.decks, remove=("Ac", "Kd")))
    await t.says("ShuffleStarted")
    await until(lambda: t.stands.step is Step.HELD, ROBOT_TIMEOUT)
    await t.shows("2 missing")
    await ruled(t, Odd.DECK_SUSPECT, "decks_out")
    await t.shows("take these decks out of play")


@tells(Odd.DEVICE_LOST)
async def a_shuffler_that_does_not_begin(t: AtTable) -> None:
    """Its door is open. The page says so; somebody looks, and asks for the shuffle again."""
    await t.says("ShuffleCalled")
    await t.to_step(Step.SHUFFLE_NEEDED)
    t.stage.shuffler.request(MoveDoor(open=True))
    await t.says("ShuffleStarted")
    await t.page.locator("#trouble-shuffle-problem").wait_for()
    await t.shows("the shuffle was not started")
    t.dealer.pressed.clear()
    t.stage.shuffler.request(Put(decks=t.stage.decks))
    await t.to_step(Step.LOADING)
    assert "act-shuffleagain" in t.dealer.pressed


# --- a table of one deck ----------------------------------------------------------------------

SEVEN: Final = tuple((seat, "main", 1000) for seat in range(1, 8))


@tells(Odd.SHOE_RAN_OUT, "shoe_ran_out", "refill_shuffle", "refill", cards=(), wagers=SEVEN)
async def a_shoe_that_runs_out(t: AtTable) -> None:
    """All fifty-two cards come out, and the discards with which the round is finished."""
    await t.to(lambda s: s.step is Step.REFILL)
    await t.shows("load the discards", "shoe out of cards")
    await t.says("ShuffleStarted")
    await t.page.get_by_text("Recorded. What is asked is the same as before.").wait_for()


@tells(
    Odd.WRONG_PAYMENT,
    "approve_payment",
    plan=NOBODY,
    cards=("Kc", "Qc", "8s", "Kh", "Qh", "Td"),
)
async def a_payment_that_waits_for_the_floor(t: AtTable) -> None:
    await t.to(lambda s: s.step is Step.PAYING)
    await t.shows("floor", "see it before it is paid")
    await t.says("PaymentApproved", "floor")


ONE_DECK: Final[Mapping[str, object]] = {"decks": 1, "payout.floor_from": 1000}
IN_ONE_DECK: Final = ("a_payment_that_waits_for_the_floor", "a_shoe_that_runs_out")
IN_USUAL_DECKS: Final = tuple(name for name in STORIES if name not in IN_ONE_DECK)
