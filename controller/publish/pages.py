"""The published procedure as plain text and as a page of Markdown."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Final

from controller.publish.diagram import LEFT_OUT
from controller.publish.rows import (
    Clause,
    ProcedurePage,
    PublishedRefusal,
    PublishedRow,
    PublishedRuling,
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
    yield from _wrapped("        ", entry.text)
    yield from _wrapped("  at    ", entry.at)
    yield from _wrapped("  when  ", _when(entry))
    if entry.condition:
        yield from _wrapped("  if    ", entry.condition)
    yield from _wrapped("  then  ", entry.to)
    if entry.why:
        yield from _wrapped("  else  ", f"refused: {entry.why}")
    for clause in entry.clauses:
        yield from _wrapped("  rule  ", f"{clause.id}: {clause.sentence}")


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


def markdown(page: ProcedurePage, diagram: str) -> str:
    """Returns the whole page as Markdown, for the approval of a game."""
    return "\n".join(_markdown_lines(page, diagram))


def _markdown_lines(page: ProcedurePage, diagram: str) -> Iterator[str]:
    yield f"# {escaped(page.title)}: the dealing procedure"
    yield ""
    yield (
        f"Source: {escaped(page.source or page.file)}. "
        f"Jurisdiction: {escaped(page.jurisdiction)}{_in_brackets(page.jurisdiction_source)}. "
        f"Drawn from the rows that run the table, by `{page.command} --markdown`."
    )
    yield ""
    yield f"{HOW_TO_READ} {MAY_BE_USED}"
    yield ""
    yield from _contents(page)
    yield from _options(page)
    yield from _picture(diagram)
    for chapter in page.chapters:
        yield f"## {escaped(chapter.title)}"
        yield ""
        for entry in chapter.entries:
            yield from _entry(entry)
    yield from _ways(page)
    yield from _refusals(page)
    yield from _clauses(page)


def _contents(page: ProcedurePage) -> Iterator[str]:
    titles = (_OPTIONS, _PICTURE, *(c.title for c in page.chapters), _WAYS, _REFUSALS, _CLAUSES)
    for title in titles:
        anchor = re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")
        yield f"- [{escaped(title)}](#{anchor})"
    yield ""


_OPTIONS: Final = "Options"
_PICTURE: Final = "The round in a picture"
_WAYS: Final = "Ways on after an irregularity"
_REFUSALS: Final = "Refusals"
_CLAUSES: Final = "Clauses of the sheet"


def _options(page: ProcedurePage) -> Iterator[str]:
    yield f"## {_OPTIONS}"
    yield ""
    yield (
        "Amounts are in the currency's smallest coin. A value that no clause gives is the house's "
        "ruling."
    )
    yield ""
    yield from _table(
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
    for words, paths in (("Not in this game", page.absent), ("Not set", page.unset)):
        if paths:
            yield f"{words}: {_ids(paths)}."
            yield ""


def _picture(diagram: str) -> Iterator[str]:
    yield f"## {_PICTURE}"
    yield ""
    yield f"Arrows bear the ids of rows; grey steps do not wait. {LEFT_OUT}"
    yield ""
    yield "```mermaid"
    yield diagram.rstrip("\n")
    yield "```"
    yield ""


def _entry(entry: PublishedRow) -> Iterator[str]:
    yield f"### `{entry.id}`"
    yield ""
    yield escaped(entry.text)
    yield ""
    yield f"- At: {escaped(entry.at)}"
    yield f"- When: {escaped(_when(entry))}"
    if entry.condition:
        yield f"- If: {escaped(entry.condition)}"
    yield f"- Then: {escaped(entry.to)}"
    if entry.why:
        yield f"- Otherwise refused: {_why(entry.why)}"
    for clause in entry.clauses:
        yield f"- {_quote(clause)}"
    yield ""


def _ways(page: ProcedurePage) -> Iterator[str]:
    yield f"## {_WAYS}"
    yield ""
    yield f"As {escaped(page.jurisdiction)} says{_in_brackets(page.jurisdiction_source)}."
    yield ""
    yield from _table(
        ("what happened", "way on", "second person for", "in the jurisdiction's words"),
        (
            (
                escaped(w.what),
                _way(w),
                escaped(", ".join(w.two_people)),
                escaped(w.text),
            )
            for w in page.ways
        ),
    )


def _way(way: PublishedRuling) -> str:
    return escaped(f"{way.way}: {', '.join(way.choices)}" if way.choices else way.way)


def _refusals(page: ProcedurePage) -> Iterator[str]:
    yield f"## {_REFUSALS}"
    yield ""
    yield "What is refused beside the rows' own refusals. Words in italics are filled in."
    yield ""
    yield from _table(
        ("refusal", "at", "when", "answer", "clauses"), (_answer(a) for a in page.refusals)
    )


def _answer(answer: PublishedRefusal) -> tuple[str, ...]:
    return (
        f"`{answer.id}`",
        escaped(answer.at),
        escaped(answer.on),
        _why(answer.why),
        _ids(clause.id for clause in answer.clauses),
    )


def _clauses(page: ProcedurePage) -> Iterator[str]:
    yield f"## {_CLAUSES}"
    yield ""
    yield from _table(
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


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield "|" + "".join(f" {cell} |" if cell else " |" for cell in row)
    yield ""


def _ids(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _quote(clause: Clause) -> str:
    return f"`{clause.id}` “{escaped(clause.sentence)}”"


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
