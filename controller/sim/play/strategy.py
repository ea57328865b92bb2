"""Playing strategies: parsed from charts, compiled to tables, one decision per lookup.

A strategy file is TOML: `name`, `note`, `insurance` and `even_money` ("never" or "always"), and
charts. A row of a chart is a string of ten cells, one for each card the dealer may show, in the
order 2 3 4 5 6 7 8 9 T A. A cell lists decisions in order of preference, the first letter in upper
case, the others in lower case: `H` hit, `S` stand, `P` split, `Dh` double if that is allowed, else
hit, `Rs` surrender, else stand. If no decision of a cell is allowed, the hand stands.

    [hard] [soft]        hands by their best total: every row from 4 to 21 and from 12 to 21
    [pairs]              two cards of equal value: every row of 2 to 9, T, A. After the cell's own
                         letters come those of the total, so `-` means: play it as its total
    [hard-4] [soft-4]    hands of exactly so many cards; rows left out are as in [hard], [soft]
    [split-hard]         hands that came from a split, whatever their count; [split-soft] likewise
    [doubled-hard]       hands that were doubled; rows left out stand; [doubled-soft] likewise
    [doubled-hard-2]     doubled exactly so often; rows left out are as in [doubled-hard]

A row may cover several totals: `17-21 = "S S S S S S S S S S"`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from controller.errors import UsageProblem
from controller.rules.hands import DOUBLE, HIT, SPLIT, STAND, SURRENDER

_LETTERS: Final = {"H": HIT, "S": STAND, "D": DOUBLE, "P": SPLIT, "R": SURRENDER}
_UPS: Final = (2, 3, 4, 5, 6, 7, 8, 9, 10, 1)
_TOTALS: Final = {"hard": range(4, 22), "soft": range(12, 22)}
_PAIRS: Final = {**{str(value): value for value in range(2, 10)}, "T": 10, "A": 1}
_ANSWERS: Final = {"never": False, "always": True}
_SECTION: Final = re.compile(
    r"pairs|(hard|soft)(-[2-9])?|split-(hard|soft)|doubled-(hard|soft)(-[1-7])?"
)
_SECTIONS: Final = (
    "hard, soft, pairs, hard-2 to hard-9, soft-2 to soft-9, split-hard, split-soft, "
    "doubled-hard, doubled-soft, doubled-hard-1 to doubled-hard-7, doubled-soft-1 to doubled-soft-7"
)
_STRATEGIES: Final = Path(__file__).with_name("strategies")

Cell = tuple[int, ...]  # preferences, in order
Rows = Mapping[int, Mapping[int, Cell]]  # by total (or a pair's value) and up card
Line = tuple[int, ...]  # the decision, by mask of legal choices
Chart = tuple[tuple[Line, ...], ...]  # by total (or a pair's value) and up card


class Strategy(Struct, frozen=True):
    """The decisions for all hands; made by `parse`, `load`, `basic`, or in POLICIES.

    The tables cover hands of up to 31 cards, totals up to 31 and up to 7 doubles.
    """

    name: str
    note: str
    insurance: bool
    even_money: bool
    plain: tuple[tuple[tuple[Chart, ...], ...], ...]  # [split][soft][count]
    doubled: tuple[tuple[Chart, ...], ...]  # [soft][doubles]
    pairs: tuple[Chart, ...]  # [split]

    def choose(  # noqa: PLR0913, PLR0917 - all inputs of a decision; a struct would be too slow
        self,
        total: int,
        soft: bool,
        count: int,
        pair: int,
        doubles: int,
        split: bool,
        up: int,
        legal: int,
    ) -> int:
        """Returns the bit of `legal` that is played; 0 only if nothing is legal.

        `total` is the best total, `soft` whether an ace counts 11 in it, `count` the number of
        cards, `pair` the value 1 to 10 of two cards of equal value, else 0, `doubles` how often
        the hand was doubled, `split` whether it came from a split, `up` the dealer's value, 1 for
        an ace.
        """
        if doubles:
            return self.doubled[soft][doubles][total][up][legal]
        if pair:
            return self.pairs[split][pair][up][legal]
        return self.plain[split][soft][count][total][up][legal]


# --- from rows to tables --------------------------------------------------------------------


@cache
def _line(cell: Cell) -> Line:
    def play(legal: int) -> int:
        return next((bit for bit in (*cell, STAND) if bit & legal), legal & -legal)

    return tuple(play(legal) for legal in range(32))


def _chart(rows: Rows, size: int) -> Chart:
    return tuple(
        tuple(_line(rows.get(row, {}).get(up, ())) for up in range(11)) for row in range(size)
    )


def _plain(charts: Mapping[str, Rows], split: bool, kind: str, count: int) -> Rows:
    rows = {**charts[kind], **charts.get(f"{kind}-{count}", {})}
    return {**rows, **charts.get(f"split-{kind}", {})} if split else rows


def _doubled(charts: Mapping[str, Rows], kind: str, times: int) -> Rows:
    return {**charts.get(f"doubled-{kind}", {}), **charts.get(f"doubled-{kind}-{times}", {})}


def _paired(charts: Mapping[str, Rows], split: bool) -> Rows:
    """Returns the cells of pairs, each followed by those of the total."""
    hard = _plain(charts, split, "hard", 2)
    soft = _plain(charts, split, "soft", 2)
    return {
        value: {
            up: cell + (soft[12] if value == 1 else hard[2 * value])[up]
            for up, cell in cells.items()
        }
        for value, cells in charts["pairs"].items()
    }


def _counts(charts: Mapping[str, Rows], split: bool, kind: str) -> tuple[Chart, ...]:
    wide = _chart(_plain(charts, split, kind, 0), 32)
    return tuple(
        _chart(_plain(charts, split, kind, count), 32) if f"{kind}-{count}" in charts else wide
        for count in range(32)
    )


def _compile(
    name: str, note: str, charts: Mapping[str, Rows], insurance: bool, even_money: bool
) -> Strategy:
    both = (False, True)
    kinds = ("hard", "soft")
    return Strategy(
        name=name,
        note=note,
        insurance=insurance,
        even_money=even_money,
        plain=tuple(tuple(_counts(charts, split, kind) for kind in kinds) for split in both),
        doubled=tuple(
            tuple(_chart(_doubled(charts, kind, times), 32) for times in range(8)) for kind in kinds
        ),
        pairs=tuple(_chart(_paired(charts, split), 11) for split in both),
    )


# --- from a file to rows --------------------------------------------------------------------


def _cell(where: str, section: str, text: str) -> Cell:
    """Parse one cell. Returns its preferences; none for a pair's `-`."""
    if section == "pairs" and text == "-":
        return ()
    letters = {"pairs": "HSDPR"}.get(section, "SDR" if section.startswith("doubled") else "HSDR")
    good = (
        text != ""
        and text == text[0].upper() + text[1:].lower()
        and len(set(text.upper())) == len(text)
        and set(text.upper()) <= set(letters)
    )
    if not good:
        allowed = f"one large letter of {', '.join(letters)}, further ones small, none twice"
        if section == "pairs":
            allowed += "; or - for as its total"
        raise UsageProblem(where, f"the cell {text!r} says nothing", allowed)
    return tuple(_LETTERS[letter] for letter in text.upper())


