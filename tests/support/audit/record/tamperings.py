"""Ways to tamper with a record, and whether the rules detect them.

An undetected one is a possible record: only a comparison with the original shows it.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final, NamedTuple

from msgspec import convert

from controller.audit.format.hole_cards import NONCE_SIZE, CardOpening, commitment
from controller.audit.format.records import DeviceCursor
from tests.support.audit.record.forging import Json, at_effect, at_event, at_kind

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
        mine = records[one][name]
        records[one][name], records[other][name] = records[other][name], mine


def _duplicated(records: list[Json]) -> None:
    index = at_event(records, "Paid")
    records.insert(index, deepcopy(records[index]))


def _truncated(records: list[Json]) -> None:
    """Remove the last round, and close the record."""
    end = at_event(records, "ShuffleCalled", 1)
    close = at_event(records, "TableClosed")
    records[end:] = [{**one, "round": records[end - 1]["round"]} for one in records[close:]]


def _spliced(records: list[Json]) -> None:
    """A round from another table's record."""
    index = at_event(records, "Cleared")
    other = deepcopy(records[index])
    other |= {"table": "mega-1", "kind": "note", "data": {"text": "nothing happened"}}
    records.insert(index, other)


def _fitted_in(records: list[Json]) -> None:
    """Altered to fit into this record."""
    index = at_event(records, "Cleared")
    other = deepcopy(records[index])
    other |= {"kind": "note", "data": {"text": "nothing happened"}}
    records.insert(index, other)


def _renamed(records: list[Json]) -> None:
    """Another dealer, wherever one is named."""
    for record in records:
        actor = record["data"].get("event", {}).get("actor", {})
        for who in (record["by"], actor):
            if who.get("role") == "dealer":
                who["name"] = "Zoe"


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
    cursor = convert(dealt["cursor"], DeviceCursor)
    bound = commitment(dealt["table"], cursor, CardOpening.of_bytes(bytes(opening)))
    dealt["data"]["event"]["commitment"] = bound.hex()
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
    "another table's record spliced in": Tampering(_spliced, True),
    "another table's record fitted in": Tampering(_fitted_in, False),
    "the dealer renamed": Tampering(_renamed, False),
    "the dealer of one payment renamed": Tampering(_renamed_once, True),
    "all of it an hour later": Tampering(_later, False),
    "one payment an hour later": Tampering(_later_once, True),
    "the hole card turned over as another": Tampering(_turned, True),
    "the hole card another from the beginning": Tampering(_hidden, False),
    "a checkpoint removed": Tampering(_unsigned, False),
}
