"""Forges records with valid CRCs, chains and trees, and, with the keys, valid signatures.

The segment is rewritten frame by frame; unchanged records keep their bytes.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest import mock

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controller.audit.format.merkle import Span, leaf_hash
from controller.audit.format.notes import TABLE_KEY as TABLE_SUFFIX
from controller.audit.format.notes import (
    Checkpoint,
    SigningKey,
    certificate,
    format_note,
    table_name,
)
from controller.audit.format.segments import chain_start, chained, pack, pack_header, segment_file
from controller.audit.log import checkpoints
from controller.audit.read.reader import segments
from controller.audit.simulate import SCRIPTS, Recorder, play_recorded
from controller.sim.scripts.runner import procedure_for
from tests.support.audit.record.dealing import keyring
from tests.support.audit.record.scripted import read_rounds
from tests.support.audit.record.table import TABLE_KEY
from tests.support.sim.a_round import ROUND, action, changed

Json = dict[str, Any]
Change = Callable[[list[Json]], None]
"""Changes the records in place."""

SIZE: Final = 256 * 1024
"""Size of the single segment."""


class Keys(NamedTuple):
    """The keys of an attacker who controls the table's computer."""

    boot: Ed25519PrivateKey
    table: Ed25519PrivateKey


class Original(NamedTuple):
    """A valid record and its keys."""

    place: Path
    keys: Keys


def original(folder: Path) -> Original:
    """Three rounds: a loss, a double that wins, a loss."""
    rounds = read_rounds(
        folder,
        ROUND,
        changed(
            id="R-2",
            title="Doubles 11 and wins",
            shoe=["6C", "6D", "5C", "TS", "TH", "TD"],
            actions=[action("double")],
            expect={"seat_net": {"1": 2000}},
        ),
        changed(id="R-3"),
    )
    place = folder / "record"
    keys: dict[str, Ed25519PrivateKey] = {}

    def remember(name: str, key: Ed25519PrivateKey) -> SigningKey:
        keys[name] = key
        return SigningKey(name, key)

    with (
        mock.patch.object(checkpoints, "SigningKey", remember),
        Recorder(place, SCRIPTS, keyring, size=SIZE) as recorder,
    ):
        for scripted in rounds:
            result = play_recorded(recorder, scripted, None, procedure_for(scripted, {}))
            assert result.ok, result.failures
    (boot,) = (key for name, key in keys.items() if not name.endswith(TABLE_SUFFIX))
    return Original(place, Keys(boot, TABLE_KEY))


def read(place: Path) -> list[bytes]:
    """All records of the single segment."""
    (only,) = segments(place)
    return [frame.data for frame in only.frames]


def forged(from_: Path, to: Path, change: Change, keys: Keys | None) -> Path:
    """A changed copy. Without keys, signed notes stay unchanged."""
    before = [json.loads(data) for data in read(from_)]
    records = [dict(record) for record in json.loads(json.dumps(before))]
    change(records)
    _number_anew(records)
    shutil.copytree(from_, to)
    origin = records[0]["data"]["origin"]
    tree, chain = Span(), chain_start(origin)
    body = bytearray(pack_header(1, SIZE))
    opened = 0
    for record in records:
        seq = record["seq"]
        opened = seq if record["kind"] == "opened" else opened
        if keys is not None:
            _sign_anew(record, keys, origin, tree, opened)
        data = json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()
        leaf = leaf_hash(data)
        chain = chained(chain, leaf)
        tree.add(leaf)
        body += pack(seq, seq - 1, chain, data)
    segment_file(to, 1).write_bytes(body.ljust(SIZE, b"\0"))
    assert len(body) <= SIZE
    return to


def _number_anew(records: list[Json]) -> None:
    moved: dict[int, int] = {}
    for seq, record in enumerate(records, 1):
        moved.setdefault(record["seq"], seq)
        record["seq"] = seq
        if "cause" in record:
            record["cause"] = moved.get(record["cause"], record["cause"])


def _sign_anew(record: Json, keys: Keys, origin: str, tree: Span, opened: int) -> None:
    if record["kind"] == "checkpoint":
        text = Checkpoint(origin, tree.end, tree.root()).text()
        record["data"]["note"] = format_note(text, SigningKey(origin, keys.boot).sign(text))
    if record["kind"] == "certificate":
        table = SigningKey(table_name(origin), keys.table)
        public = keys.boot.public_key().public_bytes_raw()
        record["data"]["note"] = certificate(origin, record["boot"], public, opened, table)


# --- finding one's way ------------------------------------------------------------------------


def at_event(records: list[Json], event: str, nth: int = 0) -> int:
    """The index of the nth decision with such an event."""
    found = [
        index
        for index, record in enumerate(records)
        if record["kind"] == "decision" and record["data"]["event"]["type"] == event
    ]
    return found[nth]


def at_effect(records: list[Json], effect: str, nth: int = 0) -> tuple[int, Json]:
    """The index of the record with the nth such effect, and that effect."""
    found = [
        (index, one)
        for index, record in enumerate(records)
        for one in record["data"].get("effects", ())
        if one["type"] == effect
    ]
    return found[nth]


def at_kind(records: list[Json], kind: str, nth: int = 0) -> int:
    return [index for index, record in enumerate(records) if record["kind"] == kind][nth]
