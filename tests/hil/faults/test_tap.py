"""Someone taps the cable of a shoe: neither bytes nor lengths nor times nor chains tell a card."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from firmware_protocol.device import Draw
from firmware_protocol.messages import CardRead, FrameKind, Side
from firmware_protocol.tablelink import EventRecord
from hil.devices import card_names
from hil.devices.shoe_cards import FIXED_SALT
from hil.faults import TappedFrame, tap
from tests.support.hil.conform.tapped import (
    CARD_AT,
    HASHED,
    Run,
    first_clear_difference,
    frames_of,
    matching_cards,
    play,
)

LOW = ("2c", "3d", "4h", "5s", "6c", "7d", "8h", "9s", "Tc", "Ad")
HIGH = ("Kh", "Jd", "Qs", "Kc", "Qd", "Jh", "Ks", "Qc", "Jc", "Kd")
MIXED = ("Ac", "Kd", "cut", "2h", "Qs", "Ac", "Ac", "7d", "Jc", "3s")


@pytest.fixture(scope="module")
def ace(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One ace that is drawn."""
    return play(tmp_path_factory.mktemp("ace"), ("Ac",))


def sealed(run: Run) -> list[bytes]:
    return [one.frame.payload for one in run.frames if one.frame.kind is FrameKind.DATA]


def reads(run: Run) -> list[tuple[EventRecord, CardRead, bytes]]:
    """Each record of a card that was read, its event, and the chain before it."""
    return [
        (record, record.event, last.chain)
        for last, record in pairwise(run.records)
        if isinstance(record.event, CardRead)
    ]


# --- two orders look the same ---------------------------------------------------------------


@pytest.mark.parametrize("other", [HIGH, MIXED, tuple(reversed(LOW))])
@pytest.mark.parametrize("keeps", [True, False], ids=["acknowledged", "sent again and again"])
def test_two_orders_look_the_same(tmp_path: Path, other: tuple[str, ...], keeps: bool) -> None:
    one = play(tmp_path / "one", LOW, keeps=keeps)
    two = play(tmp_path / "two", other, keeps=keeps)
    assert [card_names.name(read.card) for _, read, _ in reads(one)] == list(LOW)
    assert tap.first_difference(one.frames, two.frames) is None
    assert first_clear_difference(one, two) is None
    assert {frame.side for frame in one.frames} == {"host", "device"}


def test_a_slow_host_gets_records_again(tmp_path: Path) -> None:
    """So that what is sent again is part of what is compared."""
    prompt, slow = play(tmp_path / "prompt", LOW), play(tmp_path / "slow", LOW, keeps=False)
    sent = [Counter(frame.side for frame in run.frames)["device"] for run in (prompt, slow)]
    assert sent[1] > sent[0] + 5


@pytest.mark.parametrize(
    "how",
    [
        {"read": "low"},
        {"read": "wrong"},
        {"read": "unreadable"},
        {"read": "foreign"},
        {"reversed": True},
        {"confidence": 3},
    ],
)
def test_how_a_card_is_read_looks_the_same_too(tmp_path: Path, how: dict[str, Any]) -> None:
    well = play(tmp_path / "well", LOW)
    odd = play(tmp_path / "odd", HIGH, draw=Draw(count=len(HIGH), dwell_ms=35, **how))
    assert tap.first_difference(well.frames, odd.frames) is None
    assert first_clear_difference(well, odd) is None


def test_every_card_looks_like_every_other(tmp_path: Path) -> None:
    """Also when the host and the shoe draw other keys and salts each time: then no ciphertext of
    any run comes in another one."""
    first = play(tmp_path / "first", ("Ac",), tail_ms=300)
    every: Counter[bytes] = Counter(sealed(first))
    for number, name in enumerate((*card_names.NAMES, "cut"), 2):
        run = play(tmp_path / name, (name,), seed=number, tail_ms=300)
        assert tap.first_difference(first.frames, run.frames) is None, name
        every.update(sealed(run))
    assert set(every.values()) == {1}


def test_another_order_changes_nothing_but_ciphertext(tmp_path: Path) -> None:
    """With the same keys: the bytes that differ are those of the records, from the first card that
    differs on, and in these only card, chain and tag."""
    one, two, with_other_keys = (
        play(tmp_path / name, ("5h", second, "7h"), seed=seed)
        for name, second, seed in (("one", "6h", 1), ("two", "6d", 1), ("three", "6h", 2))
    )
    places: Counter[int] = Counter()
    for ours, theirs in zip(sealed(one), sealed(two), strict=True):
        pairs = zip(ours[:56], theirs[:56], strict=True)
        places.update([at for at, (a, b) in enumerate(pairs) if a != b] if len(ours) == 72 else [])
    assert min(places) == CARD_AT
    assert set(places) <= {CARD_AT, *range(HASHED, 56)}
    assert places[CARD_AT] == 1
    # two records, whose chains differ, and REREAD's reply
    assert sum(a != b for a, b in zip(sealed(one), sealed(two), strict=True)) == 3
    assert not set(sealed(one)) & set(sealed(with_other_keys))


