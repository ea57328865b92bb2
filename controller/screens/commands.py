"""Runs `holecard review`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Final

from starlette.requests import Request

from controller.audit.commands import index_progress, table_key_of
from controller.audit.read.lookup import first_head
from controller.commands import path_of, say, text_of
from controller.errors import UsageProblem
from controller.screens.common import server
from controller.screens.common.access import Cookie, HeaderGuard
from controller.screens.common.sessions import LinkSessions, LoginLinks, PageUser
from controller.screens.common.texts import load
from controller.screens.review.source import open_source
from controller.screens.review.web import COOKIE, LinkLogin, application, pages_of

_SCRATCH: Final = "holecard-review-"


def run_review(args: argparse.Namespace) -> int:
    """Serve the review of a record until interrupted."""
    place = server.listen_address(args.listen, args.port, args.certificate, args.key)
    texts = load(None if args.texts is None else path_of("--texts", args.texts))
    index = None if args.index is None else path_of("--index", args.index)
    record = path_of("RECORD", args.record)
    person = PageUser(_who(args.who))
    with tempfile.TemporaryDirectory(prefix=_SCRATCH) as scratch:
        source = open_source(record, Path(scratch), index)
        table_key = None
        if args.table_key is not None:
            table_key = table_key_of(
                args.table_key, lambda: first_head(source.record).snapshot.origin
            )
        with index_progress() as report:
            source.begin(say, report)
        with server.bound(place) as listening:
            port: int = listening.getsockname()[1]
            links = LoginLinks()
            cookie = Cookie(f"{COOKIE}-{port}", place.secure)

            def print_link(person: PageUser) -> None:
                link = f"{place.address(port)}/enter?word={links.make(person)}"
                print(json.dumps({"link": link}) if args.json else link, flush=True)
                say("open this link in a browser; it opens once. Ctrl-C ends the review")

            sessions = LinkSessions(ended=print_link)
            made = application(
                source,
                pages_of(texts),
                LinkLogin(sessions, links),
                Path(scratch),
                cookie=cookie,
                table_key=table_key,
            )
            made.house.prepare()
            guarded = HeaderGuard(made.app, server.names_of(place, port), secure=place.secure)
            try:
                server.serve(
                    guarded,
                    place,
                    listening,
                    lambda scope: sessions.rank(Request(scope).cookies.get(cookie.name)),
                    lambda: print_link(person),
                )
            finally:
                made.close()
    return 0


def _who(given: str | None) -> str:
    """Returns the name of who looks, asked for at a terminal. Raises UsageProblem."""
    if given is None and sys.stdin is not None and sys.stdin.isatty():
        print("Who looks? ", end="", file=sys.stderr, flush=True)
        given = sys.stdin.readline().strip()
    if given is None:
        raise UsageProblem("--as", "is missing", "the name of who looks")
    return text_of("--as", given)
