"""The console's forms: badges and PINs, acts, appearance.

Each calls the same function as a program's request, for the screen of the browser's session. The
response says only whether it was done, and why not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from controller.api.contract.errors import Problem
from controller.api.contract.messages import AdoptDevice, Authorise, SignIn, Tested
from controller.api.http import read_as, read_object
from controller.api.service import (
    ADOPT,
    AGAIN,
    NON_EVENT_ACTS,
    NOTHING_FOUND,
    TEST,
    TableApi,
    act_for,
    adopt_device,
    authorise,
    check_fields,
    floor_act,
    kind_of_sent,
    run_self_test,
    shuffle_again,
    sign_in,
    sign_out,
    submit_act,
)
from controller.people import Act
from controller.procedure.model import events
from controller.procedure.model.events import Event
from controller.procedure.model.game import Game
from controller.procedure.model.state import Step
from controller.procedure.prompts import Texts
from controller.screens.common.sessions import Appearance
from controller.screens.console.text import refused
from controller.screens.console.web.sessions import ATTEMPT_INTERVAL, Browser, Browsers
from controller.table.loop import CaseChanged
from controller.table.memory import TableDisplay
from controller.table.running import RunningTable

MAX_STATES: Final = 256
"""Shown states that are remembered."""
ANY_TIME: Final[frozenset[type[Event]]] = frozenset({events.FloorCalled})
"""Acts of the dealer that answer no prompt."""
_MAX_SEQ_DIGITS: Final = 18
_SIGNED_IN: Final = {
    "dealer": "doors.signed_in_dealer",
    "technician": "doors.signed_in_technician",
}
"""The roles that sign in at a console, and the text of the answer."""


class PostResult(Struct, frozen=True):
    """The response to a form."""

    done: bool
    message: str = field(name="said")
    stays: bool = False
    """The prompt is the same as before: without a message it would look as if nothing was done."""


class PostedForm:
    """A form and its browser. Has no repr: the form may contain a PIN."""

    def __init__(self, browser: Browser, form: Mapping[str, str]) -> None:
        self.browser = browser
        self.form = form


class ShownState(NamedTuple):
    """What was shown at one time."""

    shown: TableDisplay
    case: str
    """The name of the current hold."""


class ShownHistory:
    """The states that were shown lately, so that a press is compared with what it answers."""

    def __init__(self, table: RunningTable) -> None:
        self._table = table
        self._states = deque((ShownState(table.shown, table.case),), maxlen=MAX_STATES)

    def now(self) -> ShownState:
        self.note()
        self._name_case()
        return self._states[-1]

    def note(self) -> None:
        """Add the current state, if it is new. To be called on every change."""
        if self._table.shown is not self._states[-1].shown:
            self._name_case()
            self._states.append(ShownState(self._table.shown, ""))

    def at(self, seq: int) -> ShownState | None:
        """Returns the state with this seq; None if it is unknown or too old."""
        self.now()
        return next((one for one in reversed(self._states) if one.shown.seq == seq), None)

    def _name_case(self) -> None:
        # A case gets its name after it is shown, and before the next state is.
        self._states[-1] = ShownState(self._states[-1].shown, self._table.case)


class PostHandlers:
    """The forms of one table's console."""

    def __init__(
        self, api: TableApi, browsers: Browsers, history: ShownHistory, texts: Texts
    ) -> None:
        self._api = api
        self._browsers = browsers
        self._history = history
        self._texts = texts

    # --- people ---------------------------------------------------------------------------

    async def sign_in(self, sent: PostedForm) -> PostResult:
        browser, form = sent.browser, sent.form
        self._count_attempt(browser)
        relieve = form.get("relieve", "no")
        if relieve not in ("yes", "no"):
            raise Problem(400, "bad_field", "relieve cannot be this", "yes or no")
        role = form.get("role", "dealer")
        if role not in _SIGNED_IN:
            raise Problem(400, "bad_field", "role cannot be this", " or ".join(_SIGNED_IN))
        said = {"role": role, **{name: form.get(name, "") for name in ("badge", "pin")}}
        wanted = read_as({**said, "relieve": relieve == "yes"}, SignIn)
        done = await sign_in(self._api, browser.screen, wanted)
        self._browsers.renew(browser)
        return PostResult(True, self._texts(_SIGNED_IN[role], name=done.name))

    async def sign_out(self, sent: PostedForm) -> PostResult:
        done = await sign_out(self._api, sent.browser.screen)
        return PostResult(True, self._texts("doors.signed_out" if done.roles else "doors.nobody"))

    # --- acts -----------------------------------------------------------------------------

    async def act(self, sent: PostedForm) -> PostResult:
        browser, form = sent.browser, sent.form
        act = read_object(form.get("act", "").encode())
        kind = None if act.get("type") in (*NON_EVENT_ACTS, TEST) else kind_of_sent(act)
        then, now = self._pressed_on(form.get("seq", "")), self._history.now()
        if "badge" in form:
            game = self._api.served.table.parts.game
            if then is None or not same_case(kind, act, then, now, game):
                raise self._moved_on()
            return self._marked(await self._signed(browser, act, form), then)
        if then is None or not same_prompt(kind, then, now):
            raise self._moved_on()
        pressed_on = then

        def check_prompt() -> None:
            """An earlier press may have answered the prompt in the meantime."""
            if not same_prompt(kind, pressed_on, self._history.now()):
                raise CaseChanged

        return self._marked(await self._do(browser, act, check_prompt), then)

    def _marked(self, result: PostResult, then: ShownState) -> PostResult:
        """Add a message if the page will not show that the act was done."""
        if not result.done or not is_invisible(then, self._history.now()):
            return result
        plain = result.message == self._texts("doors.done")
        said = self._texts("doors.recorded") if plain else result.message
        return replace(result, message=said, stays=True)

    async def _signed(
        self, browser: Browser, act: dict[str, Any], form: Mapping[str, str]
    ) -> PostResult:
        """An act of the floor: signed by one or two people, and done."""
        self._count_attempt(browser)
        screen = browser.screen
        wanted = floor_act(self._api.served.table, act)
        try:
            for second, (badge, pin) in enumerate((("badge", "pin"), ("badge2", "pin2"))):
                if badge not in form:
                    continue
                self._check_unchanged(act, wanted)
                people = {"badge": form[badge], "pin": form.get(pin, ""), "second": bool(second)}
                await authorise(self._api, screen, read_as({"act": act, **people}, Authorise))
            self._check_unchanged(act, wanted)
            return await self._do(browser, act, floor=True)
        finally:
            # An act that was not done needs new signatures: none is left at the screen.
            screen.spend(wanted)
            self._api.views.notify()

    def _check_unchanged(self, act: dict[str, Any], wanted: Act) -> None:
        """The table continues while a PIN is checked: raises Problem if the case has changed."""
        if floor_act(self._api.served.table, act) != wanted:
            raise self._moved_on()

    async def _do(
        self,
        browser: Browser,
        act: dict[str, Any],
        check_prompt: Callable[[], None] | None = None,
        *,
        floor: bool = False,
    ) -> PostResult:
        api, screen, kind = self._api, browser.screen, act.get("type")
        serial = str(act.get("serial", ""))
        try:
            if kind == ADOPT:
                await adopt_device(
                    api, screen, serial, read_as({"skip": act.get("skip", False)}, AdoptDevice)
                )
                return PostResult(True, self._texts("doors.adopted", serial=serial))
            if kind == TEST:
                check_fields(act, ("serial",))
                return self._tested(await run_self_test(api.served, screen, serial))
            if kind == AGAIN:
                done = await shuffle_again(api, screen, floor=floor)
            else:
                done = await submit_act(api, screen, act, check_prompt=check_prompt, floor=floor)
        except Problem as problem:
            if problem.body.code == "moved_on":
                raise self._moved_on() from None
            raise
        for one in done.answers:
            if not one.taken:  # recorded, and not an error
                return PostResult(False, refused(one, self._texts))
        return PostResult(True, self._texts("doors.done"))

    def _tested(self, tested: Tested) -> PostResult:
        """The result of a self-test, with the device's argument, which a technician knows."""
        texts, serial = self._texts, tested.serial
        if tested.found == NOTHING_FOUND:
            return PostResult(True, texts("doors.tested_right", serial=serial), stays=True)
        found = texts(f"console.found.{tested.found}")
        if tested.arg:
            found = f"{found} {tested.arg}"
        return PostResult(True, texts("doors.tested_wrong", serial=serial, found=found), stays=True)

    # --- appearance -----------------------------------------------------------------------

    async def set_appearance(self, sent: PostedForm) -> PostResult:
        try:
            sent.browser.appearance = msgspec.convert(dict(sent.form), Appearance)
        except msgspec.ValidationError as problem:
            raise Problem(
                400, "bad_field", str(problem), "theme: auto, light or dark; suits: two or four"
            ) from None
        return PostResult(True, self._texts("doors.looks"))

    # --- problems -------------------------------------------------------------------------

    def _pressed_on(self, seq: str) -> ShownState | None:
        if not seq.isascii() or not seq.isdigit() or len(seq) > _MAX_SEQ_DIGITS:
            raise Problem(400, "bad_field", "seq cannot be this", "the seq of what was pressed on")
        return self._history.at(int(seq))

    def _moved_on(self) -> Problem:
        return Problem(409, "moved_on", self._texts("doors.moved_on"))

    def _count_attempt(self, browser: Browser) -> None:
        """Raises Problem if too many badges and PINs were sent from here, or from all pages."""
        if not self._browsers.may_try(browser):
            what, wait = self._texts("doors.too_often"), round(ATTEMPT_INTERVAL)
            raise Problem(429, "too_often", what, wait=wait)


def same_prompt(kind: type[Event] | None, then: ShownState, now: ShownState) -> bool:
    """Returns whether the act answers the current prompt as it answered the earlier one."""
    return kind in ANY_TIME or _prompt(then.shown) == _prompt(now.shown)


def is_invisible(then: ShownState, now: ShownState) -> bool:
    """Returns whether the page looks the same after the act. Wagers are always visible."""
    visible = Step.WAGERING in (then.shown.state.step, now.shown.state.step)
    return not visible and _prompt(then.shown) == _prompt(now.shown)


def same_case(
    kind: type[Event] | None,
    sent: Mapping[str, Any],
    then: ShownState,
    now: ShownState,
    game: Game,
) -> bool:
    """Returns whether the floor would sign for the same act in both states."""
    if kind is None or then == now:
        return True
    before, after = (act_for(kind, sent, one.shown.state, game, one.case) for one in (then, now))
    return before == after


def _prompt(shown: TableDisplay) -> tuple[object, ...]:
    """The prompt, and everything that its answer would refer to."""
    s = shown.state
    if s.step is Step.WAGERING:  # wagers of different seats are independent
        return s.step, s.round, s.holds
    return s.step, s.round, s.turn, s.asked, s.due, s.holds, shown.prompt
