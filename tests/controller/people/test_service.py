"""Signing in and signing for an act: what is recorded before it is answered."""

import asyncio
from collections.abc import Callable
from typing import Final

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from controller.audit.errors import WriterBusy
from controller.audit.format.records import RecordEntry
from controller.people import ActSigners, Denied, PeopleFile, Person, act_of
from controller.people.pins import Cost
from controller.people.service import SignInResult
from controller.people.sign_in import AUTHORITY_SECONDS, SESSION_SECONDS
from controller.procedure.model.events import Actor, PaymentApproved
from tests.support.asynchronous import asynchronous
from tests.support.table.simulated.house import CHEAP, DEARER, PINS, who
from tests.support.table.typed.at_desk import SCREEN_1, VOID, WRONG, Desk, at_table, change

APPROVE: Final = act_of(PaymentApproved)


# --- signing in -------------------------------------------------------------------------------


@asynchronous
async def test_a_dealer_signs_in_and_out(desk: Desk) -> None:
    signed = await desk.sign_in(" d-17 ", PINS["D-17"])
    assert signed == SignInResult(Actor("dealer", "Ann Lee"), "D-17", SCREEN_1, 0)
    assert at_table(desk.desk.standing) == Actor("dealer", "Ann Lee")
    out = [await desk.desk.sign_out(SCREEN_1, desk.time.now) for _ in range(2)]
    assert (out, at_table(desk.desk.standing)) == ([True, False], None)
    assert desk.ledger.what() == ["signed in", "signed out"]
    assert [record.by.name for record in desk.ledger.records] == ["Ann Lee", "Ann Lee"]


@asynchronous
async def test_a_dealer_takes_anothers_place_only_when_that_is_asked_for(desk: Desk) -> None:
    await desk.sign_in("D-17")
    assert await desk.sign_in("D-18") == Denied("another dealer")
    signed = await desk.sign_in("D-18", relieve=True)
    assert isinstance(signed, SignInResult)
    assert signed.relieved == Actor("dealer", "Ann Lee")
    # The same person at another screen, or by another badge, relieves nobody.
    for badge in ("D-19", "F-3"):
        signed = await desk.sign_in(badge, screen="second", relieve=True)
    assert isinstance(signed, SignInResult)
    assert (signed.badge, signed.relieved) == ("F-3", None)
    assert desk.ledger.what() == ["signed in", "refused", *["signed in"] * 3]
    assert len(desk.desk.standing.sessions) == 1


@asynchronous
async def test_others_sign_in_at_screens_of_their_own(desk: Desk) -> None:
    now = desk.time.now
    for badge, role in (("S-1", "surveillance"), ("T-1", "technician")):
        signed = await desk.desk.sign_in(badge, PINS[badge], badge, now, role=role)  # type: ignore[arg-type]  # both are roles
        assert isinstance(signed, SignInResult)
        assert (signed.actor.role, signed.life > 0) == (role, True)
    assert await desk.desk.sign_in("T-1", PINS["T-1"], "x", now, role="surveillance") == Denied(
        "not theirs"
    )
    with pytest.raises(ValueError, match="the floor does not sign in"):
        await desk.desk.sign_in("F-2", PINS["F-2"], "x", now, role="floor")
    assert len(desk.desk.standing.sessions) == 2


@asynchronous
async def test_a_technician_signs_in_while_the_table_is_closed_only(desk: Desk) -> None:
    now = desk.time.now

    async def signs_in(pin: str = PINS["T-1"]) -> SignInResult | Denied:
        return await desk.desk.sign_in("T-1", pin, "bench", now, role="technician")

    desk.shut = False
    denied = await signs_in()
    assert denied == Denied("table open")
    assert str(denied) == "the table is open: technicians sign in while it is closed"
    assert await signs_in(WRONG) == Denied("not right")
    desk.shut = True
    assert isinstance(await signs_in(), SignInResult)
    assert desk.ledger.what() == ["refused", "refused", "signed in"]


@asynchronous
async def test_whose_time_is_up_is_gone_though_nobody_asks_for_anything(desk: Desk) -> None:
    now = desk.time.now
    await desk.desk.sign_in("S-1", PINS["S-1"], "eye", now, role="surveillance")
    await desk.desk.sign_in("T-1", PINS["T-1"], "bench", now, role="technician")
    desk.time.go(SESSION_SECONDS["technician"] - 1)
    assert desk.desk.expire(desk.time.now) == ()
    desk.time.go(1)
    assert [gone.name for gone in desk.desk.expire(desk.time.now)] == ["Eve Pond"]
    desk.time.go(SESSION_SECONDS["surveillance"])
    assert await desk.desk.refresh_if_changed(desk.time.now) is None  # the file is the same
    assert desk.desk.standing.sessions == ()


# --- the record first -------------------------------------------------------------------------


