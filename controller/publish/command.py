"""`holecard procedure`: prints a game's procedure; checks and writes the published pages."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec

from controller.commands import reason
from controller.config import SET, installed, read_settings
from controller.errors import EXIT_NO, UsageProblem
from controller.publish import pages, rows
from controller.publish.diagram import diagram

FOLDER = "procedures"


def run(args: argparse.Namespace) -> int:
    if args.whole and not args.diagram:
        raise UsageProblem("--whole", "only a diagram can be drawn whole", "--diagram --whole")
    if args.check or args.write:
        return _published(args)
    if args.game is None:
        raise UsageProblem(
            "GAME", "is missing", f"{', '.join(installed('game'))}, or a file; --check needs none"
        )
    published = rows.load(args.game, read_settings(args.settings), SET)
    page = rows.page(published)
    if args.diagram:
        text = diagram(published.game, whole=args.whole)
    elif args.markdown:
        text = pages.markdown(page, diagram(published.game))
    elif args.json:
        text = msgspec.json.format(msgspec.json.encode(page), indent=2).decode() + "\n"
    else:
        text = pages.plain(page)
    print(text, end="")
    return 0


# --- the published pages ----------------------------------------------------------------------


def fresh(game: str) -> str:
    """Returns the current page of an installed game."""
    published = rows.load(game)
    return pages.markdown(rows.page(published), diagram(published.game))


def folder() -> Traversable:
    """Returns the folder of the published pages."""
    return resources.files("configs").joinpath(FOLDER)


def stale() -> Iterator[tuple[str, str]]:
    """Yields each page that is missing or stale, and its error."""
    for game in installed("game"):
        lies = folder().joinpath(f"{game}.md")
        if not lies.is_file():
            yield lies.name, "is missing"
        elif lies.read_bytes() != fresh(game).encode():
            yield lies.name, "is stale"
    for name in _of_no_game():
        yield name, "is the page of no game"


def _of_no_game() -> list[str]:
    games = installed("game")
    names = [page.name for page in folder().iterdir()] if folder().is_dir() else []
    return sorted(n for n in names if n.endswith(".md") and n.removesuffix(".md") not in games)


def _published(args: argparse.Namespace) -> int:
    if args.game is not None or args.settings:
        raise UsageProblem(
            "--check" if args.check else "--write",
            "the published pages are those of our games as they stand",
            "no GAME and no --set",
        )
    if args.write:
        return _write()
    found = list(stale())
    for name, what in found:
        print(f"configs/{FOLDER}/{name} {what}")
    if not found:
        print(f"ok: the pages in configs/{FOLDER} are fresh")
        return 0
    print("write them anew with: holecard procedure --write", file=sys.stderr)
    return EXIT_NO


def _write() -> int:
    place = folder()
    if not isinstance(place, Path):
        raise UsageProblem(f"configs/{FOLDER}", "cannot be written here", "a folder on disk")
    try:
        place.mkdir(exist_ok=True)
        for game in installed("game"):
            text = fresh(game).encode()
            page = place / f"{game}.md"
            if not page.is_file() or page.read_bytes() != text:
                page.write_bytes(text)
                print(f"configs/{FOLDER}/{page.name} written")
        for name in _of_no_game():
            (place / name).unlink()
            print(f"configs/{FOLDER}/{name} removed: the page of no game")
    except OSError as error:
        raise UsageProblem(
            f"configs/{FOLDER}", f"cannot be written: {reason(error)}", "a folder that is yours"
        ) from None
    return 0
