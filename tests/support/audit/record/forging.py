"""Forges records with valid CRCs, chains and trees, and, with the keys, valid signatures.

Unchanged records keep their bytes.
"""

import shutil
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest import mock

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import convert

from controller.audit.format.hole_cards import NONCE_SIZE, CardOpening, commitment
from controller.audit.format.notes import TABLE_KEY as TABLE_SUFFIX
from controller.audit.format.notes import SigningKey
from controller.audit.format.records import DeviceCursor, table_of
from controller.audit.log import checkpoints
from controller.audit.read.reader import segments
from controller.audit.simulate import SCRIPTS, Recorder, play_recorded
from controller.sim.scripts.runner import procedure_for
from tests.support.audit.record.dealing import keyring
from tests.support.audit.record.resigning import Entry, Json, Keys, put_together, taken_apart
from tests.support.audit.record.scripted import read_rounds
from tests.support.audit.record.table import TABLE_KEY
from tests.support.sim.a_round import ROUND, action, changed

Change = Callable[[list[Json]], None]
"""Changes the records in place."""

SIZE: Final = 256 * 1024
"""Size of the single segment."""


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
    return Original(place, Keys(TABLE_KEY, lambda _: boot))


def read(place: Path) -> list[bytes]:
    """All records of the single segment."""
    (only,) = segments(place)
    return [frame.data for frame in only.frames]


def forged(from_: Path, to: Path, change: Change, keys: Keys | None) -> Path:
    """A changed copy. Without keys, signed notes stay unchanged."""
    draft = taken_apart(from_, "forged")
    records = [deepcopy(entry.record) for entry in draft.entries]
    change(records)
    entries = tuple(Entry(record, record["seq"], 1) for record in records)
    shutil.copytree(from_, to)
    for name, data in put_together(replace(draft, entries=entries), keys).items():
        (to / name).write_bytes(data)
    return to


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


# --- ways to tamper with a record, and whether the rules detect them --------------------------


HOUR_US: Final = 3_600_000_000
_CARD: Final = NONCE_SIZE + 6
"""Position of the card in an opening."""


class Tampering(NamedTuple):
    change: Callable[[list[Json]], Any]
    tells: bool
    """Detected in the record itself, even with valid signatures."""


def _payout(records: list[Json]) -> None:
    _, settled = at_effect(records, "Settled", 1)
    settled["returned"] += 1000


def _rewritten(records: list[Json]) -> None:
    """The prompt, the confirmation and the payout, all of the same amount."""
    index, settled = at_effect(records, "Settled", 1)
    settled["returned"] += 1000
    records[index]["data"]["event"]["amount"] = settled["returned"] - settled["stake"]
    for effect in records[index - 1]["data"]["effects"]:
        if effect["type"] == "Prompt":
            effect["amount"] += 1000


def _deleted(records: list[Json]) -> None:
    del records[at_event(records, "Stand")]


def _forgotten(records: list[Json]) -> None:
    """Remove a whole round with its checkpoints."""
    first, last = at_event(records, "WagerPlaced", 1), at_event(records, "Cleared", 1)
    del records[first : last + 1]


def _inserted(records: list[Json]) -> None:
    index = at_event(records, "Stand")
    hit = deepcopy(records[index])
    hit["data"]["event"]["type"] = "Hit"
    records.insert(index, hit)


def _made_up(records: list[Json]) -> None:
    """A person who never signed in."""
    index = at_event(records, "Cleared")
    person = deepcopy(records[index])
    del person["data"]
    person["by"] = {"role": "floor", "name": "Zoe"}
    person |= {"kind": "person", "data": {"what": "signed in"}}
    records.insert(index, person)


def _swapped(records: list[Json]) -> None:
    one, other = at_event(records, "Double"), at_event(records, "Confirmed")
    data = records[one]["data"], records[one]["by"]
    records[one]["data"], records[one]["by"] = records[other]["data"], records[other]["by"]
    records[other]["data"], records[other]["by"] = data


