"""Devices that are broken on purpose: the conformance run finds each."""

from __future__ import annotations

from pathlib import Path

import pytest

from firmware_protocol.conformance import Profile
from hil.faults import BREAKS
from hil.faults.catalogue import BreakDefinition
from tests.support.hil.conform.conform_rig import ITEMS, PROFILES, Rig

CASES = [(broken, profile) for broken in BREAKS for profile in broken.profiles or PROFILES]


@pytest.mark.parametrize(
    ("broken", "profile"), CASES, ids=[f"{broken.name}-{profile}" for broken, profile in CASES]
)
def test_a_break_is_found(broken: BreakDefinition, profile: Profile, tmp_path: Path) -> None:
    first = Rig(tmp_path, profile, breaks={broken.name}).attempt(broken.items[0])
    assert first.result == "FAIL", broken.text
    assert first.sent
    assert first.expected
    assert first.came


@pytest.mark.parametrize("broken", [one for one in BREAKS if len(one.items) > 1])
def test_a_break_shows_in_its_other_items_too(broken: BreakDefinition, tmp_path: Path) -> None:
    profile = (broken.profiles or PROFILES)[0]
    for name in broken.items[1:]:
        outcome = Rig(tmp_path / name, profile, breaks={broken.name}).attempt(name)
        assert outcome.result == "FAIL", name


def test_every_item_finds_a_break() -> None:
    """An item that no break is caught by may be an item that cannot fail."""
    found = {name for broken in BREAKS for name in broken.items}
    never = set(ITEMS) - found
    assert never == {"FR-1", "FR-5", "CO-6"} - found
