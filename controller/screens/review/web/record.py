"""Pages of the whole record: problems, records, pace, verification, about, exports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Final, cast

from starlette.responses import FileResponse, Response, StreamingResponse

from controller.audit.export import RowFormat, record_rows
from controller.audit.format.segments import numbers
from controller.audit.index import parse_time
from controller.audit.read.lookup import Selection, first_head
from controller.audit.text import (
    format_clock,
    format_day,
    format_time,
    problem_words,
    stamp,
    timeline_lines,
    verify_report_lines,
)
from controller.audit.witness import COSIGNED
from controller.errors import UsageProblem, printable
from controller.screens.common.access import PageNotFound, Visit, shown
from controller.screens.review.source import ReviewContext, open_index, recorded_look
from controller.screens.review.view import queries
from controller.screens.review.view.queries import ends, read_back
from controller.screens.review.view.report import PaceFigures, bars, columns, last_day, report
from controller.screens.review.view.rounds import number_of, one_of, rounds_of
from controller.screens.review.web.rounds import LINES, attached

ROWS: Final = 100
_SHOWN: Final = 20
"""Kinds of problems in a chart."""


# --- problems ---------------------------------------------------------------------------------


def problems(visit: Visit[ReviewContext]) -> Response:
    before = number_of("before", visit.query["before"]) if "before" in visit.query else None
    what = visit.query.get("what")
    house = visit.house
    with recorded_look(visit, "problems", what or "all") as db:
        names = queries.problem_names(db)
        if what is not None and what not in dict(names):
            allowed = ", ".join(name for name, _ in names) or "there are none"
            raise UsageProblem("what", f"{printable(what)[:60]!a} is no problem here", allowed)
        found = queries.problems(db, before=before, what=what, limit=ROWS + 1)
        rounds = {one.seq: queries.round_at(db, one.seq) for one in found}
    return house.page(
        visit,
        "review/problems.html",
        rows=[
            (
                one,
                format_day(one.utc),
                format_clock(one.utc),
                stamp(one.utc),
                problem_words(one.what),
                rounds[one.seq],
            )
            for one in found[:ROWS]
        ],
        names=[(name, problem_words(name), count) for name, count in names],
        what=what or "",
        before=before,
        older=found[ROWS - 1].seq if len(found) > ROWS else None,
    )


# --- any record -------------------------------------------------------------------------------


def records(visit: Visit[ReviewContext]) -> Response:
    """Consecutive records from any one on; by default the last ones."""
    house = visit.house
    with open_index(visit) as db:
        first, last = queries.first_seq(db), queries.last_seq(db)
    since = max(first, last - ROWS + 1)
    try:
        if "from" in visit.query:
            since = number_of("from", visit.query["from"])
        if not first <= since <= last:
            raise UsageProblem("from", f"there is no record {since}", f"{first} to {last}")
    except UsageProblem as problem:
        return _again(visit, "records", problem, _typed(visit))
    with recorded_look(visit, "records", f"{since} to {min(last, since + ROWS - 1)}") as db:
        lying = queries.lying(db, since, last, ROWS)
        span = lying[0].place.seq, lying[-1].place.seq
        table = house.table_at(db, since)
        seats, wrong = queries.seats_of_cards(db, *span), queries.problems_in(db, *span)
        number = queries.round_at(db, since)
    lines = timeline_lines(read_back(house.source.record, lying), table.money, seats, wrong)
    return house.page(
        visit,
        "review/records.html",
        wrong=None,
        since=since,
        lines=lines,
        days=sorted({format_day(line.utc) for line in lines}),
        span=span,
        first=first,
        last=last,
        older=max(first, since - ROWS) if since > first else 0,
        newer=span[1] + 1 if span[1] < last else 0,
        round=number,
    )


def record(visit: Visit[ReviewContext]) -> Response:
    """Redirect to the page that shows a record."""
    seq = number_of("record", str(visit.path["seq"]))
    with open_index(visit) as db:
        first, last = queries.first_seq(db), queries.last_seq(db)
        if not first <= seq <= last:
            raise PageNotFound("record", f"there is no record {seq}", f"{first} to {last}")
        number = queries.round_at(db, seq)
        if not number:
            return visit.house.to(f"/records?from={max(first, seq - 10)}#s{seq}")
        found = queries.round_of(db, number)
    near = "" if found is None or seq - found.first_seq < LINES else f"&from={seq - 10}"
    return visit.house.to(f"/rounds/{number}?all=yes{near}#s{seq}")


# --- pace -------------------------------------------------------------------------------------


def pace(visit: Visit[ReviewContext]) -> Response:
    house, query = visit.house, visit.query
    with open_index(visit) as db:
        day = last_day(db)
    try:
        since = parse_time("from", query["from"]) if "from" in query else day[0]
        until = parse_time("to", query["to"], end=True) if "to" in query else max(since, day[1])
        if until < since:
            raise UsageProblem("to", f"is before {format_time(since)[:19]}", "a time after it")
    except UsageProblem as problem:
        typed = {"since": stamp(day[0])[:19], "until": "", **_typed(visit)}
        return _again(visit, "report", problem, typed)
    with recorded_look(visit, "report", f"{format_time(since)} to {format_time(until)}") as db:
        made = report(db, since, until, house.games(db), lambda utc: format_time(utc)[:16])
    t = house.pages.texts
    wrong = [(problem_words(name), float(count)) for name, count in made.problems]
    return house.page(
        visit,
        "review/report.html",
        wrong=None,
        report=made,
        since=stamp(since)[:19],
        until=stamp(until)[:19],
        period=(f"{format_time(since)[:19]} UTC", f"{format_time(until)[:19]} UTC"),
        problems=[(name, problem_words(name), count) for name, count in made.problems],
        plots={
            "spans": columns(t("report.by_time"), _paces(made.spans)),
            "dealers": bars(t("report.by_dealer"), _paces(made.dealers), 1),
            "games": bars(t("report.by_game"), _paces(made.games), 1),
            "problems": bars(t("report.problems"), wrong[:_SHOWN]),
        },
    )


def _typed(visit: Visit[ReviewContext]) -> dict[str, str]:
    fields = (("since", "from"), ("until", "to"))
    return {name: visit.query[field] for name, field in fields if field in visit.query}


def _again(
    visit: Visit[ReviewContext], name: str, wrong: UsageProblem, typed: Mapping[str, str]
) -> Response:
    """Returns the form with its error; nothing of the record is shown."""
    return visit.house.page(visit, f"review/{name}.html", status=400, wrong=wrong, **typed)


def _paces(found: tuple[PaceFigures, ...]) -> list[tuple[str, float]]:
    return [(one.name or "-", one.an_hour) for one in found]


# --- the whole record -------------------------------------------------------------------------


def verify_page(visit: Visit[ReviewContext]) -> Response:
    house = visit.house
    run = house.checking.run
    return house.page(
        visit,
        "review/verify.html",
        run=run,
        lines=list(verify_report_lines(run.report))
        if run is not None and run.report is not None
        else [],
        given=house.table_key is not None,
    )


def verify_start(visit: Visit[ReviewContext]) -> Response:
    visit.house.source.look(visit.who, "review verify", "all")
    visit.house.checking.start(visit.who)
    return visit.house.to("/verify")


def about(visit: Visit[ReviewContext]) -> Response:
    house = visit.house
    record = house.source.record
    with recorded_look(visit, "about", "the record") as db:
        first, last = queries.first_seq(db), queries.last_seq(db)
        table = house.table_at(db, last)
        rounds = ends(db)
        span = queries.times(db)
        games = sorted({one.game for one in house.games(db)})
        boots = len(queries.all_of_kind(db, "opened"))
    there = numbers(record)
    witnessed = len(list((record / COSIGNED).glob("*.note"))) if (record / COSIGNED).is_dir() else 0
    return house.page(
        visit,
        "review/about.html",
        origin=first_head(record).snapshot.origin,
        name=house.source.name,
        opened=table.opened,
        games=games,
        boots=boots,
        seqs=(first, last),
        rounds=rounds,
        times=(format_time(span[0]), format_time(span[1])),
        segments=(there[0], there[-1]),
        witnessed=witnessed,
        given="" if house.table_key is None else str(house.table_key),
        whole=house.source.whole,
        served=house.source.served,
    )


FORMATS: Final = ("case", "csv", "jsonl")
_TYPES: Final = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")
_MOST_REASON: Final = 200


# --- exports ----------------------------------------------------------------------------------


def export_form(visit: Visit[ReviewContext]) -> Response:
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


def export_start(visit: Visit[ReviewContext]) -> Response:
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


def export_made(visit: Visit[ReviewContext]) -> Response:
    kept = visit.house.cases.find(str(visit.path["id"]), visit.who)
    if kept is None:
        raise _gone()
    return visit.house.page(visit, "review/made.html", kept=kept)


def export_fetch(visit: Visit[ReviewContext]) -> Response:
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
