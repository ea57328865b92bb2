"""`holecard audit prove` and `check-proof`: proofs that stand by themselves."""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime
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
    rounds_of,
    say,
    text_of,
    writing,
)
from controller.audit.export import check_free, time_text
from controller.audit.files import RealDisk, write_atomically
from controller.audit.format.notes import Checkpoint
from controller.audit.format.records import Record
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
from controller.audit.read.heads import first_head, gone_before
from controller.audit.read.retirements import where_retired as was_retired
from controller.errors import UsageProblem, printable

PROVE_EXAMPLES: Final = """\
examples:
  holecard audit prove run/mega-1 --round 31 --out round-31.json
  holecard audit prove run/mega-1 --seq 812 813 --json
  holecard audit prove run/mega-1 --since 20852 --out grown.json
  holecard audit prove run/mega-1 --since mega-1.note --checkpoint later.note --out grown.json

A proof holds the records themselves: that it was made is noted in RECORD.looks.jsonl.
"""
CHECK_PROOF_EXAMPLES: Final = """\
examples:
  holecard audit check-proof round-31.json --table-key "$(cat mega-1.vkey)"
  holecard audit check-proof round-31.json --table-key papers/table.pub \\
    --witness-key witness.pub
"""
_TABLE_KEY: Final = "the table's key: a verifier key, or the file table.pub"
_LAST: Final = 10**18 - 1
"""No record has a greater number."""
_SIZE: Final = re.compile(r"[0-9]{1,18}")


def add_prove(subparsers: Subparsers) -> None:
    does = "prove that records stand in the signed tree, or that it only grew"
    parser = command(subparsers, "prove", does, run_prove, PROVE_EXAMPLES)
    parser.add_argument("record", metavar="RECORD", help="the record's directory")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--seq", metavar="N", type=int, nargs="+", help="records by their numbers")
    what.add_argument("--round", metavar="N", help="all records of a round")
    parser.add_argument(
        "--since", metavar="SIZE|FILE", action="append", help="an older tree, or its checkpoint"
    )
    parser.add_argument(
        "--checkpoint", metavar="FILE", help="the checkpoint to prove against (default: the last)"
    )
    parser.add_argument("--out", metavar="FILE", help="where the proof goes")
    parser.add_argument("--by", metavar="NAME", help="who asks (default: the user's name)")


def add_check_proof(subparsers: Subparsers) -> None:
    does = "check a proof file with nothing but the table's key"
    parser = command(subparsers, "check-proof", does, run_check_proof, CHECK_PROOF_EXAMPLES)
    parser.add_argument("file", metavar="FILE", help="a proof file")
    parser.add_argument("--table-key", metavar="VKEY|FILE", required=True, help=_TABLE_KEY)
    parser.add_argument(
        "--witness-key", metavar="VKEY|FILE", help="the key of a witness who saw it"
    )


def run_prove(args: argparse.Namespace) -> int:
    record, since = path_of("RECORD", args.record), args.since or []
    for seq in args.seq or ():
        if not 1 <= seq <= _LAST:
            raise UsageProblem("--seq", f"{seq} is no record", f"1 to {_LAST}")
    if not (args.seq or args.round or since):
        raise UsageProblem("arguments", "nothing to prove", "--seq, --round or --since")
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
            if retired := was_retired(record, rounds=(turn, turn)):
                say(f"{retired}: no record of it in there is in this proof")
            if gone := gone_before(record):
                say(f"{gone}: no record of round {turn} in them is in this proof")
            if unsigned:
                say(f"{unsigned} later records of round {turn} are not in this checkpoint")
        with progress() as tell:
            proof = make_proof(record, seqs, signed, older, tell)
        _put_proof(proof, signed.checkpoint, out, json=args.json)
    return 0


def _put_proof(proof: Proof, said: Checkpoint, out: Path | None, *, json: bool) -> None:
    data = encode_proof(proof)
    if out is not None:
        with writing(out):
            write_atomically(RealDisk(), out, data)
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


def run_check_proof(args: argparse.Namespace) -> int:
    where = printable(args.file)
    witness = None if args.witness_key is None else given_witness(args.witness_key)
    table = given_table(args.table_key, lambda: _proof(args.file).origin)
    proof = _proof(args.file)
    found = verify_proof(where, proof, table, witness)
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