def test_ciphertext_does_not_go_with_the_card(tmp_path: Path) -> None:
    """The same cards under many keys: at no place of the frame has a card a byte of its own."""
    bytes_of: dict[tuple[str, int], set[int]] = {}
    for seed in range(6):
        for name in ("2c", "Kh"):
            run = play(tmp_path / f"{name}{seed}", (name,), seed=seed, tail_ms=100)
            last = [one.frame for one in run.frames if one.at == run.came[-1]]
            for at, byte in enumerate(last[0].payload):
                bytes_of.setdefault((name, at), set()).add(byte)
    assert len(bytes_of) == 2 * 72
    assert min(len(seen) for seen in bytes_of.values()) > 3


# --- nothing is in clear --------------------------------------------------------------------


@pytest.mark.parametrize("keeps", [True, False])
def test_no_four_bytes_of_a_record_are_on_the_cable(tmp_path: Path, keeps: bool) -> None:
    run = play(tmp_path, MIXED, keeps=keeps)
    secrets = tap.secrets_of(run.records)
    assert len(secrets) == len(MIXED) + 4
    assert tap.find_secrets(run.frames, secrets, window=4) == []
    assert tap.repeated_ciphertexts(run.frames) == []


def test_a_plaintext_in_clear_is_found(ace: Run) -> None:
    secret, last = tap.secrets_of(ace.records), ace.frames[-1]
    for at in (0, 5, 40):
        payload = bytearray(last.frame.payload)
        payload[at : at + 8] = secret[-1][12:20]
        frame = type(last.frame)(last.frame.kind, 1, 1, bytes(payload))
        shown = [TappedFrame(last.at, "device", frame, last.size)]
        assert len(tap.find_secrets(shown, secret)) == 1
        assert len(tap.find_secrets(shown, secret, window=4)) == 5


def test_a_ciphertext_that_comes_again_is_found(ace: Run) -> None:
    assert len(tap.repeated_ciphertexts([*ace.frames, ace.frames[-1]])) == 1


# --- chains that were published -------------------------------------------------------------


def test_a_published_chain_gives_nothing_away(tmp_path: Path) -> None:
    """Without the salt, no card of the 52 explains it; with it, exactly the one."""
    every = reads(play(tmp_path, LOW))
    known = {FIXED_SALT, bytes(11), *(read.salt for _, read, _ in every)}
    for record, read, previous in every:
        assert matching_cards(record, previous, known - {read.salt}) == set()
        assert matching_cards(record, previous, [read.salt]) == {read.card}
    assert len(every) == len(known) - 2 == len(LOW)


def test_a_record_of_no_card_fits_none(tmp_path: Path) -> None:
    run = play(tmp_path, ("cut",))
    assert matching_cards(run.records[-1], run.records[-2].chain, [bytes(11)]) == set()


def test_break_salt_fixed_gives_every_card_away(tmp_path: Path) -> None:
    for record, read, previous in reads(play(tmp_path, LOW, "salt-fixed")):
        assert matching_cards(record, previous, [FIXED_SALT]) == {read.card}


# --- what a tap must notice -----------------------------------------------------------------


def test_break_pictures_slow_is_noticed(tmp_path: Path) -> None:
    slow = "pictures-slow"
    low, high = play(tmp_path / "low", LOW, slow), play(tmp_path / "high", HIGH, slow)
    unlike = tap.first_difference(low.frames, high.frames) or ""
    assert "DATA of 86 bytes from the device" in unlike
    assert tap.first_difference(low.frames, play(tmp_path / "again", LOW, slow).frames) is None


def test_break_card_in_clear_is_noticed(tmp_path: Path) -> None:
    told = "card-in-clear"
    low, high = play(tmp_path / "low", LOW, told), play(tmp_path / "high", HIGH, told)
    assert tap.first_difference(low.frames, high.frames) is None  # it is not in lengths and times
    assert (first_clear_difference(low, high) or "").startswith("ALERT")
    assert tap.first_difference(low.frames, play(tmp_path / "clean", LOW).frames) is not None


def test_one_frame_more_or_longer_or_later_is_noticed(ace: Run) -> None:
    frames, last = ace.frames, ace.frames[-1]
    later = TappedFrame(last.at + 1, last.side, last.frame, last.size)
    longer = TappedFrame(last.at, last.side, last.frame, last.size + 1)
    back = TappedFrame(last.at, "host", last.frame, last.size)
    for changed in ([*frames, last], *([*frames[:-1], one] for one in (later, longer, back))):
        assert tap.first_difference(frames, changed) is not None
        assert tap.first_difference(changed, frames) is not None
    shifted = [TappedFrame(one.at + 7, one.side, one.frame, one.size) for one in frames]
    assert tap.first_difference(frames, shifted) is None


def test_a_tap_hears_frames_however_they_are_cut(ace: Run) -> None:
    whole: list[tuple[int, Side, bytes]] = []
    bits: list[tuple[int, Side, bytes]] = []
    for one in ace.frames:
        data = one.frame.encode()
        whole += [(one.at, one.side, b"\0" + data), (one.at, one.side, b"")]
        bits += [(one.at, one.side, data[at : at + 1]) for at in range(len(data))]
    whole.append((9, "host", b"noise\0"))
    assert frames_of(whole) == frames_of(bits) == ace.frames
    half = ace.frames[20].at
    assert frames_of(whole, half) == [one for one in ace.frames if one.at >= half]