def _row(where: str, section: str, row: object) -> Mapping[int, Cell]:
    allowed = "a string of ten cells, for 2 3 4 5 6 7 8 9 T A"
    if not isinstance(row, str):
        raise UsageProblem(where, "not a row of cells", allowed)
    cells = row.split()
    if len(cells) != len(_UPS):
        raise UsageProblem(where, f"a row of {len(cells)} cells", allowed)
    return {up: _cell(where, section, cell) for up, cell in zip(_UPS, cells, strict=True)}


def _meant(where: str, section: str, key: str) -> Iterator[int]:
    """Returns the totals, or the pair's value, that a row's key covers."""
    if section == "pairs":
        if key not in _PAIRS:
            raise UsageProblem(where, "unknown row", ", ".join(_PAIRS))
        yield _PAIRS[key]
        return
    totals = _TOTALS["soft" if "soft" in section else "hard"]
    ends = re.fullmatch(r"([0-9]{1,2})(?:-([0-9]{1,2}))?", key)
    first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (0, 0)
    if first not in totals or last not in totals or last < first:
        allowed = f"a total from {totals[0]} to {totals[-1]}, or two of them as in 17-21"
        raise UsageProblem(where, "unknown row", allowed)
    yield from range(first, last + 1)


def _rows(where: str, section: str, table: object) -> Rows:
    if not isinstance(table, dict):
        raise UsageProblem(where, "not a chart", f"a table [{section}] of rows")
    rows: dict[int, Mapping[int, Cell]] = {}
    for key, row in table.items():
        here = f"{where}.{key}"
        cells = _row(here, section, row)
        for total in _meant(here, section, key):
            if total in rows:
                raise UsageProblem(here, f"{total} has a row already", "one row for each total")
            rows[total] = cells
    return rows


def _complete(where: str, charts: Mapping[str, Rows]) -> None:
    hard, soft = ({str(total): total for total in totals} for totals in _TOTALS.values())
    for section, keys in (("hard", hard), ("soft", soft), ("pairs", _PAIRS)):
        if section not in charts:
            raise UsageProblem(f"{where}: {section}", "missing chart", f"a table [{section}]")
        for key, row in keys.items():
            if row not in charts[section]:
                needed = f"every row of {', '.join(keys)}"
                raise UsageProblem(f"{where}: {section}.{key}", "missing row", needed)


def parse(text: str, where: str) -> Strategy:
    """Parse the text of a strategy file. `where` names the file in errors. Raises UsageProblem."""
    try:
        file = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageProblem(where, f"not TOML: {error}") from None
    words: dict[str, str] = {}
    for key in ("name", "note"):
        word = file.pop(key, None)
        if not isinstance(word, str):
            raise UsageProblem(f"{where}: {key}", "missing or not a text", "a text")
        words[key] = word
    answers: dict[str, bool] = {}
    for key in ("insurance", "even_money"):
        answer = file.pop(key, None)
        if not isinstance(answer, str) or answer not in _ANSWERS:
            raise UsageProblem(f"{where}: {key}", f"{answer!r} is no answer", "never, always")
        answers[key] = _ANSWERS[answer]
    charts: dict[str, Rows] = {}
    for section, table in file.items():
        if not _SECTION.fullmatch(section):
            allowed = f"name, note, insurance, even_money, {_SECTIONS}"
            raise UsageProblem(f"{where}: {section}", "unknown key", allowed)
        charts[section] = _rows(f"{where}: {section}", section, table)
    _complete(where, charts)
    return _compile(
        words["name"], words["note"], charts, answers["insurance"], answers["even_money"]
    )


def load(path: Path) -> Strategy:
    """Load a strategy file. Raises UsageProblem."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageProblem(str(path), f"cannot be read: {error}", "a strategy file") from None
    return parse(text, str(path))


def basic(game: str) -> Strategy:
    """Load the strategy that is installed with a game; not proven optimal."""
    return load(_STRATEGIES / f"{game}.toml")


# --- policies without a file ----------------------------------------------------------------


def _draws_to(name: str, note: str, **last: int) -> Strategy:
    """Returns a strategy that hits up to these totals and stands above them."""
    charts: dict[str, Rows] = {
        kind: {row: dict.fromkeys(_UPS, (HIT if row <= last[kind] else STAND,)) for row in totals}
        for kind, totals in _TOTALS.items()
    }
    charts["pairs"] = {value: dict.fromkeys(_UPS, ()) for value in _PAIRS.values()}
    return _compile(name, note, charts, False, False)


POLICIES: Final[Mapping[str, Strategy]] = {
    "stand": _draws_to("stand", "stands on everything", hard=0, soft=0),
    "mimic": _draws_to("mimic", "draws like a dealer who hits soft 17", hard=16, soft=17),
}
