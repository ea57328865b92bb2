"""`holecard audit cosign` and `witnessed`: checkpoints that somebody else has countersigned."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from controller.audit.commands.common import (
    Subparsers,
    bytes_of,
    command,
    given_table,
    given_witness,
    path_of,
    print_bytes,
    print_json,
    progress,
    say,
    writing,
)
from controller.audit.files import RealDisk, write_atomically
from controller.audit.keys import load_witness_key
from controller.audit.read.follow import to_its_end
from controller.audit.read.heads import first_head
from controller.audit.witness import CosignedNote, cosign_record, store_notes
from controller.errors import printable
from controller.terminal import keys_directory_of, usage_errors

COSIGN_EXAMPLES: Final = """\
examples:
  holecard audit cosign /mnt/mega-1/record --keys keys --archive archive --out mega-1.note
  holecard audit cosign copy --keys keys --archive archive --table-key "$(cat mega-1.vkey)"

Run it by hand or by cron on a machine that nobody of the table can write to. RECORD may be a copy
or a mount that is read only. The first time all of the record is read, and trusted from there on;
after that it must continue what the archive has seen. A record that was cut off, rewritten or
replaced is told by name, and nothing is signed.
"""
WITNESSED_EXAMPLES: Final = """\
examples:
  holecard audit witnessed run/mega-1 mega-1.note --witness-key keys/witness.pub
"""


def add_cosign(subparsers: Subparsers) -> None:
    does = "countersign a record's last checkpoint, as a witness"
    parser = command(subparsers, "cosign", does, run_cosign, COSIGN_EXAMPLES)
    parser.add_argument("record", metavar="RECORD", help="the record's directory, or a copy of it")
    parser.add_argument("--keys", metavar="DIR", help="the directory with witness.key")
    parser.add_argument(
        "--archive", metavar="DIR", required=True, help="where the witness keeps what it saw"
    )
    parser.add_argument("--table-key", metavar="VKEY|FILE", help="the table's key, from elsewhere")
    parser.add_argument("--out", metavar="FILE", help="where the note goes (default: stdout)")
    parser.add_argument(
        "--new-record", action="store_true", help="the table has begun another record: trust it"
    )


def add_witnessed(subparsers: Subparsers) -> None:
    does = "bring countersigned checkpoints back to the record"
    parser = command(subparsers, "witnessed", does, bring, WITNESSED_EXAMPLES)
    parser.add_argument("record", metavar="RECORD", help="the record's directory")
    parser.add_argument(
        "notes", metavar="NOTE", nargs="+", help="files that `cosign_record` has made"
    )
    parser.add_argument(
        "--witness-key", metavar="VKEY|FILE", required=True, help="the key of the witness"
    )


def run_cosign(args: argparse.Namespace) -> int:
    record = path_of("RECORD", args.record)
    table = None
    if args.table_key is not None:
        table = given_table(args.table_key, lambda: first_head(record).snapshot.origin)
    with usage_errors():
        key = load_witness_key(keys_directory_of(args))
    out = None if args.out is None else path_of("--out", args.out)
    archive = path_of("--archive", args.archive)
    with to_its_end(record):
        with progress() as tell:
            made = cosign_record(
                record, archive, key, table_key=table, begin=args.new_record, tell=tell
            )
        _tell_witnessed(made)
        _put_note(made, out, json=args.json)
    return 0


def _put_note(made: CosignedNote, out: Path | None, *, json: bool) -> None:
    if out is not None:
        with writing(out):
            write_atomically(RealDisk(), out, made.note.encode())
    if json:
        print_json(
            {
                "origin": made.origin,
                "size": made.size,
                "root": made.root.hex(),
                "before": made.before,
                "table_key": made.table_key,
                "table_key_proven": made.proven,
                "note": made.note,
            }
        )
    elif out is None:
        print_bytes(made.note.encode())


def _tell_witnessed(made: CosignedNote) -> None:
    if not made.first:
        say(f"{made.origin}: {made.size} records, continues the {made.before} seen before")
        return
    read = f"all {made.size} records up to its last checkpoint were read"
    say(f"{made.origin}: seen for the first time, trusted from here on; {read}")
    if not made.proven:
        todo = "hold it against the table's papers, or give --table-key"
        say(f"the table's key is the record's own word; {todo}: {made.table_key}")


def bring(args: argparse.Namespace) -> int:
    key = given_witness(args.witness_key)
    notes = [(printable(name), bytes_of("NOTE", name)) for name in args.notes]
    brought = store_notes(path_of("RECORD", args.record), notes, key)
    if args.json:
        print_json([{"size": one.size, "file": one.file.name, "new": one.new} for one in brought])
        return 0
    for one in brought:
        print(f"{one.file.name}: {'brought' if one.new else 'is there already'}")
    return 0
