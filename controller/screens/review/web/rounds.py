"""Pages of rounds: the list, a round, its replay, its verification."""

from __future__ import annotations

from typing import Any, Final, Literal
from urllib.parse import quote

import apsw
import msgspec
from msgspec import Struct
from starlette.responses import Response

from controller.audit.format.records import Record
from controller.audit.index import RoundRow
from controller.audit.text import TimelineLine, timeline_lines
from controller.errors import UsageProblem
from controller.procedure.prompts import WHAT
from controller.publish import EVENTS as HAPPENING_WORDS
from controller.screens.common.access import PageNotFound, Visit
from controller.screens.review.source import (
    ReviewContext,
    TableInfo,
    open_index,
    recorded_look,
    round_not_found,
)
from controller.screens.review.view import queries
from controller.screens.review.view.queries import RecordLocation, ends, newest, read_back
from controller.screens.review.view.replay import RoundReplay, replay_of, states
from controller.screens.review.view.rounds import (
    BEFORE,
    FIELDS,
    HAPPENINGS,
    Filters,
    filters_of,
    number_of,
    typed,
)
from controller.screens.review.view.verdict import check_round

ROWS: Final = 50
LINES: Final = 500
"""Lines on the page of a round."""
FRAMES: Final = 4_000
"""Records in a replay."""
_MOST_SEQ: Final = 10**18 - 1


def start(visit: Visit[ReviewContext]) -> Response:
    return visit.house.to("/rounds")


def rounds(visit: Visit[ReviewContext]) -> Response:
    """The list of rounds, newest first."""
    query = visit.query
    before = number_of(BEFORE, query[BEFORE]) if BEFORE in query else None
    house = visit.house
    with open_index(visit) as db:
        table = house.table_at(db, queries.last_seq(db))
    try:
        filters = filters_of(query, table.money)
    except UsageProblem as problem:
        if problem.where not in FIELDS:
            raise
        return _list(house, visit, typed(query), wrong=problem)
    with recorded_look(visit, "list", str(filters)) as db:
        found = newest(db, filters.wanted, before, ROWS)
        dealers, people = queries.names(db)
        problems = queries.problems_of(db, found.rounds)
        first, last = ends(db)
    return _list(
        house,
        visit,
        filters,
        rows=found.rounds,
        problems=problems,
        amount=table.money.amount,
        before=before,
        older=found.before,
        full=len(found.rounds) >= ROWS,
        first=first,
        last=last,
        dealers=dealers,
        people=people,
    )


def _list(
    house: ReviewContext,
    visit: Visit[ReviewContext],
    filters: Filters,
    *,
    wrong: UsageProblem | None = None,
    **shown: Any,
) -> Response:
    """With an error only the form is shown, and nothing of the record."""
    return house.page(
        visit,
        "review/rounds.html",
        status=200 if wrong is None else 400,
        filters=filters,
        wrong=wrong,
        **{"dealers": (), "people": (), **shown},
        irregularities=list(WHAT.items()),
        happenings=[(name, HAPPENING_WORDS.get(name, name)) for name in HAPPENINGS],
    )


class _Shown(Struct, frozen=True):
    """A round and its records."""

    round: RoundRow
    table: TableInfo
    lying: list[RecordLocation]
    records: list[Record]
    lines: list[TimelineLine]
    more: int
    """The first record of the next page; 0: this is the last one."""


def round_page(visit: Visit[ReviewContext]) -> Response:
    number = number_of("round", str(visit.path["round"]))
    house = visit.house
    since = number_of("from", visit.query["from"]) if "from" in visit.query else 0
    with recorded_look(visit, "round", f"round {number}") as db:
        shown = _read(house, db, number, since, LINES)
        found = shown.round
        span = found.first_seq, found.last_seq
        bets = queries.bets(db, *span)
        older, newer = queries.beside(db, number)
        former, later = queries.problem_beside(db, *span)
        problem_rounds = queries.round_at(db, former), queries.round_at(db, later)
    return house.page(
        visit,
        "review/round.html",
        round=found,
        amount=shown.table.money.amount,
        span=span,
        lines=shown.lines,
        quiet=visit.query.get("all") != "yes",
        since=since,
        more=shown.more,
        bets=bets,
        older=older,
        newer=newer,
        problems=((former, problem_rounds[0]), (later, problem_rounds[1])),
        game=shown.table.game,
    )


