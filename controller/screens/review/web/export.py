"""Exports: sealed cases, and rows as CSV or JSON lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Final, cast

from starlette.responses import FileResponse, Response, StreamingResponse

from controller.audit.export import RowFormat, record_rows
from controller.audit.read.lookup import Selection
from controller.errors import UsageProblem
from controller.screens.common.access import PageNotFound, Visit, shown
from controller.screens.review.source import ReviewContext
from controller.screens.review.view.filters import one_of, rounds_of
from controller.screens.review.web.rounds import attached

FORMATS: Final = ("case", "csv", "jsonl")
_TYPES: Final = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")
_MOST_REASON: Final = 200


def form(visit: Visit[ReviewContext]) -> Response:
    house = visit.house
    if "round" in visit.query:
        rounds_of("round", visit.query["round"])
    return house.page(
        visit,
        "review/export.html",
        round=visit.query.get("round", ""),
        whole=house.source.whole,
        served=house.source.served,
    )


def export(visit: Visit[ReviewContext]) -> Response:
    house, form = visit.house, visit.form
    kind = one_of("format", form.get("format", "case"), FORMATS)
    reason = form.get("reason", "")
    if len(reason) > _MOST_REASON:
        raise UsageProblem("reason", "is too long", f"up to {_MOST_REASON} characters")
    pick = _pick(form.get("round"), form.get("day"), form.get("all"))
    name = _NAME.sub("-", f"{house.source.name}-{pick}").strip("-")
    if kind != "case":
        return _rows(visit, pick, cast(RowFormat, kind), f"{name}.{kind}", reason)
    kept = house.cases.make(
        f"{name}.zip",
        visit.who,
        str(pick),
        lambda out, tell: house.source.export(out, pick, visit.who, reason, tell),
    )
    return visit.house.to(f"/export/{kept.id}")


def _rows(
    visit: Visit[ReviewContext], pick: Selection, kind: RowFormat, name: str, reason: str
) -> Response:
    source = visit.house.source
    source.look(visit.who, f"review export {kind}", str(pick), reason=reason, out=name)
    lines = record_rows(source.record, pick, kind)
    first = next(lines)  # errors are raised before the response starts
    return StreamingResponse(
        _together(chain((first,), lines)),
        media_type=_TYPES[kind],
        headers={"Content-Disposition": attached(name)},
    )


_TOGETHER: Final = 64 * 1024


def _together(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Join lines to larger chunks."""
    waiting: list[bytes] = []
    size = 0
    for line in lines:
        waiting.append(line)
        size += len(line)
        if size >= _TOGETHER:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)


def made(visit: Visit[ReviewContext]) -> Response:
    kept = visit.house.cases.find(str(visit.path["id"]), visit.who)
    if kept is None:
        raise _gone()
    return visit.house.page(visit, "review/made.html", kept=kept)


def fetch(visit: Visit[ReviewContext]) -> Response:
    kept = visit.house.cases.find(str(visit.path["id"]), visit.who)
    if kept is None or not kept.file.is_file():
        raise _gone()
    return FileResponse(
        Path(kept.file),
        media_type="application/zip",
        headers={"Content-Disposition": attached(kept.file.name)},
    )


def _gone() -> PageNotFound:
    return PageNotFound("export", "this case is not here, or no longer", "one that was just made")


def _pick(rounds: str | None, day: str | None, everything: str | None) -> Selection:
    given = [one for one in (rounds, day, everything) if one is not None]
    if len(given) != 1:
        what = "nothing is named" if not given else "more than one thing is named"
        raise UsageProblem("export", what, "rounds, a gaming day, or all")
    if rounds is not None:
        return Selection(*rounds_of("round", rounds))
    if everything is not None:
        one_of("all", everything, ("yes",))
        return Selection()
    assert day is not None
    try:
        if not _DAY.fullmatch(day):
            raise ValueError(day)
        date.fromisoformat(day)
    except ValueError:
        raise UsageProblem("day", f"{shown(day)} is no day", "YYYY-MM-DD") from None
    return Selection(day=day)
