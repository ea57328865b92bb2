"""Bits and rewritings by chance, a share of what `make torture` tries: none passes for right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.torture.altered import counted, flips, rewritings

SHARE = 61


def test_no_bit_of_a_closed_record_can_be_another(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    found = counted(flips(tmp_path / "record", SHARE, seed=7))
    assert found["bits in frames found"] > 700
    assert found["bits in zeros found"] > 50
    assert "bits in frames explained" not in found
    for what, count in found.items():
        record_property(what, count)


def test_no_rewriting_passes_for_right(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    found = counted(rewritings(tmp_path, 20, seed=7))
    shown = found.pop("shown by the record itself though all was signed again")
    assert 0 < shown <= sum(found.values())
    assert sum(found.values()) > 25
    record_property("rewritings of a record", sum(found.values()))
