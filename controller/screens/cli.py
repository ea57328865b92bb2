"""`holecard review`: declares the command that shows a record in a browser."""

from __future__ import annotations

from typing import Final

from controller.commands import Subparsers, add_command

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


def register(subparsers: Subparsers) -> None:
    parser = add_command(
        subparsers,
        "review",
        "look at a record in a browser",
        "controller.screens.commands:run_review",
        description="Looks at a record in a browser, round by round.",
        epilog=EXAMPLES,
    )
    parser.add_argument("record", metavar="RECORD", help="a record's directory, or a case")
    parser.add_argument("--as", dest="who", metavar="NAME", help="who looks")
    parser.add_argument(
        "--port", metavar="N", type=int, default=PORT, help=f"0: any free one (default: {PORT})"
    )
    parser.add_argument("--listen", metavar="ADDRESS", help="where to listen (default: 127.0.0.1)")
    parser.add_argument("--certificate", metavar="FILE", help="its TLS certificate, PEM")
    parser.add_argument("--key", metavar="FILE", help="and the certificate's key")
    parser.add_argument(
        "--table-key", metavar="VKEY|FILE", help="the table's key from elsewhere, to verify with"
    )
    parser.add_argument("--index", metavar="FILE", help="the index (default: beside the segments)")
    parser.add_argument("--texts", metavar="FILE", help="the pages' words in another language")
    parser.add_argument("--json", action="store_true", help="print links as lines of JSON")