def _read(house: ReviewContext, db: apsw.Connection, number: int, since: int, most: int) -> _Shown:
    """Read a round from record `since` on. Raises PageNotFound, RecordProblem."""
    found = queries.round_of(db, number)
    if found is None:
        raise round_not_found(house, number)
    first = max(since, found.first_seq)
    if first > found.last_seq:
        raise UsageProblem(
            "from",
            f"record {since} comes after round {number}",
            f"{found.first_seq} to {found.last_seq}",
        )
    lying = queries.lying(db, first, found.last_seq, most + 1)
    more = lying[most].place.seq if len(lying) > most else 0
    lying = lying[:most]
    records = read_back(house.source.record, lying)
    table = house.table_at(db, first)
    span = lying[0].place.seq, lying[-1].place.seq
    seats, wrong = queries.seats_of_cards(db, *span), queries.problems_in(db, *span)
    return _Shown(
        found, table, lying, records, timeline_lines(records, table.money, seats, wrong), more
    )


# --- replay -----------------------------------------------------------------------------------


def replay_page(visit: Visit[ReviewContext]) -> Response:
    """The felt after the record `at`; a script steps through all frames."""
    number = number_of("round", str(visit.path["round"]))
    at = number_of("at", visit.query["at"], _MOST_SEQ) if "at" in visit.query else 0
    with recorded_look(visit, "replay", f"round {number}") as db:
        shown, made = _replayed(visit.house, db, number)
        older, newer = queries.beside(db, number)
    index = _frame(made, at)
    frames = made.frames
    return visit.house.page(
        visit,
        "review/replay.html",
        round=shown.round,
        replay=made,
        index=index,
        frame=frames[index],
        former=frames[index - 1].seq if index else 0,
        later=frames[index + 1].seq if index + 1 < len(frames) else 0,
        former_problem=max((one.seq for one in frames[:index] if one.problem), default=0),
        later_problem=min((one.seq for one in frames[index + 1 :] if one.problem), default=0),
        picture=made.pictures[frames[index].picture] if frames[index].picture >= 0 else "",
        older=older,
        newer=newer,
        cut=shown.more,
    )


def replay_json(visit: Visit[ReviewContext]) -> Response:
    number = number_of("round", str(visit.path["round"]))
    with recorded_look(visit, "replay", f"round {number}, as data") as db:
        _, made = _replayed(visit.house, db, number)
    return Response(msgspec.json.encode(made), media_type="application/json")


def _replayed(house: ReviewContext, db: apsw.Connection, number: int) -> tuple[_Shown, RoundReplay]:
    shown = _read(house, db, number, 0, FRAMES)
    place = shown.lying[0].place
    found = states(house.standings.before(place.segment, place.offset), shown.records)
    made = replay_of(number, shown.lines, found, shown.table.money, shown.table.seats)
    if not made.frames:
        raise PageNotFound("round", f"round {number} has nothing to play", "another round")
    return shown, made


def _frame(made: RoundReplay, seq: int) -> int:
    """Returns the index of the last frame up to `seq`."""
    found = 0
    for index, frame in enumerate(made.frames):
        if frame.seq <= seq:
            found = index
    return found


# --- verify -----------------------------------------------------------------------------------


def verify_round(visit: Visit[ReviewContext]) -> Response:
    number = number_of("round", str(visit.path["round"]))
    wants = _wants(visit.form.get("as", "page"))
    house = visit.house
    with recorded_look(visit, "verify" if wants == "page" else "proof", f"round {number}") as db:
        found = queries.round_of(db, number)
        if found is None:
            raise round_not_found(house, number)
    verdict = check_round(house.source.record, found, house.table_key)
    if wants == "proof":
        if verdict.proof is None:
            raise PageNotFound(
                "proof", f"there is none of round {number}", "a round that is signed"
            )
        return download(
            verdict.proof.encoded.encode(), f"round-{number}-proof.json", "application/json"
        )
    return house.page(
        visit,
        "review/verdict.html",
        round=found,
        verdict=verdict,
        served=house.source.served,
    )


def _wants(text: str) -> Literal["page", "proof"]:
    if text == "page":
        return "page"
    if text == "proof":
        return "proof"
    raise UsageProblem("as", f"{text[:40]!a} is not known", "page or proof")


def download(data: Any, name: str, kind: str) -> Response:
    return Response(data, media_type=kind, headers={"Content-Disposition": attached(name)})


def attached(name: str) -> str:
    return f'attachment; filename="{quote(name, safe="-._")}"'
