"""The dealer's page in Chromium, and a hand at it: by touch, or by keyboard alone.

    async with chromium() as browser, dealing(stage, browser, Touch) as dealer:
        await Robot(stage, dealer, players).play(lambda shown: ...)

The robot deals as it does at the API; what it wants to do is looked for among the buttons that the
page offers, pressed there, and filled in where the page asks.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, Response, async_playwright, expect

from controller.procedure.model.row import Refused
from controller.table.memory import TableDisplay
from hil.table.robots import Console
from hil.table.robots.robot import Who
from hil.table.setup import DEALER, FLOOR, SECOND, RobotBadge
from tests.conftest import require

T = TypeVar("T")
CHROMIUM: Final = shutil.which("chromium") or ""
SIZES: Final = {"small": (800, 480), "usual": (1280, 800), "large": (1920, 1080)}
PATIENCE: Final = 20_000
"""Milliseconds for anything that a page is to do."""
_MOST_TABS: Final = 120
_PEOPLE: Final = (FLOOR, SECOND)
"""Who signs for what the floor does, as far as the page asks for them."""


InChromium: TypeAlias = Callable[[Callable[[Browser], Coroutine[Any, Any, T]]], T]


@contextmanager
def kept_open() -> Iterator[InChromium[Any]]:
    """What runs a coroutine with a browser that stays open for the next one."""
    with asyncio.Runner() as loop:
        stack = AsyncExitStack()
        browser = loop.run(stack.enter_async_context(chromium()))
        try:
            yield lambda looks: loop.run(looks(browser))
        finally:
            loop.run(stack.aclose())


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    require(CHROMIUM, "Debian's chromium; `make deps-full` installs it")
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield launched
        finally:
            await launched.close()


async def page_at(browser: Browser, url: str, size: str = "usual", *, touch: bool = False) -> Page:
    """A new browser session that looks at the table. What the page says to its console, or fails
    of, fails the test: see `wrong`."""
    width, height = SIZES[size]
    context = await browser.new_context(
        viewport={"width": width, "height": height}, has_touch=touch, reduced_motion="reduce"
    )
    context.set_default_timeout(PATIENCE)
    page = await context.new_page()
    await page.goto(url)
    return page


# --- hands ------------------------------------------------------------------------------------


class Hand(Protocol):
    """How somebody works the page."""

    page: Page

    async def press(self, button: str) -> None:
        """The button with this id."""

    async def fill(self, field: str, text: str) -> None: ...

    async def choose(self, radio: str) -> None: ...


class Touch:
    """With a finger alone; letters come from the badge's reader."""

    def __init__(self, page: Page) -> None:
        self.page = page

    async def press(self, button: str) -> None:
        await self.page.locator(f'[id="{button}"]').tap()

    async def fill(self, field: str, text: str) -> None:
        """Digits by the pad beside the fields, where there is one."""
        place = self.page.locator(f'[id="{field}"]')
        await place.tap()
        await place.fill("")
        pad = self.page.locator("dialog[open] .pad")
        if not text.isdigit() or not await pad.locator("button").count():
            await place.press_sequentially(text)
            return
        for digit in text:
            await pad.get_by_role("button", name=digit, exact=True).tap()

    async def choose(self, radio: str) -> None:
        await self.page.locator(f'label[for="{radio}"]').tap()


