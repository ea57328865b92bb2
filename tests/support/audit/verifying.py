"""The verifier, as its tests ask it."""

import json
from pathlib import Path

import pytest

from controller.audit import verify_record
from controller.audit.format.notes import format_note, parse_note
from controller.audit.read.reader import segments
from controller.audit.verify import VerifyReport, verify
from tests.support.audit.tools.by_page import Json
from tests.support.audit.tools.outside import WITNESS
from tests.support.audit.tools.signers import SECONDS


def json_report(capsys: pytest.CaptureFixture[str], folder: Path, *more: str) -> Json:
    """What the command says, its exit code held against it."""
    code = verify_record.main([str(folder), "--json", *more])
    out, err = capsys.readouterr()
    assert err == ""
    found: Json = json.loads(out)
    assert found["exit"] == code
    return found


def read_independently(folder: Path) -> Json:
    """The same without the command."""
    return verify_record.verify(verify_record.Reading(folder, None, None), None, lambda _: None)


def accepted(found: Json) -> bool:
    """Whether nothing is wrong, and nothing was left out but the settlement of a made-up game."""
    left = [one for one in found["not_checked"] if "not settled again" not in one]
    return (found["exit"], found["wrong"], left) in ((0, None, []), (3, None, []))


def cosigned_end(place: Path) -> bytes:
    """The last checkpoint of a record, countersigned."""
    *_, last = segments(place)
    note = parse_note(json.loads(last.frames[-1].data)["data"]["note"])
    return format_note(note.text, *note.signatures, WITNESS.cosign(note.text, SECONDS)).encode()


def whats(report: VerifyReport) -> list[str]:
    """What was found, without the places."""
    return [found.what for found in report.findings]


def right(place: Path, *, replay: bool = False) -> None:
    """Both verifiers accept the record."""
    assert whats(verify(place, replay=replay)) == []
    assert read_independently(place)["wrong"] is None