@asynchronous
async def test_nothing_is_answered_before_it_is_on_the_disk(file: PeopleFile) -> None:
    entries: list[RecordEntry] = []
    on_disk = asyncio.Event()

    async def record(entry: RecordEntry) -> None:
        entries.append(entry)
        await on_disk.wait()

    desk = Desk(file, record=record)
    asked = asyncio.create_task(desk.sign_in("D-17"))
    while not entries:
        await asyncio.sleep(0.001)
    assert (asked.done(), at_table(desk.desk.standing)) == (False, None)
    on_disk.set()
    assert isinstance(await asked, SignInResult)
    assert [one.name for one in desk.desk.standing.sessions] == ["Ann Lee"]
    await desk.desk.close()


@pytest.mark.parametrize("pin", ["", WRONG], ids=["right", "wrong"])
@asynchronous
async def test_what_cannot_be_recorded_does_not_happen_and_tells_nothing(
    desk: Desk, pin: str
) -> None:
    """The right PIN and a wrong one end the same."""

    desk.ledger.broken = WriterBusy("record", "much waits to be recorded", "wait")
    for tries in (desk.sign_in("D-17", pin), desk.void("F-2", pin)):
        with pytest.raises(WriterBusy):
            await tries
    assert (desk.desk.standing.sessions, desk.desk.standing.authorities) == ((), ())
    assert desk.take() == Denied("not authorised")
    desk.ledger.broken = None
    assert isinstance(await desk.sign_in("D-17"), SignInResult)
    assert desk.ledger.what() == ["signed in"]


@asynchronous
async def test_every_authority_stands_in_the_record_with_a_name(desk: Desk) -> None:
    await desk.sign_in("D-17")
    await desk.void("F-2")
    await desk.void("D-17", second=True)
    assert desk.take() == ActSigners(Actor("floor", "Bo Chan"), Actor("dealer", "Ann Lee"))
    told = [(record.by.role, record.by.name) for record in desk.ledger.records]
    assert told == [("dealer", "Ann Lee"), ("floor", "Bo Chan"), ("dealer", "Ann Lee")]
    for said, second in zip(desk.ledger.said()[1:], (b"false", b"true"), strict=True):
        assert b'"act":"RoundVoided","about":"","second":' + second in said


# --- signing for an act -----------------------------------------------------------------------


@asynchronous
async def test_an_act_of_one_is_taken_once_within_a_minute(desk: Desk) -> None:
    async def sign() -> None:
        answer = await desk.desk.authorise(APPROVE, "F-2", PINS["F-2"], SCREEN_1, desk.time.now)
        assert answer == SignInResult(Actor("floor", "Bo Chan"), "F-2", SCREEN_1, AUTHORITY_SECONDS)

    def take(screen: str = SCREEN_1) -> ActSigners | Denied:
        return desk.desk.take(APPROVE, screen, desk.time.now)

    await sign()
    other = act_of(PaymentApproved, about="round 12")
    assert desk.desk.take(other, SCREEN_1, desk.time.now) == Denied("not authorised")
    assert take("elsewhere") == Denied("not authorised")
    assert take() == ActSigners(Actor("floor", "Bo Chan"), None)
    assert take() == Denied("not authorised")
    await sign()
    desk.time.go(AUTHORITY_SECONDS)
    assert take() == Denied("not authorised")
    with pytest.raises(ValueError, match="takes no second person"):
        await desk.desk.authorise(APPROVE, "F-2", "1", "x", desk.time.now, second=True)


@asynchronous
async def test_an_act_of_two_takes_two_different_people(desk: Desk) -> None:
    assert await desk.void("D-18", second=True) == Denied("no first person")
    assert await desk.void("D-18") == Denied("not theirs")
    assert isinstance(await desk.void("F-3"), SignInResult)
    assert desk.take() == Denied("no second")
    # The same badge, and the same person by another badge.
    refusals = [await desk.void(badge, second=True) for badge in ("F-3", "D-19", "T-1")]
    assert refusals == [Denied("same person"), Denied("same person"), Denied("not theirs")]
    assert desk.take() == Denied("no second")
    assert isinstance(await desk.void("S-1", second=True), SignInResult)
    assert desk.take() == ActSigners(Actor("floor", "Cy Moss"), Actor("surveillance", "Dee Faro"))
    assert desk.take() == Denied("not authorised")
    assert [desk.ledger.what().count(what) for what in ("authorised", "refused")] == [2, 5]


@asynchronous
async def test_names_that_differ_in_case_only_are_one_person(desk: Desk) -> None:
    assert isinstance(await desk.void("F-9"), SignInResult)
    assert await desk.void("D-17", second=True) == Denied("same person")


@asynchronous
async def test_whoever_deals_is_not_the_floor_too(desk: Desk) -> None:
    await desk.sign_in("D-17")
    assert await desk.void("F-9") == Denied("deals here")
    assert isinstance(await desk.void("F-3"), SignInResult)
    assert isinstance(await desk.void("D-17", second=True), SignInResult)
    # The floor takes the table over before the act is done.
    await desk.sign_in("D-19", relieve=True)
    assert desk.take() == Denied("deals here")


