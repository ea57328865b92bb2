"""The table put on a page: the picture that a change brings, and the whole page around it."""

from __future__ import annotations

from typing import Protocol

from controller.api.contract.view import View
from controller.procedure.model.game import Game
from controller.screens.common.templates import Pages
from controller.screens.console.view import Viewer, console_of
from controller.screens.console.web.render_cache import RenderedPage
from controller.screens.console.web.sessions import Browser


class PageRenderer(Protocol):
    """Who makes pages of views."""

    def picture(self, view: View, here: Viewer) -> RenderedPage: ...

    def page(
        self, view: View, here: Viewer, browser: Browser, signed: tuple[tuple[str, str], ...]
    ) -> str: ...


class ConsoleRenderer:
    """The dealer's console."""

    def __init__(self, pages: Pages, game: Game) -> None:
        self._pages = pages
        self._game = game

    def picture(self, view: View, here: Viewer) -> RenderedPage:
        c = console_of(view, self._game, here, self._pages.texts)
        return RenderedPage(self._pages.text("console/table.html", c=c), c.say)

    def page(
        self, view: View, here: Viewer, browser: Browser, signed: tuple[tuple[str, str], ...]
    ) -> str:
        """`signed`: who is signed in at this screen, with the role they have there."""
        return self._pages.text(
            "console/page.html",
            c=console_of(view, self._game, here, self._pages.texts),
            secret=browser.secret,
            looks=browser.looks,
            screen=browser.screen.name,
            signed=signed,
        )