class Keys:
    """With the keyboard alone: by the letter on a button, or by Tab and Enter."""

    def __init__(self, page: Page) -> None:
        self.page = page

    async def press(self, button: str) -> None:
        place = self.page.locator(f'[id="{button}"]')
        await expect(place).to_be_enabled(timeout=PATIENCE)  # a new instruction's are not at once
        key = await place.get_attribute("data-key")
        if key and not await self.page.locator("dialog[open]").count():
            await self.page.keyboard.press(key)
            return
        await self._go(button)
        await self.page.keyboard.press("Enter")

    async def fill(self, field: str, text: str) -> None:
        await self._go(field)
        await self.page.keyboard.press("Control+a")
        await self.page.keyboard.type(text)

    async def choose(self, radio: str) -> None:
        """Radios of one name are one stop; the arrows go along them."""
        name, wanted = await self.page.locator(f'[id="{radio}"]').evaluate(
            "one => [one.name, one.id]"
        )
        for _ in range(_MOST_TABS):
            if (await self.page.evaluate("document.activeElement.name")) == name:
                break
            await self.page.keyboard.press("Tab")
        for _ in range(_MOST_TABS):
            if await self.page.evaluate("document.activeElement.id") == wanted:
                await self.page.keyboard.press("Space")
                return
            await self.page.keyboard.press("ArrowRight")
        raise AssertionError(f"no arrow leads to {radio}")

    async def _go(self, wanted: str) -> None:
        for _ in range(_MOST_TABS):
            if await self.page.evaluate("document.activeElement.id") == wanted:
                return
            await self.page.keyboard.press("Tab")
        raise AssertionError(f"no Tab leads to {wanted}")


# --- what the page offers ---------------------------------------------------------------------


class Offered(NamedTuple):
    """A button that would do it, and what is asked after it."""

    id: str
    in_sheet: bool
    asks: list[dict[str, Any]]
    people: int
    sure: bool


_BUTTONS: Final = """() => [...document.querySelectorAll("#console button.act[data-act]")].map(
  one => ({id: one.id, act: one.dataset.act, asks: one.dataset.asks,
           people: Number(one.dataset.people), sheet: one.closest("dialog") !== null,
           sure: one.dataset.sure !== undefined, disabled: one.disabled}))"""


class NotOffered(AssertionError):
    """No button does it."""


class PageDealer:
    """The dealer's screen of a robot, in a browser. `watcher` sees what the API shows everybody."""

    def __init__(self, page: Page, hand: Hand, watcher: Console) -> None:
        self.page = page
        self.hand = hand
        self.watcher = watcher
        self.pressed: list[str] = []
        """The ids of buttons that were pressed for acts."""

    @property
    def shown(self) -> TableDisplay:
        return self.watcher.shown

    async def words(self) -> str:
        """What the page says now: the instruction, with what belongs to it, and the troubles."""
        await self.caught_up()
        parts = await self.page.locator("#now, #troubles").all_inner_texts()
        return " ".join(" ".join(parts).split())

    async def caught_up(self) -> None:
        """The page shows what the table shows."""
        await self.page.wait_for_function(
            "seq => document.documentElement.dataset.live !== undefined "
            "&& Number(document.getElementById('console')?.dataset.seq) >= seq",
            arg=self.shown.seq,
        )

    async def sign_in(self, who: RobotBadge = DEALER, *, relieve: bool = False) -> None:
        await self.caught_up()
        await self.hand.press("sign-in")
        await self.hand.fill("sign-badge", who.badge)
        await self.hand.fill("sign-pin", who.pin)
        if relieve:
            await self.hand.choose("sign-relieve")
        async with self.page.expect_navigation():
            await self.hand.press("sign-send")
        await self.page.wait_for_selector("#sign-out")

    async def act(self, name: str, fields: Mapping[str, Any], who: Who) -> Refused | None:
        """NotOffered. What the procedure refuses stands on the page."""
        await self.caught_up()
        wanted = dict(fields)
        if "bank" in wanted:
            wanted.setdefault("counted_again", wanted["bank"])
        found = await self._find(name, wanted)
        assert bool(found.people) == (who != "dealer"), (name, found)
        if found.in_sheet:
            await self.hand.press("open-sheet")
        self.pressed.append(found.id)
        async with self.page.expect_response(_acts) as waiting:
            await self.hand.press(found.id)
            if found.asks or found.people or found.sure:
                await self._answer(found, wanted)
        response = await waiting.value
        said = await response.json()
        assert response.ok, (name, fields, said)
        if said["done"]:
            return None
        # What was refused is told where the dealer looks.
        await self.page.get_by_text(said["said"]).first.wait_for()
        if await self.page.locator("#ask[open]").count():
            await self.hand.press("ask-cancel")
        return Refused("", said["said"])

    async def shuffle_again(self) -> None:
        await self.act("ShuffleAgain", {}, "floor")

    async def _find(self, name: str, wanted: Mapping[str, Any]) -> Offered:
        buttons = await self.page.evaluate(_BUTTONS)
        for one in buttons:
            act = json.loads(one["act"])
            asks = json.loads(one["asks"])
            open_to = {ask["name"] for ask in asks}
            fits = act.pop("type") == name and not one["disabled"]
            same = all(wanted.get(field, value) == value for field, value in act.items())
            if fits and same and set(wanted) <= act.keys() | open_to:
                return Offered(one["id"], one["sheet"], asks, one["people"], one["sure"])
        raise NotOffered(f"{name} {dict(wanted)} is none of {[one['act'] for one in buttons]}")

    async def _answer(self, found: Offered, wanted: Mapping[str, Any]) -> None:
        await self.page.wait_for_selector("#ask[open]")
        for ask in found.asks:
            if ask["name"] in wanted:
                await self._field(ask, wanted[ask["name"]])
        for number, one in enumerate(_PEOPLE[: found.people]):
            which = str(number + 1) if number else ""
            await self.hand.fill(f"field-badge{which}", one.badge)
            await self.hand.fill(f"field-pin{which}", one.pin)
        await self.hand.press("ask-send")

    async def _field(self, ask: Mapping[str, Any], value: Any) -> None:
        match ask["kind"]:
            case "money":
                digits = int(await self._of_table("digits"))
                await self.hand.fill(f"field-{ask['name']}", _money(value, digits))
            case "card":
                await self.hand.choose(f"field-rank-{value % 13}")
                await self.hand.choose(f"field-suit-{value // 13}")
            case "one":
                await self.hand.choose(f"field-{ask['name']}-{value}")
            case _:
                await self.hand.fill(f"field-{ask['name']}", str(value))

    async def _of_table(self, name: str) -> str:
        found = await self.page.locator("#console").get_attribute(f"data-{name}")
        assert found is not None
        return found


