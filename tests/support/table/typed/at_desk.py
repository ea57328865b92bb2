"""A desk where people sign in, with a house behind it and a record that is read back."""

from collections.abc import Callable
from typing import Final, Self

from controller.people import (
    NO_SIGN_INS,
    ActSigners,
    Denied,
    PeopleDesk,
    PeopleFile,
    Person,
    SignInState,
    act_of,
    dealer,
)
from controller.people.pins import Cost
from controller.people.service import AppendEntry, SignInResult
from controller.procedure.model.events import Actor, RoundVoided
from tests.support.table.simulated.house import CHEAP, PINS, Ledger, Time, who

VOID: Final = act_of(RoundVoided)
SCREEN_1: Final = "dealer"
WRONG: Final = "806417"


class Desk:
    """A desk with a house behind it. `screen` may be left out."""

    def __init__(
        self,
        file: PeopleFile,
        *,
        cost: Cost = CHEAP,
        record: AppendEntry | None = None,
        standing: SignInState = NO_SIGN_INS,
        boot: str = "b1",
    ) -> None:
        self.time = Time()
        self.ledger = Ledger(self.time, boot)
        self.shut = True
        self.desk = PeopleDesk(
            file, record or self.ledger.record, boot, standing, shut=lambda: self.shut, cost=cost
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.desk.close()

    async def sign_in(
        self, badge: str, pin: str = "", screen: str = SCREEN_1, *, relieve: bool = False
    ) -> SignInResult | Denied:
        return await self.desk.sign_in(
            badge, pin or PINS[badge], screen, self.time.now, relieve=relieve
        )

    async def void(
        self, badge: str, pin: str = "", *, second: bool = False
    ) -> SignInResult | Denied:
        return await self.desk.authorise(
            VOID, badge, pin or PINS[badge], SCREEN_1, self.time.now, second=second
        )

    def take(self) -> ActSigners | Denied:
        return self.desk.take(VOID, SCREEN_1, self.time.now)


def at_table(standing: SignInState) -> Actor | None:
    """The dealer who is signed in, if anybody is."""
    found = dealer(standing)
    return None if found is None else found.actor


def change(file: PeopleFile, badge: str, make: Callable[[Person], Person]) -> None:
    made = make(who(file, badge))
    file.change("roles", badge, lambda people: made, ("Ann", "Bo"), "2027-01-15T08:00:00Z")
