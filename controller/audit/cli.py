"""`holecard audit`: the commands about a table's record, with their arguments and help.

What the commands do is in `controller.audit.commands`, which is imported when one of them runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from controller.audit.format.records import KINDS
from controller.commands import (
    INTERRUPTED,
    READER_GONE,
    Subparsers,
    add_command,
    add_group,
    help_text,
    whole_number,
)

_END_CODES: Final = {**INTERRUPTED, **READER_GONE}
_CODES: Final = {
    0: "done, or yes",
    1: "the answer is no, or the record is damaged",
    2: "wrong arguments, a file that cannot be used, or a place without a record, or in use",
    74: "the output, a record or an index cannot be written",
    **_END_CODES,
}
_ALL_CODES: Final = {
    **_CODES,
    3: "(verify) nothing is wrong, but not everything could be checked",
}
_SHOW_CODES: Final = {
    0: "shown",
    1: "nothing was found, or the record is damaged: its undamaged part is shown",
    2: "wrong arguments, an index that cannot be used, or a place without a record",
    74: "the output or an index cannot be written",
    **_END_CODES,
}
_TAIL_CODES: Final = {
    0: "shown",
    1: "the record is damaged: its undamaged part is shown",
    2: "wrong arguments, or a place without a record",
    74: "the output cannot be written",
    130: "interrupted, which is how --follow ends",
    **READER_GONE,
}
_VERIFY_CODES: Final = {
    0: "right",
    1: "wrong: the first bad place is printed first; or software that is in no given release",
    2: "wrong arguments, or a place that cannot be read",
    3: "nothing is wrong, but not everything could be checked: decisions of another software "
    "version (which one is printed), or missing segments",
    74: "the output cannot be written",
    **_END_CODES,
}
_ACCESS: Final = """\
Each query is logged beside the record, in RECORD.looks.jsonl, before anything is shown. Cards that
lie face down are not shown: they are sealed to surveillance, and `holecard audit open` opens the
hole card of a voided round. Times are in UTC, with ~ if the machine reported an unreliable clock.
"""
_RECORD: Final = "the record's directory"
_OR_COPY: Final = f"{_RECORD}, or a copy of it"
_DEFAULT_USER: Final = "(default: the user's name)"
_TABLE_KEY: Final = "a verifier key, or the file table.pub"
_MAX_RECORDS: Final = 100_000


def register(subparsers: Subparsers) -> None:
    audit = add_group(
        subparsers,
        "audit",
        "verify, show and export a table's record",
        description="Verifies, shows and exports the record of a table.",
        epilog=help_text(
            notes="`holecard audit COMMAND --help` explains a command, with examples.",
            exit_codes=dict(sorted(_ALL_CODES.items())),
        ),
    )
    for add in (
        *(_add_verify, _add_show, _add_tail, _add_open, _add_accept_tail),
        *(_add_sql, _add_rebuild_index, _add_export, _add_check_case),
        *(_add_prove, _add_check_proof, _add_cosign, _add_witnessed, _add_retire),
    ):
        add(audit)


def _command(
    audit: Subparsers,
    name: str,
    does: str,
    handler: str,
    examples: Sequence[str],
    notes: str = "",
    codes: dict[int, str] = _CODES,
) -> argparse.ArgumentParser:
    return add_command(
        audit,
        name,
        does,
        f"controller.audit.commands.{handler}",
        epilog=help_text([f"audit {name} {one}" for one in examples], notes, codes),
        json=True,
    )


def _add_user(parser: argparse.ArgumentParser, does: str) -> None:
    parser.add_argument("--by", metavar="NAME", help=f"who {does} {_DEFAULT_USER}")


def _add_two(parser: argparse.ArgumentParser, does: str) -> None:
    parser.add_argument("--by", metavar="NAME", help=f"who {does}")
    parser.add_argument(
        "--second", "--and", metavar="NAME", dest="second", help="the second person"
    )


def _add_index(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--index", metavar="FILE", help="the index (default: index.db in the record's directory)"
    )


def add_release_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--release",
        metavar="FILE",
        action="append",
        help="the signed list of a release that may have run; can be given several times",
    )
    parser.add_argument(
        "--release-key", metavar="VKEY|FILE", help="the key that signs releases: release.pub"
    )


# --- verify, show, tail -----------------------------------------------------------------------


def _add_verify(audit: Subparsers) -> None:
    parser = _command(
        audit,
        "verify",
        "verify a whole record",
        "verify:run",
        (
            "run/mega-1",
            "run/mega-1 --table-key papers/table.pub",
            "copy --checkpoint mega-1.note --witness-key archive/witness.pub",
            "run/mega-1 --release holecard-0.1.0.release --release-key papers/release.pub",
            "run/mega-1 --no-replay --json",
        ),
        """
RECORD may be in use, a copy, or on a read-only mount; nothing is changed. Every frame, hash,
signature, clock and cursor is checked, every opening of a hole card is compared with its
commitment, and every decision is replayed by the rules: a payout that the rules do not give is
found even if it was recorded correctly. A record alone cannot show that its end was cut off, or
that somebody with the table's key rewrote it: for that give a checkpoint that a witness has
countersigned. With --release the software of each boot, and every file of the software that runs
here, must be those of a signed list of a release.
""",
        _VERIFY_CODES,
    )
    parser.add_argument("record", metavar="RECORD", help=_OR_COPY)
    parser.add_argument(
        "--no-replay",
        action="store_true",
        help="do not replay the decisions: several times faster, and exit code 3",
    )
    parser.add_argument(
        "--table-key", metavar="VKEY|FILE", help=f"the table's key from elsewhere: {_TABLE_KEY}"
    )
    parser.add_argument("--checkpoint", metavar="NOTE", help="what a witness has countersigned")
    parser.add_argument("--witness-key", metavar="VKEY|FILE", help="the key of that witness")
    add_release_options(parser)
    parser.add_argument(
        "--jobs", metavar="N", type=whole_number(1, 256), help="processes (default: one per CPU)"
    )


def _add_show(audit: Subparsers) -> None:
    parser = _command(
        audit,
        "show",
        "show a round, or records, as text",
        "queries:show_records",
        (
            "run/mega-1",
            "run/mega-1 --round 17",
            "run/mega-1 --seq 1200-1260 --json",
            "run/mega-1 --seat 3 --card TH",
            "run/mega-1 --dealer Ann --kind refusal",
            "run/mega-1 --problems --round 10-90",
            'run/mega-1 --from "2027-01-15 22:30" --to 2027-01-16T02:00:00',
            "run/mega-1 --amount 500- --from 2027-01-15 --seat 3",
            "run/mega-1 --amount 12.50 --kind decision",
        ),
        f"""
A day or a time includes its end: --to 2027-01-15 is up to midnight of that day, UTC. Amounts are
written as in the table's last boot, with the sign of its currency or without; N- is N and more,
N-M is both and everything between. With --seat it is an amount of that seat.

Without arguments the current round is shown. A search by time, amount, seat, card, dealer, person,
kind or problem uses an index, which is built if there is none. --json prints a line of JSON for
each record: its place, and the record as it was written.

{_ACCESS}""",
        _SHOW_CODES,
    )
    parser.add_argument("record", metavar="RECORD", help=_OR_COPY)
    _add_user(parser, "looks")
    parser.add_argument("--round", metavar="N", help="a round, or rounds N-M")
    parser.add_argument("--seq", metavar="N", help="a record by its number, or records N-M")
    parser.add_argument("--kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--seat", metavar="N", type=int, help="records about this seat")
    parser.add_argument("--card", metavar="CARD", help="a card that lay face up, such as TH")
    parser.add_argument("--dealer", metavar="NAME", help="while this dealer dealt")
    parser.add_argument("--person", metavar="NAME", help="by this person, or as second person")
    parser.add_argument("--from", dest="since", metavar="TIME", help="from this time on, UTC")
    parser.add_argument("--to", dest="until", metavar="TIME", help="up to this time, UTC")
    parser.add_argument("--amount", metavar="N", help="an amount in it, or amounts N-M, or N-")
    parser.add_argument("--irregularity", metavar="NAME", help="such as misdeal or shoe_ran_out")
    parser.add_argument("--problems", action="store_true", help="what went wrong or was refused")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=whole_number(1, _MAX_RECORDS),
        default=100,
        help="records found (default: 100)",
    )
    _add_index(parser)


def _add_tail(audit: Subparsers) -> None:
    parser = _command(
        audit,
        "tail",
        "show the last records, as text",
        "queries:tail",
        ("run/mega-1", "run/mega-1 --lines 50", "run/mega-1 --follow --json"),
        f"""
