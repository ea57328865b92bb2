"""`holecard audit prove`, `check-proof`, `cosign` and `witnessed`: proofs of a record."""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from controller.audit.commands.common import (
    bytes_of,
    rounds_of,
    segment_progress,
    table_key_of,
    witness_key_of,
)
from controller.audit.export import check_free, time_text
from controller.audit.files import Disk, write_atomically
from controller.audit.format.notes import Checkpoint
from controller.audit.format.records import Record
from controller.audit.keys import load_witness_key
from controller.audit.proofs import (
    CheckedProof,
    OlderSize,
    Proof,
    decode_proof,
    encode_proof,
    last_signed,
    make_proof,
    seqs_of_round,
    signed_as,
    verify_proof,
)
from controller.audit.read.access_log import log_access
from controller.audit.read.follow import to_its_end
from controller.audit.read.lookup import first_head, gone_before
from controller.audit.read.retirements import where_retired
from controller.audit.witness import CosignedNote, cosign_record, store_notes
from controller.commands import os_errors, path_of, print_bytes, print_json, say, show, text_of
from controller.errors import UsageProblem, printable
from controller.terminal import keys_directory_of, usage_errors

_MAX_SEQ: Final = 10**18 - 1
_SIZE: Final = re.compile(r"[0-9]{1,18}")


def prove_records(args: argparse.Namespace) -> int:
    record, since = path_of("RECORD", args.record), args.since or []
    for seq in args.seq or ():
        if not 1 <= seq <= _MAX_SEQ:
            raise UsageProblem("--seq", f"{seq} is no record", f"1 to {_MAX_SEQ}")
    if not (args.seq or args.round or since):
        raise UsageProblem("arguments", "there is nothing to prove", "--seq, --round or --since")
    turn = rounds_of(args.round, single=True)[0] if args.round else 0
    out = None if args.out is None else path_of("--out", args.out)
    if out is not None:
        check_free(out)
    older_files = [
        (one, None if _SIZE.fullmatch(one) else bytes_of("--since", one)) for one in since
    ]
    given = None if args.checkpoint is None else bytes_of("--checkpoint", args.checkpoint)
    asked = f"round {turn}" if turn else f"records {args.seq}" if args.seq else "how it grew"
    first_head(record)
    log_access(record, "prove", asked, who=text_of("--by", args.by))
    with to_its_end(record):
        signed = last_signed(record) if given is None else signed_as(record, args.checkpoint, given)
        older = [_older(record, name, data) for name, data in older_files]
        seqs: list[int] = args.seq or []
        if turn:
            seqs, unsigned = seqs_of_round(record, turn, signed)
            if retired := where_retired(record, rounds=(turn, turn)):
                say(f"{retired}: no record of it in there is in this proof")
            if gone := gone_before(record):
                say(f"{gone}: no record of round {turn} in them is in this proof")
            if unsigned:
                say(f"{unsigned} later records of round {turn} are not in this checkpoint")
        with segment_progress() as on_segment:
            proof = make_proof(record, seqs, signed, older, on_segment)
        _put_proof(proof, signed.checkpoint, out, json=args.json)
    return 0


def _put_proof(proof: Proof, said: Checkpoint, out: Path | None, *, json: bool) -> None:
    data = encode_proof(proof)
    if out is not None:
        with os_errors("--out", out, "another place"):
            write_atomically(Disk(), out, data)
    if json:
        print_bytes(data)
        return
    print(f"{said.origin}: checkpoint over {said.size} records, root {said.root.hex()}")
    for one in proof.records:
        print(f"record {one.seq}: in the tree, {len(one.hashes)} hashes")
    for each in proof.grown:
        print(f"{each.size} records, root {each.root}: grown, {len(each.hashes)} hashes")


def _older(record: Path, name: str, data: bytes | None) -> OlderSize:
    if data is None:
        return OlderSize(int(name))
    signed = signed_as(record, printable(name), data)
    return OlderSize(signed.checkpoint.size, signed)


def check_proof(args: argparse.Namespace) -> int:
    where = printable(args.file)
    witness = None if args.witness_key is None else witness_key_of(args.witness_key)
    table = table_key_of(args.table_key, lambda: _proof(args.file).origin)
    found = verify_proof(where, _proof(args.file), table, witness)
    if args.json:
        print_json(_checked_json(found))
        return 0
    said = found.checkpoint
    print(f"{said.origin}: signed by the table: {said.size} records, root {said.root.hex()}")
    for one in found.records:
        print(_record_line(one))
    for size, root, is_signed in found.grown:
        words = "signed too" if is_signed else "its root is not signed here"
        print(f"grown from {size} records, root {root.hex()}, {words}")
    if found.witnessed is not None:
        print(f"a witness saw {found.witnessed_size} records at {_time(found.witnessed)}")
    return 0


def _proof(file: str) -> Proof:
    return decode_proof(printable(file), bytes_of("FILE", file))


def _record_line(one: Record) -> str:
    who = printable(f"{one.by.role} {one.by.name}")
    when = time_text(one.utc)
    return f"record {one.seq}: {one.kind} of round {one.round}, {when} UTC, by {who}"


def _checked_json(found: CheckedProof) -> dict[str, object]:
    said = found.checkpoint
    return {
        "origin": said.origin,
        "size": said.size,
        "root": said.root.hex(),
        "records": [one.seq for one in found.records],
        "grown": [
            {"size": size, "root": root.hex(), "signed": is_signed}
            for size, root, is_signed in found.grown
        ],
        "witnessed": found.witnessed,
        "witnessed_size": found.witnessed_size,
    }


def _time(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


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
            write_atomically(Disk(), out, made.note.encode())
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
