"""What browsers are shown, rendered once for each change and each kind of viewer."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import msgspec
from msgspec import Struct

from controller.api.contract.view import View
from controller.api.service import CachedView, ScreenSession, TableApi
from controller.procedure.model.game import Game
from controller.screens.common.templates import Pages
from controller.screens.console.view import Viewer, console_of
from controller.screens.console.web.sessions import Browser


class RenderedPage(NamedTuple):
    """The table as HTML, and the instruction as a screen reader says it."""

    html: str
    say: str


class PageRenderer(Protocol):
    """Renders views."""

    def picture(self, view: View, viewer: Viewer) -> RenderedPage:
        """Render what a change replaces."""

    def page(
        self, view: View, viewer: Viewer, browser: Browser, signed: tuple[tuple[str, str], ...]
    ) -> str:
        """Render the whole page. `signed`: roles and names of who is signed in at the screen."""


class ConsoleRenderer:
    """Renders the dealer's console."""

    def __init__(self, pages: Pages, game: Game) -> None:
        self._pages = pages
        self._game = game

    def picture(self, view: View, viewer: Viewer) -> RenderedPage:
        c = console_of(view, self._game, viewer, self._pages.texts)
        return RenderedPage(self._pages.text("console/table.html", c=c), c.say)

    def page(
        self, view: View, viewer: Viewer, browser: Browser, signed: tuple[tuple[str, str], ...]
    ) -> str:
        return self._pages.text(
            "console/page.html",
            c=console_of(view, self._game, viewer, self._pages.texts),
            secret=browser.secret,
            looks=browser.looks,
            screen=browser.screen.name,
            signed=signed,
        )


class PageUpdate(Struct, frozen=True):
    """The data of an event, as the page's script reads it."""

    seq: int
    html: str
    say: str
    controls: bool
    signed: str
    """Roles that are signed in at the screen."""


class RenderCache:
    """The encoded update of one table for each kind of viewer."""

    def __init__(self, api: TableApi, render: Callable[[View, Viewer], RenderedPage]) -> None:
        self._api = api
        self._render = render
        self._seen: CachedView | None = None
        self._events: dict[Viewer, bytes] = {}

    def viewer(self, screen: ScreenSession) -> Viewer:
        desk = self._api.served.desk
        return Viewer(
            controls=screen.signed_in(desk, "dealer") is not None,
            tests=screen.signed_in(desk, "technician") is not None,
        )

    def now(self, screen: ScreenSession) -> bytes:
        """Returns the current update as an event; the same object while nothing has changed."""
        seen, viewer = self._api.views.now(), self.viewer(screen)
        if seen is not self._seen:
            self._seen, self._events = seen, {}
        found = self._events.get(viewer)
        if found is None:
            made = self._render(seen.view, viewer)
            seq = seen.view.seq
            update = PageUpdate(seq, made.html, made.say, viewer.controls, viewer.signed)
            data = msgspec.json.encode(update)
            found = self._events[viewer] = b"event: table\nid: %d\ndata: %s\n\n" % (seq, data)
        return found