def _cards_swapped(records: list[Json]) -> None:
    """With their positions in the shoe's log."""
    one, other = at_event(records, "CardDrawn", 4), at_event(records, "CardDrawn", 5)
    for name in ("data", "cursor"):
        records[one][name], records[other][name] = records[other][name], records[one][name]


def _duplicated(records: list[Json]) -> None:
    index = at_event(records, "Paid")
    records.insert(index, deepcopy(records[index]))


def _truncated(records: list[Json]) -> None:
    """Remove the last round, and close the record."""
    end, close = at_event(records, "ShuffleCalled", 1), at_event(records, "TableClosed")
    number = records[end - 1]["round"]
    records[end:] = [{**one, "round": number} for one in records[close:]]


def _fitted_in(records: list[Json]) -> None:
    """Altered to fit into this record."""
    index = at_event(records, "Cleared")
    other = deepcopy(records[index])
    other |= {"kind": "note", "data": {"text": "nothing happened"}}
    records.insert(index, other)


def _renamed(records: list[Json]) -> None:
    """Another dealer, wherever one is named."""
    for record in records:
        if record.get("by", {}).get("role") == "dealer":
            record["by"]["name"] = "Zoe"


def _renamed_once(records: list[Json]) -> None:
    records[at_event(records, "Paid")]["by"]["name"] = "Zoe"


def _later(records: list[Json]) -> None:
    """All records one hour later."""
    for record in records:
        record["utc"] += HOUR_US


def _later_once(records: list[Json]) -> None:
    records[at_event(records, "Paid")]["utc"] += HOUR_US


def _turned(records: list[Json]) -> None:
    """Another card is turned over than was dealt."""
    event = records[at_event(records, "HoleRevealed")]["data"]["event"]
    event["card"] = _other_suit(event["card"])


def _hidden(records: list[Json]) -> None:
    """Another card of the same rank was dealt, so payouts are equal."""
    dealt = records[at_event(records, "HoleDealt")]
    revealed = records[at_event(records, "HoleRevealed")]["data"]["event"]
    opening = bytearray.fromhex(revealed["opening"])
    opening[_CARD] = _other_suit(opening[_CARD])
    dealt["data"]["event"]["commitment"] = commitment(
        table_of(records[0]["data"]["origin"]),
        convert(dealt["cursor"], DeviceCursor),
        CardOpening.of_bytes(bytes(opening)),
    ).hex()
    revealed |= {"card": opening[_CARD], "opening": opening.hex()}


def _other_suit(card: int) -> int:
    return (card + 13) % 52


def _unsigned(records: list[Json]) -> None:
    del records[at_kind(records, "checkpoint", 2)]


def _other_amount(records: list[Json]) -> None:
    """A different valid wager, without its consequences."""
    records[at_event(records, "WagerPlaced")]["data"]["event"]["amount"] *= 2


TAMPERINGS: Final[dict[str, Tampering]] = {
    "a payout altered": Tampering(_payout, True),
    "a payout altered with its prompt": Tampering(_rewritten, True),
    "a wager altered": Tampering(_other_amount, True),
    "a decision deleted": Tampering(_deleted, True),
    "a round deleted": Tampering(_forgotten, True),
    "a decision inserted": Tampering(_inserted, True),
    "a sign-in inserted": Tampering(_made_up, False),
    "decisions swapped": Tampering(_swapped, True),
    "cards swapped": Tampering(_cards_swapped, True),
    "a payment duplicated": Tampering(_duplicated, True),
    "the last round cut off": Tampering(_truncated, False),
    "another table's record fitted in": Tampering(_fitted_in, False),
    "the dealer renamed": Tampering(_renamed, False),
    "the dealer of one payment renamed": Tampering(_renamed_once, False),
    "all of it an hour later": Tampering(_later, False),
    "one payment an hour later": Tampering(_later_once, True),
    "the hole card turned over as another": Tampering(_turned, True),
    "the hole card another from the beginning": Tampering(_hidden, False),
    "a checkpoint removed": Tampering(_unsigned, False),
}
