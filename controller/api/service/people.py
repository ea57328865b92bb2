"""Signing in and out at a screen. The views are notified of every outcome."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from controller.api.contract.errors import granted
from controller.api.contract.messages import SignedIn, SignedOut, SignIn, SignsIn
from controller.api.service.context import table_problems
from controller.api.service.screens import ScreenSession
from controller.api.service.table_api import TableApi

ROLES: Final[tuple[SignsIn, ...]] = ("dealer", "surveillance", "technician")


async def sign_in(api: TableApi, screen: ScreenSession, sent: SignIn) -> SignedIn:
    """Sign a person in at the screen. Raises Problem."""
    desk, now = api.served.desk, api.served.moment()
    with _at_desk(api):
        answer = granted(
            await desk.sign_in(
                sent.badge, sent.pin, screen.name, now, role=sent.role, relieve=sent.relieve
            )
        )
        screen.badges[sent.role] = answer.badge
    return SignedIn(answer.badge, answer.actor.name, sent.role, answer.life)


async def sign_out(
    api: TableApi, screen: ScreenSession, roles: tuple[SignsIn, ...] = ROLES
) -> SignedOut:
    """Sign out the people of these roles who are signed in at the screen. Raises Problem."""
    desk, gone = api.served.desk, []
    with _at_desk(api):
        for role in roles:
            if screen.signed_in(desk, role) is None:
                continue
            left = await desk.sign_out(screen.name, api.served.moment(), role=role)
            answer = granted(left)
            screen.badges.pop(role, None)
            if answer:
                gone.append(role)
    return SignedOut(tuple(gone))


async def close_screen(api: TableApi, screen: ScreenSession) -> SignedOut:
    """Close a screen, even if its sign-outs cannot be recorded. The dealer stays signed in, and
    can continue at another screen. Raises Problem."""
    try:
        return await sign_out(api, screen, ("surveillance", "technician"))
    finally:
        api.screens.close(screen)
        api.views.notify()


@contextmanager
def _at_desk(api: TableApi) -> Iterator[None]:
    """The desk's state changes only after the record, so the views are notified at the end."""
    try:
        with table_problems():
            yield
    finally:
        api.views.notify()