At a running table the last records may not be durable yet, and be lost if the power fails.
--follow shows a record only after a later one proves that it was durable: within a second at a
running table. Without --follow the last records are shown at once.

{_ACCESS}""",
        _TAIL_CODES,
    )
    parser.add_argument("record", metavar="RECORD", help=_OR_COPY)
    _add_user(parser, "looks")
    parser.add_argument(
        "--lines",
        metavar="N",
        type=whole_number(0, _MAX_RECORDS),
        default=10,
        help="records from the end (default: 10)",
    )
    parser.add_argument("--follow", action="store_true", help="continue as the record grows")


# --- hole cards, trailing bytes ---------------------------------------------------------------


def _add_open(audit: Subparsers) -> None:
    parser = _command(
        audit,
        "open",
        "open the hole card of a voided round, with surveillance's key",
        "approvals:open_card",
        ('run/mega-1 --round 17 --keys surveillance --by Ann --reason "dispute 4711"',),
        """
Run it on surveillance's own machine, with its private key. Only the hole card of a round that was
voided is opened: any other was turned over and is in the record, or is still on the table. Who
opened it and why is logged beside the record, in RECORD.looks.jsonl, before the card is shown.
""",
    )
    parser.add_argument("record", metavar="RECORD", help=_OR_COPY)
    parser.add_argument("--round", metavar="N", required=True, help="the voided round")
    parser.add_argument("--keys", metavar="DIR", help="the directory with surveillance.key")
    _add_user(parser, "opens it")
    parser.add_argument("--reason", metavar="WORDS", help="why")


def _add_accept_tail(audit: Subparsers) -> None:
    parser = _command(
        audit,
        "accept-tail",
        "have two people accept unexplained bytes after the last record",
        "approvals:accept_tail",
        (
            "run/mega-1 --keys run/keys",
            "run/mega-1 --keys run/keys --by Ann --second Bo --yes",
        ),
        """
A record does not open if there are bytes after its last record that no power loss explains:
somebody may have written them, or the disk is failing. They are shown first. After two different
people have accepted them they are moved from the segment to the record's directory tails/, and a
boot is recorded that names both people. A record whose acknowledged records cannot be read any
more cannot be accepted.
""",
    )
    parser.add_argument("record", metavar="RECORD", help=_RECORD)
    parser.add_argument("--keys", metavar="DIR", help="the directory with table.key")
    _add_two(parser, "accepts it")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


# --- the index --------------------------------------------------------------------------------


def _add_sql(audit: Subparsers) -> None:
    parser = _command(
        audit,
        "sql",
        "query the index of a record in SQL, read-only",
        "queries:sql",
        (
            'run/mega-1 "SELECT dealer, count(*) FROM rounds GROUP BY dealer"',
            'run/mega-1 "SELECT * FROM problems" --rows 50 --json',
        ),
        """
One read-only statement over these views: records, cards, amounts, bets, irregularities, problems,
people, seats, shifts, rounds, segments. The index is updated first. Each query is logged beside the
record, in RECORD.looks.jsonl.
""",
    )
    parser.add_argument("record", metavar="RECORD", help=_RECORD)
    parser.add_argument("statement", metavar="SELECT", help="the query")
    parser.add_argument(
        "--rows", metavar="N", type=int, default=1_000, help="maximum of rows (default: 1000)"
    )
    parser.add_argument(
        "--seconds", metavar="S", type=float, default=30.0, help="timeout (default: 30)"
    )
    _add_user(parser, "asks")
    _add_index(parser)


def _add_rebuild_index(audit: Subparsers) -> None:
    parser = _command(
        audit,
        "rebuild-index",
        "rebuild the index of a record",
        "queries:rebuild_index",
        ("run/mega-1", "copy --index /var/tmp/mega-1.db"),
        """
