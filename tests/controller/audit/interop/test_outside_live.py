"""Reading a record from outside while its table writes it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from controller.audit.export import check_case, export_case
from controller.audit.log import Log
from controller.audit.proofs import last_signed, make_proof, verify_proof
from controller.audit.read.lookup import Selection
from controller.audit.witness import CosignedNote
from tests.support.audit.record.table import begun, note
from tests.support.audit.tools.outside import VERIFIER, root_of, table_key
from tests.support.audit.witnessing import seen_by

TIMES = 12
MAX_SIZE = 1500
"""Batches of about six records each."""


@contextmanager
def being_written(place: Path) -> Iterator[Log]:
    """Append notes to small segments until the readers are done."""
    log, enough = begun(place, size=32 * 1024), Event()

    def write() -> None:
        for turn in range(1, MAX_SIZE):
            if enough.is_set():
                return
            for at in range(turn % 4 + 1):
                log.write([note(f"{turn} {at}", 40 * at, round=turn)] * (turn % 3 + 1))
            log.sign()

    writer = Thread(target=write, name="table")
    writer.start()
    try:
        yield log
    finally:
        enough.set()
        writer.join()
        log.close()


def test_a_witness_cosigns_a_growing_record(tmp_path: Path) -> None:
    record, archive = tmp_path / "record", tmp_path / "archive"
    seen: list[CosignedNote] = []
    with being_written(record):
        while len(seen) < TIMES or seen[-1].size == seen[0].size:
            seen.append(seen_by(record, archive))
    for made in seen:
        assert made.root == root_of(record, made.size)
    assert [made.before for made in seen[1:]] == [made.size for made in seen[:-1]]
    assert seen[-1].size > seen[0].size


def test_proofs_are_made_of_a_growing_record(tmp_path: Path) -> None:
    record = tmp_path / "record"
    with being_written(record):
        for _ in range(TIMES):
            signed = last_signed(record)
            proof = make_proof(record, [2, signed.checkpoint.size], signed)
            found = verify_proof("p", proof, table_key(record))
            assert found.checkpoint == signed.checkpoint


def test_cases_are_exported_from_a_growing_record(tmp_path: Path) -> None:
    record = tmp_path / "record"
    with being_written(record):
        cases = [export_case(record, tmp_path / f"case-{at}", Selection()) for at in range(TIMES)]
    for case in cases:
        assert case.manifest.remarks == ()
        assert check_case(case.out).right
    for case in (cases[0], cases[-1]):
        ran = subprocess.run(
            [sys.executable, "-I", VERIFIER, "record"],
            cwd=case.out, capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout
