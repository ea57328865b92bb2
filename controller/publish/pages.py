"""The published procedure as plain text and as a page of Markdown."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Final

from controller.publish.diagram import LEFT_OUT
from controller.publish.rows import (
    ProcedurePage,
    PublishedRow,
)

_WIDE: Final = 96
_FIELD: Final = re.compile(r"\{(\w+)\}")
_SPECIAL: Final = re.compile(r"([\\`*_<>|\[\]])")

HOW_TO_READ: Final = (
    "The table stands at one step at a time. A row says: at these steps, when this happens and its "
    "condition holds, this is done and the table goes to that step. Where it says “by itself”, "
    "nobody acts and the table does not wait. What no row takes, or somebody else brings, is "
    "refused and changes nothing."
)
MAY_BE_USED: Final = (
    "A card may be used when the decks still hold it and, where a card that was drawn in error "
    "lies beside the shoe, when it is that card."
)


# --- plain ------------------------------------------------------------------------------------


def plain(page: ProcedurePage) -> str:
    """Returns the rows as plain text, in the order of play."""
    return "\n".join([*_plain_lines(page), ""])


def _plain_lines(page: ProcedurePage) -> Iterator[str]:
    yield from _wrapped("", f"{page.title}: the dealing procedure")
    yield from _wrapped("", f"({page.file}; {page.jurisdiction})")
    yield ""
    yield from _wrapped("", HOW_TO_READ)
    yield from _wrapped("", MAY_BE_USED)
    for chapter in page.chapters:
        yield ""
        yield chapter.title.upper()
        for entry in chapter.entries:
            yield ""
            yield from _plain_entry(entry)


def _plain_entry(entry: PublishedRow) -> Iterator[str]:
    yield entry.id
    for first, text in (
        ("        ", entry.text),
        ("  at    ", entry.at),
        ("  when  ", _when(entry)),
        ("  if    ", entry.condition),
        ("  then  ", entry.to),
        ("  else  ", entry.why and f"refused: {entry.why}"),
        *(("  rule  ", f"{clause.id}: {clause.sentence}") for clause in entry.clauses),
    ):
        yield from _wrapped(first, text)


def _when(entry: PublishedRow) -> str:
    return f"{entry.on}, brought by the {' or '.join(entry.by)}" if entry.by else entry.on


def _wrapped(first: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDE,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )


# --- markdown ---------------------------------------------------------------------------------


_OPTIONS: Final = "Options"
_PICTURE: Final = "The round in a picture"
_WAYS: Final = "Ways on after an irregularity"
_REFUSALS: Final = "Refusals"
_CLAUSES: Final = "Clauses of the sheet"


def markdown(page: ProcedurePage, diagram: str) -> str:
    """Returns the whole page as Markdown, for the approval of a game."""
    return "\n\n".join(_blocks(page, diagram)) + "\n"


def _blocks(page: ProcedurePage, diagram: str) -> Iterator[str]:
    """Yields headings, paragraphs, lists and tables; empty lines separate them."""
    by = _in_brackets(page.jurisdiction_source)
    yield f"# {escaped(page.title)}: the dealing procedure"
    yield (
        f"Source: {escaped(page.source or page.file)}. "
        f"Jurisdiction: {escaped(page.jurisdiction)}{by}. "
        f"Drawn from the rows that run the table, by `{page.command} --markdown`."
    )
    yield f"{HOW_TO_READ} {MAY_BE_USED}"
    titles = (_OPTIONS, _PICTURE, *(c.title for c in page.chapters), _WAYS, _REFUSALS, _CLAUSES)
    yield "\n".join(f"- [{escaped(title)}](#{_anchor(title)})" for title in titles)
    yield f"## {_OPTIONS}"
    yield (
        "Amounts are in the currency's smallest coin. A value that no clause gives is the house's "
        "ruling."
    )
    yield _options(page)
    for words, paths in (("Not in this game", page.absent), ("Not set", page.unset)):
        if paths:
            yield f"{words}: {_ids(paths)}."
    yield f"## {_PICTURE}"
    yield f"Arrows bear the ids of rows; grey steps do not wait. {LEFT_OUT}"
    yield "```mermaid\n{}\n```".format(diagram.rstrip("\n"))
    for chapter in page.chapters:
        yield f"## {escaped(chapter.title)}"
        for entry in chapter.entries:
            yield from _entry(entry)
    yield f"## {_WAYS}"
    yield f"As {escaped(page.jurisdiction)} says{by}."
    yield _ways(page)
    yield f"## {_REFUSALS}"
    yield "What is refused beside the rows' own refusals. Words in italics are filled in."
    yield _refusals(page)
    yield f"## {_CLAUSES}"
    yield _clauses(page)


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")


def _entry(entry: PublishedRow) -> Iterator[str]:
    facts = {
        "At": escaped(entry.at),
        "When": escaped(_when(entry)),
        "If": escaped(entry.condition),
        "Then": escaped(entry.to),
        "Otherwise refused": entry.why and _why(entry.why),
    }
    yield f"### `{entry.id}`"
    yield escaped(entry.text)
    yield "\n".join(
        [
            *(f"- {name}: {fact}" for name, fact in facts.items() if fact),
            *(f"- `{clause.id}` “{escaped(clause.sentence)}”" for clause in entry.clauses),
        ]
    )


def _options(page: ProcedurePage) -> str:
    return _table(
        ("option", "value", "what it is", "clauses"),
        (
            (
                f"`{s.path}`",
                escaped(s.value),
                escaped(s.text),
                _ids(clause.id for clause in s.clauses),
            )
            for s in page.settings
        ),
    )


def _ways(page: ProcedurePage) -> str:
    return _table(
        ("what happened", "way on", "second person for", "in the jurisdiction's words"),
        (
            (
                escaped(w.what),
                escaped(f"{w.way}: {', '.join(w.choices)}" if w.choices else w.way),
                escaped(", ".join(w.two_people)),
                escaped(w.text),
            )
            for w in page.ways
        ),
    )


def _refusals(page: ProcedurePage) -> str:
    return _table(
        ("refusal", "at", "when", "answer", "clauses"),
        (
            (
                f"`{a.id}`",
                escaped(a.at),
                escaped(a.on),
                _why(a.why),
                _ids(clause.id for clause in a.clauses),
            )
            for a in page.refusals
        ),
    )


def _clauses(page: ProcedurePage) -> str:
    return _table(
        ("clause", "sentence", "options", "rows", "refusals"),
        (
            (
                f"`{use.clause.id}`",
                escaped(use.clause.sentence),
                _ids(use.options),
                _ids(use.rows),
                _ids(use.refusals),
            )
            for use in page.clauses
        ),
    )


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = ("|" + "".join(f" {cell} |" if cell else " |" for cell in row) for row in rows)
    return "\n".join((f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *lines))


def _ids(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _why(why: str) -> str:
    # Fields are names; only the text between them is escaped.
    parts = _FIELD.split(why)
    parts[::2] = map(escaped, parts[::2])
    parts[1::2] = (f"*{name.replace('_', ' ')}*" for name in parts[1::2])
    return f"“{''.join(parts)}”"


def _in_brackets(text: str) -> str:
    return f" ({escaped(text)})" if text else ""


def escaped(text: str) -> str:
    """Escapes text of sheets and files for Markdown."""
    return _SPECIAL.sub(r"\\\1", text)