The index is no part of the record: it is built from the segments, and can be rebuilt at any time,
also while the record is in use.
""",
    )
    parser.add_argument("record", metavar="RECORD", help=_RECORD)
    _add_index(parser)


# --- exports and proofs -----------------------------------------------------------------------


def _add_export(audit: Subparsers) -> None:
    parser = _command(
        audit,
        "export",
        "export a sealed case, or records as CSV or JSON Lines",
        "export:export_record",
        (
            'run/mega-1 --round 31 --out case-31.zip --by Eve --reason "complaint 7"',
            "run/mega-1 --day 2027-01-15 --out friday",
            "run/mega-1 --round 31-40 --format csv --out rounds.csv",
            "run/mega-1 --format jsonl | wc -l",
        ),
        """
A case contains whole segments, signed checkpoints, certificates, proofs, the description of the
format and a program that verifies all of it without us: unpack the case and run
`python3 verify_record.py record`. The table may be running. Each export is logged in
RECORD.looks.jsonl before anything is read; if that cannot be written, nothing is exported. A hole
card that was not turned over is in no export, except as its commitment and sealed to surveillance.
""",
    )
    parser.add_argument("record", metavar="RECORD", help=_RECORD)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--round", metavar="N[-M]", help="a round, or a range of rounds")
    what.add_argument("--day", metavar="YYYY-MM-DD", help="a gaming day")
    what.add_argument("--all", action="store_true", help="the whole record (the default)")
    parser.add_argument(
        "--format", choices=("case", "jsonl", "csv"), default="case", help="default: case"
    )
    parser.add_argument(
        "--out",
        metavar="FILE.zip|DIR",
        help="the output; CSV and JSON Lines go to stdout without it",
    )
    _add_user(parser, "asks")
    parser.add_argument("--reason", metavar="TEXT", help="why")


def _add_check_case(audit: Subparsers) -> None:
    parser = _command(
        audit,
        "check-case",
        "compare the files of a case with its manifest",
        "export:check_case_file",
        (
            "case-31.zip",
            "case-31 --seal 5f2b... --json",
            "2026.zip --retired-from run/mega-1",
        ),
    )
    parser.add_argument("case", metavar="CASE", help="a zip or a directory")
    parser.add_argument("--seal", metavar="HEX", help="the seal that was printed at the export")
    parser.add_argument(
        "--retired-from", metavar="RECORD", help="whether it was retired from this record"
    )


def _add_prove(audit: Subparsers) -> None:
    parser = _command(
        audit,
        "prove",
        "prove that records are in the signed tree, or that it only grew",
        "proofs:prove_records",
        (
            "run/mega-1 --round 31 --out round-31.json",
            "run/mega-1 --seq 812 813 --json",
            "run/mega-1 --since 20852 --out grown.json",
            "run/mega-1 --since mega-1.note --checkpoint later.note --out grown.json",
        ),
        "A proof contains the records themselves: each proof is logged in RECORD.looks.jsonl.",
    )
    parser.add_argument("record", metavar="RECORD", help=_RECORD)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--seq", metavar="N", type=int, nargs="+", help="records by their numbers")
    what.add_argument("--round", metavar="N", help="all records of a round")
    parser.add_argument(
        "--since", metavar="SIZE|FILE", action="append", help="an older tree, or its checkpoint"
    )
    parser.add_argument(
        "--checkpoint", metavar="FILE", help="the checkpoint to prove against (default: the last)"
    )
    parser.add_argument("--out", metavar="FILE", help="the proof file")
    _add_user(parser, "asks")


def _add_check_proof(audit: Subparsers) -> None:
    parser = _command(
        audit,
        "check-proof",
        "check a proof file with nothing but the table's key",
        "proofs:check_proof",
        (
            'round-31.json --table-key "$(cat mega-1.vkey)"',
            "round-31.json --table-key papers/table.pub --witness-key witness.pub",
        ),
    )
    parser.add_argument("file", metavar="FILE", help="a proof file")
    parser.add_argument(
        "--table-key", metavar="VKEY|FILE", required=True, help=f"the table's key: {_TABLE_KEY}"
    )
    parser.add_argument("--witness-key", metavar="VKEY|FILE", help="the key of a witness")


# --- witnesses, retirement --------------------------------------------------------------------


def _add_cosign(audit: Subparsers) -> None:
    parser = _command(
        audit,
        "cosign",
        "countersign a record's last checkpoint, as a witness",
        "proofs:cosign",
        (
            "/mnt/mega-1/record --keys keys --archive archive --out mega-1.note",
            'copy --keys keys --archive archive --table-key "$(cat mega-1.vkey)"',
        ),
        """
