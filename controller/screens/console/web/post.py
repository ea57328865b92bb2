"""What a page sends: badges and PINs, acts, how it wants to look. Each by the same functions as a
program's requests, at the screen of the browser's session; no answer is more than done or not, and
why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from controller.api.contract.errors import Problem
from controller.api.contract.messages import Acted, AdoptDevice, Authorise, SignIn, Tested
from controller.api.http import TableApi, read_as, read_object
from controller.api.service import (
    ADOPT,
    AGAIN,
    BESIDE,
    NOTHING_FOUND,
    TEST,
    acts,
    floor_act,
    kind_of_sent,
    only,
    self_test,
)
from controller.api.service import sign_in as signing
from controller.people import Act
from controller.procedure.prompts import Texts
from controller.screens.common.sessions import Appearance
from controller.screens.console.text import refused
from controller.screens.console.web.render_cache import (
    ShownHistory,
    ShownState,
    same_asked,
    same_case,
    still_asked,
)
from controller.screens.console.web.sessions import ATTEMPT_INTERVAL, Browser, Browsers
from controller.table.loop import CaseChanged

_LONGEST_SEQ: Final = 18
_SIGNED_IN: Final = {
    "dealer": "doors.signed_in_dealer",
    "technician": "doors.signed_in_technician",
}
"""Who signs in at a console, and what they are told."""


class PostResult(Struct, frozen=True):
    """What a page is told."""

    done: bool
    said: str
    stays: bool = False
    """The same is asked as before: without a word it would look as if nothing had been pressed."""


class PostedForm:
    """A form of a page. It shows itself to nobody: there may be a PIN in it."""

    def __init__(self, browser: Browser, form: Mapping[str, str]) -> None:
        self.browser = browser
        self.form = form


class PostHandlers:
    """One table's."""

    def __init__(
        self, api: TableApi, browsers: Browsers, lately: ShownHistory, texts: Texts
    ) -> None:
        self._api = api
        self._browsers = browsers
        self._lately = lately
        self._texts = texts

    # --- people ---------------------------------------------------------------------------

    async def sign_in(self, sent: PostedForm) -> PostResult:
        browser, form = sent.browser, sent.form
        self._try(browser)
        relieve = form.get("relieve", "no")
        if relieve not in ("yes", "no"):
            raise Problem(400, "bad_field", "relieve cannot be this", "yes or no")
        role = form.get("role", "dealer")
        if role not in _SIGNED_IN:
            raise Problem(400, "bad_field", "role cannot be this", " or ".join(_SIGNED_IN))
        said = {"role": role, **{name: form.get(name, "") for name in ("badge", "pin")}}
        wanted = read_as({**said, "relieve": relieve == "yes"}, SignIn)
        try:
            done = await signing.sign_in(self._api.served, browser.screen, wanted)
        finally:
            self._api.views.notify()
        self._browsers.renew(browser)
        return PostResult(True, self._texts(_SIGNED_IN[role], name=done.name))

    async def sign_out(self, sent: PostedForm) -> PostResult:
        try:
            done = await signing.sign_out(self._api.served, sent.browser.screen)
        finally:
            self._api.views.notify()
        return PostResult(True, self._texts("doors.signed_out" if done.roles else "doors.nobody"))

    # --- acts -----------------------------------------------------------------------------

    async def act(self, sent: PostedForm) -> PostResult:
        browser, form = sent.browser, sent.form
        act = read_object(form.get("act", "").encode())
        kind = None if act.get("type") in (*BESIDE, TEST) else kind_of_sent(act)
        then, now = self._pressed_on(form.get("seq", "")), self._lately.now()
        if "badge" not in form:
            if then is None or not still_asked(kind, then, now):
                raise self._moved_on()
            pressed_on = then

            def asked() -> None:
                """At its turn: what was pressed before may have answered it by then."""
                if not still_asked(kind, pressed_on, self._lately.now()):
                    raise CaseChanged

            return self._seen(await self._do(browser, act, asked), then)
        game = self._api.served.table.parts.game
        if then is None or not same_case(kind, act, then, now, game):
            raise self._moved_on()
        return self._seen(await self._signed(browser, act, form), then)

    def _seen(self, answered: PostResult, then: ShownState) -> PostResult:
        """With a word for who pressed it, where the page will not show that it was done."""
        if not answered.done or not same_asked(then, self._lately.now()):
            return answered
        plain = answered.said == self._texts("doors.done")
        said = self._texts("doors.recorded") if plain else answered.said
        return replace(answered, said=said, stays=True)

    async def _signed(
        self, browser: Browser, act: dict[str, Any], form: Mapping[str, str]
    ) -> PostResult:
        """The floor's: signed for, by two people where it takes two, and done."""
        self._try(browser)
        served, screen = self._api.served, browser.screen
        wanted = floor_act(served.table, act)
        try:
            for second, (badge, pin) in enumerate((("badge", "pin"), ("badge2", "pin2"))):
                if badge not in form:
                    continue
                self._same(act, wanted)
                people = {"badge": form[badge], "pin": form.get(pin, ""), "second": bool(second)}
                await signing.authorise(served, screen, read_as({"act": act, **people}, Authorise))
            self._same(act, wanted)
            return await self._do(browser, act, floor=True)
        finally:
            # What comes to nothing is asked for again with badge and PIN: nothing lies about here.
            screen.spend(wanted)
            self._api.views.notify()

    def _same(self, act: dict[str, Any], wanted: Act) -> None:
        """Nobody signs for another case than the one that was pressed on: while a PIN is looked at
        the table goes on."""
        if floor_act(self._api.served.table, act) != wanted:
            raise self._moved_on()

    async def _do(
        self,
        browser: Browser,
        act: dict[str, Any],
        asked: Callable[[], None] = acts.at_any_time,
        *,
        floor: bool = False,
    ) -> PostResult:
        try:
            return await self._done(browser, act, asked, floor=floor)
        except Problem as problem:
            if problem.body.code == "moved_on":
                raise self._moved_on() from None
            raise

    async def _done(
        self, browser: Browser, act: dict[str, Any], asked: Callable[[], None], *, floor: bool
    ) -> PostResult:
        api = self._api
        if act.get("type") == ADOPT:
            serial, skip = str(act.get("serial", "")), {"skip": act.get("skip", False)}
            await acts.adopt(api.served, browser.screen, serial, read_as(skip, AdoptDevice))
            return PostResult(True, self._texts("doors.adopted", serial=serial))
        if act.get("type") == TEST:
            only(act, ("serial",))
            serial = str(act.get("serial", ""))
            return self._tested(await self_test.self_test(api.served, browser.screen, serial))
        if act.get("type") == AGAIN:
            again = acts.shuffle_again(api.served, api.views, browser.screen, floor=floor)
            return self._of(await again)
        done = acts.act(api.served, api.views, browser.screen, act, asked=asked, floor=floor)
        return self._of(await done)

    def _tested(self, tested: Tested) -> PostResult:
        """A technician knows the device's numbers."""
        texts, serial = self._texts, tested.serial
        if tested.found == NOTHING_FOUND:
            return PostResult(True, texts("doors.tested_right", serial=serial), stays=True)
        found = texts(f"console.found.{tested.found}")
        if tested.arg:
            found = f"{found} {tested.arg}"
        return PostResult(True, texts("doors.tested_wrong", serial=serial, found=found), stays=True)

    def _of(self, done: Acted) -> PostResult:
        """What the procedure refuses is recorded, and no mistake of the page's."""
        for one in done.answers:
            if not one.taken:
                return PostResult(False, refused(one, self._texts))
        return PostResult(True, self._texts("doors.done"))

    # --- how it looks ---------------------------------------------------------------------

    async def looks(self, sent: PostedForm) -> PostResult:
        try:
            sent.browser.looks = msgspec.convert(dict(sent.form), Appearance)
        except msgspec.ValidationError as problem:
            allowed = "theme: auto, light or dark; suits: two or four"
            raise Problem(400, "bad_field", str(problem), allowed) from None
        return PostResult(True, self._texts("doors.looks"))

    # --- what stands in the way -----------------------------------------------------------

    def _pressed_on(self, seq: str) -> ShownState | None:
        if not seq.isascii() or not seq.isdigit() or len(seq) > _LONGEST_SEQ:
            raise Problem(400, "bad_field", "seq cannot be this", "the seq of what was pressed on")
        return self._lately.at(int(seq))

    def _moved_on(self) -> Problem:
        return Problem(409, "moved_on", self._texts("doors.moved_on"))

    def _try(self, browser: Browser) -> None:
        """Problem: too many badges and PINs were shown here, or at all pages together."""
        if not self._browsers.may_try(browser):
            raise Problem(
                429, "too_often", self._texts("doors.too_often"), wait=round(ATTEMPT_INTERVAL)
            )