def _money(amount: int, digits: int) -> str:
    whole, rest = divmod(amount, 10**digits)
    return f"{whole}.{rest:0{digits}}" if rest else str(whole)


def _acts(response: Response) -> bool:
    return response.request.method == "POST" and response.url.endswith("/act")


FINGER: Final = 64
"""Pixels that a target is wide and high at least."""
_AXE: Final[dict[str, Any]] = {
    "resultTypes": ["violations"],
    # 7:1, which is more than axe asks for by itself.
    "rules": {"color-contrast-enhanced": {"enabled": True}},
}

_SMALL: Final = """least => {
  const open = document.querySelector("dialog[open]");
  const place = open ?? document;
  // A radio or a box is hit by its label.
  const targets = [...place.querySelectorAll("button, input, select, textarea, a[href]")]
    .filter((one) => !one.matches(".skip"))
    .map((one) => (one.matches("input[type=radio], input[type=checkbox]")
      ? document.querySelector(`label[for="${one.id}"]`) ?? one : one));
  return targets.map((one) => [one, one.getBoundingClientRect()])
    .filter(([one, box]) => box.width > 0 && one.checkVisibility())
    .filter(([one, box]) => Math.round(box.width) < least || Math.round(box.height) < least)
    .map(([one, box]) => `${one.id || one.htmlFor || one.textContent.trim()}: ` +
      `${Math.round(box.width)}x${Math.round(box.height)}`);
}"""

_WIDE: Final = """() => {
  const root = document.scrollingElement;
  return root.scrollWidth > root.clientWidth ? `${root.scrollWidth} of ${root.clientWidth}` : "";
}"""

_SEEN: Final = (
    "#instruction, #felt, #answers .act, #wagers .act.look-choice, #payment, #interrupt, #again, "
    "#banner:not([hidden]), #status .mark-alarm, #status .mark-care"
)
_HIDDEN: Final = """wanted => [...document.querySelectorAll(wanted)].filter((one) => {
  const box = one.getBoundingClientRect();
  if (box.top < 0 || box.left < 0) return true;
  if (box.bottom > innerHeight || box.right > innerWidth) return true;
  // Nothing lies over its edges.
  const middle = box.left + box.width / 2;
  return [box.top + 2, box.bottom - 2]
    .map((y) => document.elementFromPoint(middle, y))
    .some((found) => found === null || !(one.contains(found) || found.contains(one)));
}).map((one) => one.id || one.textContent.trim())"""