Run it by hand or by cron on a machine that no user of the table can write to. RECORD may be a copy
or on a read-only mount. The first time the whole record is read, and trusted from there on; after
that it must continue what the archive has seen. A record that was cut off, rewritten or replaced
is reported as such, and nothing is signed.
""",
    )
    parser.add_argument("record", metavar="RECORD", help=_OR_COPY)
    parser.add_argument("--keys", metavar="DIR", help="the directory with witness.key")
    parser.add_argument(
        "--archive", metavar="DIR", required=True, help="where the witness stores what it saw"
    )
    parser.add_argument("--table-key", metavar="VKEY|FILE", help="the table's key, from elsewhere")
    parser.add_argument("--out", metavar="FILE", help="the note (default: stdout)")
    parser.add_argument(
        "--new-record", action="store_true", help="the table has started a new record: trust it"
    )


def _add_witnessed(audit: Subparsers) -> None:
    parser = _command(
        audit,
        "witnessed",
        "bring countersigned checkpoints back to the record",
        "proofs:bring_notes",
        ("run/mega-1 mega-1.note --witness-key keys/witness.pub",),
    )
    parser.add_argument("record", metavar="RECORD", help=_RECORD)
    parser.add_argument("notes", metavar="NOTE", nargs="+", help="files from `cosign`")
    parser.add_argument(
        "--witness-key", metavar="VKEY|FILE", required=True, help="the key of the witness"
    )


def _add_retire(audit: Subparsers) -> None:
    parser = _command(
        audit,
        "retire",
        "move old gaming days from a record to a sealed case",
        "approvals:retire_days",
        (
            "run/mega-1 --before 2027-01-01 --out 2026.zip --by Ann --and Bo",
            "run/mega-1 --before 2027-01-01 --out old.zip --keys run/keys --by Ann --and Bo --json",
        ),
        """
Whole segments that contain only older gaming days are removed, from the first on: they are written
to a sealed case, a zip, which is synced and checked; then a note about them, signed with the
table's key, is written to RECORD/retired; then they are deleted. Only the case can bring them back,
so two different people approve. The open segment stays, with the one before it if a start needs
that, and so does an open round. `verify` then reports what was retired, and is as right as before.

The table must be off, and should be closed: what a start reads further back (the cards seen of a
shoe in play, and wrong PINs of the last day) is removed with its segments.

If nothing is old enough, the record is not right or the case does not check, the exit code is 1,
and nothing is removed. If a removal was interrupted, the same command with the same case ends it.
""",
    )
    parser.add_argument("record", metavar="RECORD", help=_RECORD)
    parser.add_argument(
        "--before", metavar="DAY", required=True, help="the first gaming day that stays"
    )
    parser.add_argument("--out", metavar="FILE.zip", required=True, help="the case")
    parser.add_argument(
        "--keys", metavar="DIR", help="the directory with table.key (default: RECORD/keys, if any)"
    )
    _add_two(parser, "approves it")