@asynchronous
async def test_who_was_disabled_is_signed_out(desk: Desk, file: PeopleFile) -> None:
    await desk.sign_in("D-17")
    assert await desk.desk.refresh(desk.time.now) == 0
    change(file, "D-17", lambda one: replace(one, disabled=True))
    assert await desk.desk.refresh(desk.time.now) == 1
    assert at_table(desk.desk.standing) is None
    await desk.sign_in("D-18")
    change(file, "D-18", lambda one: replace(one, roles=("floor",)))
    assert await desk.desk.refresh(desk.time.now) == 1
    assert await desk.sign_in("D-18") == Denied("not theirs")
    assert desk.ledger.said()[1].endswith(b'"why":"disabled"}')


def disabled(one: Person) -> Person:
    return replace(one, disabled=True)


def without_roles(one: Person) -> Person:
    return replace(one, roles=("technician",))


@pytest.mark.parametrize("badge", ["F-2", "D-18"])
@pytest.mark.parametrize("make", [disabled, without_roles])
@asynchronous
async def test_what_was_signed_lapses_with_who_signed_it(
    desk: Desk, file: PeopleFile, badge: str, make: Callable[[Person], Person]
) -> None:
    """When the file is looked at, and for good: enabled again, they sign again."""

    await desk.void("F-2")
    await desk.void("D-18", second=True)
    former = file.read().find(badge)
    change(file, badge, make)
    assert await desk.desk.refresh(desk.time.now) == 0
    change(file, badge, lambda _: former or make(_))
    assert await desk.desk.refresh(desk.time.now) == 0
    assert desk.take() == Denied("not authorised" if badge == "F-2" else "no second")


@asynchronous
async def test_who_was_disabled_a_moment_ago_has_signed_for_nothing(
    desk: Desk, file: PeopleFile
) -> None:
    """Whoever does something asks for news first, which is none where the file is the same."""

    await desk.sign_in("D-17")
    await desk.void("F-2")
    await desk.void("D-18", second=True)
    former = desk.desk.standing
    assert (await desk.desk.refresh_if_changed(desk.time.now), desk.desk.standing) == (None, former)
    for badge in ("F-2", "D-18", "D-17"):
        change(file, badge, disabled)
    assert await desk.desk.refresh_if_changed(desk.time.now) is None
    assert at_table(desk.desk.standing) is None
    assert desk.take() == Denied("not authorised")
    desk.desk.give_back(VOID, SCREEN_1, former, desk.time.now)
    assert desk.take() == Denied("not authorised")


@asynchronous
async def test_where_nobody_knows_who_may_sign_that_is_said(desk: Desk, file: PeopleFile) -> None:
    await desk.void("F-2")
    await desk.void("D-18", second=True)
    file.file.chmod(0o666)
    for _ in range(2):
        assert await desk.desk.refresh_if_changed(desk.time.now) == Denied("unreadable")
    file.file.chmod(0o600)
    assert await desk.desk.refresh_if_changed(desk.time.now) is None
    assert isinstance(desk.take(), ActSigners)
    assert len(desk.ledger.said("fault")) == 1


@asynchronous
async def test_who_signs_in_finds_who_was_disabled_gone(desk: Desk, file: PeopleFile) -> None:
    await desk.sign_in("D-17")
    change(file, "D-17", disabled)
    assert isinstance(await desk.sign_in("D-18"), SignInResult)


# --- costs that have changed ------------------------------------------------------------------


def cost_of(file: PeopleFile, badge: str) -> Cost:
    return who(file, badge).verifier().cost


@asynchronous
async def test_a_verifier_is_renewed_by_whoever_signs_in(file: PeopleFile) -> None:
    async with Desk(file, cost=DEARER) as desk:
        await desk.sign_in("D-17", WRONG)
        assert cost_of(file, "D-17") == CHEAP
        assert isinstance(await desk.sign_in("D-17"), SignInResult)
        assert isinstance(await desk.void("F-2"), SignInResult)
    assert [cost_of(file, badge) for badge in ("D-17", "F-2", "D-18")] == [DEARER, DEARER, CHEAP]
    before = file.file.read_bytes()
    async with Desk(file, cost=DEARER) as again:
        assert isinstance(await again.sign_in("D-17"), SignInResult)
    assert file.file.read_bytes() == before


@asynchronous
async def test_a_verifier_that_cannot_be_renewed_lets_people_in_all_the_same(
    file: PeopleFile,
) -> None:
    file.file.with_name("people.json.lock").mkdir()
    with capture_logs() as lines:
        async with Desk(file, cost=DEARER) as desk:
            assert isinstance(await desk.sign_in("D-17"), SignInResult)
    assert cost_of(file, "D-17") == CHEAP
    assert [line["event"] for line in lines] == ["a verifier is not renewed"]
    assert desk.ledger.said("fault") == []
