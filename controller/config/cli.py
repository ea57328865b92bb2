"""`holecard config`: validates configuration files, and shows every option with its source."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from controller.commands import Subparsers, add_command, add_group, help_text, print_json
from controller.config import equipment, files, loader
from controller.config.loader import Anything, GameSheet, JurisdictionFile, TableConfig
from controller.config.options import (
    OPTION_TEXT,
    SET,
    OptionOrigin,
    add_settings,
    allowed,
    plain,
    read_settings,
    written,
)
from controller.errors import EXIT_USAGE, UsageProblem, each, printable
from controller.rules.irregularities import Irregularity

_MAX_WIDTH = 22
"""Of the column of values; a longer value widens its own line only."""


def register(subparsers: Subparsers) -> None:
    commands = add_group(
        subparsers,
        "config",
        "check and explain games and tables",
        description="Checks and explains game sheets, table files and jurisdictions.",
    )
    check = add_command(
        commands,
        "check",
        "say whether files can be used",
        check_files,
        epilog=help_text(
            ("config check configs/tables/*.toml", "config check mygame.toml --json"),
            exit_codes={
                0: "every file can be used",
                2: "at least one cannot (file, key, what is allowed)",
            },
        ),
        json=True,
    )
    check.add_argument("files", nargs="+", metavar="FILE", help="a game, table or jurisdiction")
    show = add_command(
        commands,
        "show",
        "list options and where they came from",
        show_options,
        epilog=help_text(
            (
                "config show maxtime",
                "config show configs/tables/mega-1.toml --explain",
                "config show sf21x --set blackjack.tie=push --set decks=2 --json",
            ),
            "A VALUE is a word, a number, true, false, odds such as 3:2, or JSON; null or none "
            "takes an option\naway.",
            {0: "shown", 2: "the file or an option cannot be used"},
        ),
        json=True,
    )
    games = ", ".join(files.installed("game"))
    show.add_argument("name", metavar="FILE_OR_GAME", help=f"a file, or {games}")
    add_settings(show)
    show.add_argument("--explain", action="store_true", help="say what each option is")


# --- check ------------------------------------------------------------------------------------


def check_files(args: argparse.Namespace) -> int:
    """Load and validate each file. Returns 2 if one of them cannot be used."""
    findings = [(file, *_check(file)) for file in args.files]
    if args.json:
        print_json({"files": [_finding(*finding) for finding in findings]})
    for file, found, problems in findings:
        for problem in problems:
            print(problem, file=sys.stderr)
        if found is not None and not args.json:
            print(f"ok: {printable(file)}: {_title(found)}")
    return EXIT_USAGE if any(problems for _, _, problems in findings) else 0


def _check(file: str) -> tuple[Anything | None, tuple[UsageProblem, ...]]:
    try:
        return loader.load(file), ()
    except UsageProblem as problem:
        return None, each(problem)


def _finding(
    file: str, found: Anything | None, problems: Sequence[UsageProblem]
) -> dict[str, object]:
    return {
        "file": printable(file),
        "ok": not problems,
        "is": None if found is None else _title(found),
        "problems": [
            {"where": problem.where, "what": problem.what, "allowed": problem.allowed}
            for problem in problems
        ],
    }


def _title(found: Anything) -> str:
    match found:
        case GameSheet():
            return f"game {found.name}, {found.title}"
        case TableConfig():
            return f"table {found.name}, {found.title}, dealing {found.sheet.title}"
        case JurisdictionFile():
            return f"jurisdiction {found.rulings.name}, {found.rulings.title}"


# --- show -------------------------------------------------------------------------------------


def show_options(args: argparse.Namespace) -> int:
    """Print every option of a game or table, or every ruling of a jurisdiction."""
    settings = read_settings(args.settings)
    found = loader.load(args.name, settings, overrides_from=SET)
    if settings and isinstance(found, JurisdictionFile):
        raise UsageProblem(SET, "a jurisdiction has no game to set options of", "a game or table")
    if args.json:
        print_json(_as_json(found), ascii_only=False)
        return 0
    print(f"{_title(found)} ({found.file})")
    for line in _lines(found, explaining=args.explain):
        print(line)
    return 0


def _lines(found: Anything, *, explaining: bool) -> Iterator[str]:
    match found:
        case GameSheet():
            yield from _option_lines(found, explaining=explaining)
        case TableConfig():
            currency = found.currency
            yield f"game {found.sheet.name}, {found.sheet.title} ({found.sheet.file})"
            yield f"jurisdiction {found.jurisdiction.name}, {found.jurisdiction.title}"
            yield (
                f"{found.seats} seats; {currency.code}, written {currency.symbol}, "
                f"{currency.minor_digits} digits after the point"
            )
            yield from equipment.lines(found.equipment)
            yield from _option_lines(found.sheet, explaining=explaining)
        case JurisdictionFile():
            yield from _ruling_lines(found)


def _option_lines(sheet: GameSheet, *, explaining: bool) -> Iterator[str]:
    values = {path: written(origin.value) for path, origin in sheet.origin.items()}
    wide = min(_MAX_WIDTH, max(map(len, values.values())))
    far = max(len(origin.source) for origin in sheet.origin.values())
    for path, origin in sheet.origin.items():
        clauses = ", ".join(_clauses(sheet, path, origin))
        yield f"{path:<32}  {values[path]:<{wide}}  {origin.source:<{far}}  {clauses}".rstrip()
        if explaining:
            may_be = allowed(path, sheet.decks_allowed)
            yield f"    {OPTION_TEXT[path]} Allowed: {may_be}."
            for clause in _clauses(sheet, path, origin):
                yield f"    {clause}: {sheet.clauses[clause]}"


def _clauses(sheet: GameSheet, path: str, origin: OptionOrigin) -> tuple[str, ...]:
    """Returns the clauses that give the value; none if another layer outranks the sheet."""
    return sheet.because.get(path, ()) if origin.layer == "sheet" else ()


def _ruling_lines(found: JurisdictionFile) -> Iterator[str]:
    rulings = found.rulings
    yield f"rounds after the cut card: {rulings.rounds_after_cut}"
    yield f"payments declared first: {written(rulings.declare_payments)}"
    yield f"two people for: {', '.join(rulings.two_people) or 'nothing'}"
    for path, value in found.layer.values.items():
        yield f"{path:<32}  {written(value)}"
    for name, ruling in rulings.ways.items():
        choice = f": {', '.join(way.value for way in ruling.options)}" if ruling.options else ""
        second = "; two people" if ruling.two_people else ""
        silent = "; the file is silent" if name in found.silent else ""
        yield f"{name:<32}  {ruling.way.value}{choice}{second}{silent}"
        if ruling.text:
            yield f"    {ruling.text}"


def _as_json(found: Anything) -> dict[str, object]:
    match found:
        case GameSheet():
            return {"kind": "game", **_game_json(found)}
        case TableConfig():
            return {
                "kind": "table",
                "name": found.name,
                "title": found.title,
                "file": found.file,
                "seats": found.seats,
                "currency": {
                    "symbol": found.currency.symbol,
                    "code": found.currency.code,
                    "minor_digits": found.currency.minor_digits,
                },
                "jurisdiction": found.jurisdiction.name,
                "equipment": equipment.as_json(found.equipment),
                "game": _game_json(found.sheet),
            }
        case JurisdictionFile():
            return _jurisdiction_json(found)


def _game_json(sheet: GameSheet) -> dict[str, object]:
    return {
        "name": sheet.name,
        "title": sheet.title,
        "source": sheet.source,
        "file": sheet.file,
        "decks_allowed": list(sheet.decks_allowed),
        "options": {
            path: {
                "value": plain(origin.value),
                "layer": origin.layer,
                "source": origin.source,
                "clauses": list(_clauses(sheet, path, origin)),
                "text": OPTION_TEXT[path],
                "allowed": allowed(path, sheet.decks_allowed),
            }
            for path, origin in sheet.origin.items()
        },
        "clauses": sheet.clauses,
    }


def _jurisdiction_json(found: JurisdictionFile) -> dict[str, object]:
    rulings = found.rulings
    return {
        "kind": "jurisdiction",
        "name": rulings.name,
        "title": rulings.title,
        "source": rulings.source,
        "file": found.file,
        "rounds_after_cut": rulings.rounds_after_cut,
        "declare_payments": rulings.declare_payments,
        "two_people": list(rulings.two_people),
        "options": {path: plain(value) for path, value in found.layer.values.items()},
        "ways": {
            what.value: {
                "way": rulings.ruling(what).way.value,
                "options": [way.value for way in rulings.ruling(what).options],
                "two_people": rulings.ruling(what).two_people,
                "text": rulings.ruling(what).text,
                "silent": what.value in found.silent,
            }
            for what in Irregularity
        },
    }
