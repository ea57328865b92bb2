"""`holecard review`: look at a record in a browser, round by round."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Final

from controller.audit.commands import index_progress, table_key_of
from controller.audit.format.notes import VerifierKey
from controller.audit.read.heads import first_head
from controller.commands import path_of, say, text_of
from controller.errors import UsageProblem
from controller.screens.common import server
from controller.screens.common.headers import Cookie, HeaderGuard
from controller.screens.common.sessions import LinkSessions, LoginLinks, PageUser
from controller.screens.common.texts import load
from controller.screens.review.source import FileSource, open_source
from controller.screens.review.web import COOKIE, LinkLogin, application, pages_of

EXAMPLES: Final = """\
examples:
  holecard review run/mega-1 --as Eve
  holecard review case-31.zip --as Eve --port 0
  holecard review run/mega-1 --as Eve --listen 10.0.0.7 --certificate tls.pem --key tls.key

RECORD is a record's directory or a copy of it, or a case that was exported: a directory or a zip.
A link is printed that lets one browser in, once; when its session has ended, a new one is. Who
looks at what is written beside the record, in RECORD.looks.jsonl, before anything is shown. Cards
that lie face down are shown nowhere. Nothing of the record is changed.

It listens on this machine alone; elsewhere only with a certificate.
Where it listens at all addresses, 0.0.0.0 or ::, the link has this machine's name.

Exit codes: 130 interrupted, which is how it ends; 1 the record is damaged; 2 wrong arguments, or a
place without a record.
"""
PORT: Final = 8731
_SCRATCH: Final = "holecard-review-"


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "review",
        help="look at a record in a browser",
        description="Looks at a record in a browser, round by round.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("record", metavar="RECORD", help="a record's directory, or a case")
    parser.add_argument("--as", dest="who", metavar="NAME", help="who looks")
    parser.add_argument(
        "--port", metavar="N", type=int, default=PORT, help=f"0: any free one (default: {PORT})"
    )
    parser.add_argument(
        "--listen", metavar="ADDRESS", help=f"where to listen (default: {server.LOOPBACK})"
    )
    parser.add_argument("--certificate", metavar="FILE", help="its TLS certificate, PEM")
    parser.add_argument("--key", metavar="FILE", help="and the certificate's key")
    parser.add_argument(
        "--table-key", metavar="VKEY|FILE", help="the table's key from elsewhere, to verify with"
    )
    parser.add_argument("--index", metavar="FILE", help="the index (default: beside the segments)")
    parser.add_argument("--texts", metavar="FILE", help="the pages' words in another language")
    parser.add_argument("--json", action="store_true", help="print links as lines of JSON")
    parser.set_defaults(func=review)


def review(args: argparse.Namespace) -> int:
    place = server.listen_address(args.listen, args.port, args.certificate, args.key)
    texts = load(None if args.texts is None else path_of("--texts", args.texts))
    index = None if args.index is None else path_of("--index", args.index)
    record = path_of("RECORD", args.record)
    person = PageUser(_who(args.who))
    with tempfile.TemporaryDirectory(prefix=_SCRATCH) as scratch:
        source = open_source(record, Path(scratch), index)
        table_key = None if args.table_key is None else _table_key(args.table_key, source)
        _begin(source)
        with server.bound(place) as listening:
            port: int = listening.getsockname()[1]
            links = LoginLinks()

            def another(person: PageUser) -> None:
                _tell(place, port, links.make(person), json_=args.json)

            made = application(
                source,
                pages_of(texts),
                LinkLogin(LinkSessions(ended=another), links),
                Path(scratch),
                cookie=Cookie(f"{COOKIE}-{port}", place.secure),
                table_key=table_key,
            )
            made.house.prepare()
            guarded = HeaderGuard(made.app, server.names_of(place, port), secure=place.secure)
            try:
                server.serve(guarded, place, listening, lambda: another(person))
            finally:
                made.close()
    return 0


def _begin(source: FileSource) -> None:
    with index_progress() as on_progress:
        source.begin(say, on_progress)


def _table_key(given: str, source: FileSource) -> VerifierKey:
    return table_key_of(given, lambda: first_head(source.record).snapshot.origin)


def _who(given: str | None) -> str:
    """Nobody looks without a name."""
    if given is None and sys.stdin is not None and sys.stdin.isatty():
        print("Who looks? ", end="", file=sys.stderr, flush=True)
        given = sys.stdin.readline().strip()
    if given is None:
        raise UsageProblem("--as", "is missing", "the name of who looks")
    return text_of("--as", given)


def _tell(place: server.ListenAddress, port: int, word: str, *, json_: bool) -> None:
    link = f"{place.address(port)}/enter?word={word}"
    print(json.dumps({"link": link}) if json_ else link, flush=True)
    say("open this link in a browser; it opens once. Ctrl-C ends the review")
