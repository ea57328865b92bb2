"""People, payments and devices, told at the page."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity as Odd
from firmware_protocol.device import CutPower, MoveDoor, Plug, Put, SetJam
from hil.table.robots import ROBOT_TIMEOUT
from hil.table.setup import GUEST, until
from tests.support.screens.browser.page import page_at
from tests.support.screens.browser.stories import ACE_UP, NOBODY, ruled, tells
from tests.support.screens.browser.table import AtTable
from tests.support.table.simulated.telling import DEAL

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
