"""What is wrong with a page as a browser shows it: for whom it cannot be used, what a finger does
not hit, and what a small screen hides."""

from __future__ import annotations

from typing import Any, Final

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page

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
