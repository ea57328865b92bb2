"""`holecard audit cosign` and `witnessed`: checkpoints that a witness countersigns."""

from __future__ import annotations

import argparse
from pathlib import Path

from controller.audit.commands.common import (
    bytes_of,
    segment_progress,
    table_key_of,
    witness_key_of,
)
from controller.audit.files import RealDisk, write_atomically
from controller.audit.keys import load_witness_key
from controller.audit.read.follow import to_its_end
from controller.audit.read.lookup import first_head
from controller.audit.witness import CosignedNote, cosign_record, store_notes
from controller.commands import os_errors, path_of, print_bytes, print_json, say, show
from controller.errors import printable
from controller.terminal import keys_directory_of, usage_errors


def cosign(args: argparse.Namespace) -> int:
    record = path_of("RECORD", args.record)
    table = None
    if args.table_key is not None:
        table = table_key_of(args.table_key, lambda: first_head(record).snapshot.origin)
    with usage_errors():
        key = load_witness_key(keys_directory_of(args))
    out = None if args.out is None else path_of("--out", args.out)
    archive = path_of("--archive", args.archive)
    with to_its_end(record):
        with segment_progress() as on_segment:
            made = cosign_record(
                record, archive, key, table_key=table, begin=args.new_record, tell=on_segment
            )
        _report(made)
        _put_note(made, out, json=args.json)
    return 0


def _put_note(made: CosignedNote, out: Path | None, *, json: bool) -> None:
    if out is not None:
        with os_errors("--out", out, "another place"):
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


def _report(made: CosignedNote) -> None:
    if not made.first:
        say(f"{made.origin}: {made.size} records, continues the {made.before} seen before")
        return
    read = f"all {made.size} records up to its last checkpoint were read"
    say(f"{made.origin}: seen for the first time, trusted from here on; {read}")
    if not made.proven:
        todo = "compare it with the table's papers, or give --table-key"
        say(f"the table's key comes from the record itself; {todo}: {made.table_key}")


def bring_notes(args: argparse.Namespace) -> int:
    key = witness_key_of(args.witness_key)
    notes = [(printable(name), bytes_of("NOTE", name)) for name in args.notes]
    brought = store_notes(path_of("RECORD", args.record), notes, key)
    answer = [{"size": one.size, "file": one.file.name, "new": one.new} for one in brought]
    lines = [f"{one.file.name}: {'brought' if one.new else 'is there already'}" for one in brought]
    show(args, answer, "\n".join(lines))
    return 0