_CUT: Final = """() => [...document.querySelectorAll(
    "button, h1, h2, h3, p, li, label, legend, dt, dd")]
  .filter((one) => one.checkVisibility() && !one.matches(".skip, .unseen *"))
  .filter((one) => getComputedStyle(one).clipPath === "none")  // else it is for screen readers
  .filter((one) => getComputedStyle(one).overflow !== "visible"
    ? one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1
    : [...one.children].some((child) => {
        const out = child.getBoundingClientRect();
        const box = one.getBoundingClientRect();
        return one.matches("button, label.option") && out.width > 0
          && (out.right > box.right + 1 || out.bottom > box.bottom + 1);
      }))
  .map((one) => one.id || one.textContent.trim().slice(0, 60))"""


_OUT: Final = """() => [...document.querySelectorAll("svg.plot text")]
  .filter((one) => {
    const plot = one.ownerSVGElement.getBoundingClientRect();
    const box = one.getBoundingClientRect();
    return box.left < plot.left - 1 || box.right > plot.right + 1;
  })
  .map((one) => one.textContent)"""


async def cut_names(page: Page) -> list[str]:
    """Words of plots that do not fit into them."""
    found: list[str] = await page.evaluate(_OUT)
    return found


_UNFIT: Final = """scrolls => {
  const box = (one) => one.getBoundingClientRect();
  const words = [...document.querySelectorAll("#felt-picture > text")]
    .filter((one) => getComputedStyle(one).display !== "none");
  // Their boxes are as high as letters can be: a little of those may meet.
  const meet = (one, two) => {
    const [a, b] = [box(one), box(two)];
    return Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
      && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4.5;
  };
  const wrong = words.flatMap((one, at) => words.slice(at + 1).filter((two) => meet(one, two))
    .map((two) => `${one.textContent} / ${two.textContent}`));
  const low = [...document.querySelectorAll("h1, #answers button, #wagers button")]
    .filter((one) => one.offsetParent && box(one).bottom > innerHeight);
  if (!scrolls && document.documentElement.scrollHeight > innerHeight) wrong.push("scrolls");
  return [...wrong, ...low.map((one) => `too low: ${one.id || one.textContent.trim()}`)];
}"""


async def unfit(page: Page, *, scrolls: bool) -> list[str]:
    """Words on the felt that lie on others, answers below the screen; `scrolls`: as it may here."""
    found: list[str] = await page.evaluate(_UNFIT, scrolls)
    return found


async def barred(page: Page) -> list[str]:
    """What axe says bars somebody from it, at the strictest contrast. The page's context must let
    scripts of ours in: bypass_csp."""
    found = await Axe().run(page, options=_AXE)
    return [
        f"{one['id']}: {', '.join(str(node['target'][0]) for node in one['nodes'][:4])}"
        for one in found.response["violations"]
    ]


async def too_small(page: Page) -> list[str]:
    """Targets that a finger does not hit."""
    found: list[str] = await page.evaluate(_SMALL, FINGER)
    return found


async def scrolls_sideways(page: Page) -> str:
    found: str = await page.evaluate(_WIDE)
    return found


async def out_of_sight(page: Page) -> list[str]:
    """What must be seen without scrolling, and is not wholly."""
    found: list[str] = await page.evaluate(_HIDDEN, _SEEN)
    return found


async def cut_off(page: Page) -> list[str]:
    """Words that do not fit where they stand."""
    found: list[str] = await page.evaluate(_CUT)
    return found


async def wrong_with(page: Page, *, dialog: bool) -> list[str]:
    """All of it, in words."""
    wide = await scrolls_sideways(page)
    found = [f"scrolls sideways: {wide}"] if wide else []
    found += [f"too small: {one}" for one in await too_small(page)]
    found += [f"cut off: {one}" for one in await cut_off(page)]
    if not dialog:
        found += [f"out of sight: {one}" for one in await out_of_sight(page)]
    return found + [f"barred: {one}" for one in await barred(page)]
