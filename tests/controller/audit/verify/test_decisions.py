"""Every decision made again: rounds with all that goes wrong, other games, other code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec.structs import replace

from controller.audit.errors import NotVoided, RecordDamaged
from controller.audit.format.records import RecordActor, RecordEntry
from controller.audit.replay import KeyDoesNotOpen, open_hole_card, sealed_hole_cards
from controller.audit.simulate import RecordingVault
from controller.audit.verify import INCOMPLETE, INVALID, VALID, verify
from controller.procedure.model.state import Step
from tests.support.audit.fallbacks import AT_REST, IN_THE_MIDDLE, OTHER_CODE, boot_of, other
from tests.support.audit.record.dealing import KEYS, SURVEILLANCE_KEY, TABLE, boot, recorded
from tests.support.audit.record.folded import folded, write
from tests.support.audit.record.table import note
from tests.support.audit.tools.asked import whats
from tests.support.audit.tools.revealing import played, revealed
from tests.support.audit.verifying import read as read_independently
from tests.support.procedure.random_games import game_as_it_is

GAMES = ("maxtime", "sf21x", "classic", "mega")


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("seed", ["a", "b"])
def test_rounds_with_all_that_goes_wrong_come_out_as_recorded(
    name: str, seed: str, tmp_path: Path
) -> None:
    table = revealed(name, seed, events=300)
    place = tmp_path / "record"
    recorded(place, table.engine.game, table.entries)
    report = verify(place, jobs=1)
    assert (report.code, report.findings, report.unchecked) == (VALID, (), ())
    assert report.again == len(table.entries)
    assert report.unread == 0
    assert report.segments[1] > 2
    theirs = read_independently(place)
    assert (theirs["exit"], theirs["wrong"]) == (VALID, None)


def test_an_entry_that_the_rules_would_not_make_is_found_in_its_place(tmp_path: Path) -> None:
    """Somebody made the controller itself write it: there is nothing wrong but what it says."""
    table = revealed("mega", "wrong", events=200)
    place = tmp_path / "record"
    log = boot(place, table.engine.game)
    wrong = [at for at, made in enumerate(table.entries) if made.kind == "decision"][90]
    write(log, table.entries[:wrong])
    entry = table.entries[wrong]
    at = log.write([RecordEntry(entry.kind, entry.by, _without_effects(entry), entry.round)])[0].seq
    write(log, table.entries[wrong + 1 :])
    log.close()
    report = verify(place)
    assert (report.code, report.findings[0].seq) == (INVALID, at)
    assert report.findings[0].round == entry.round
    assert verify(place, replay=False).code == VALID


def _without_effects(entry: RecordEntry) -> dict[str, object]:
    return {"event": entry.data.event, "rows": entry.data.rows, "effects": []}


# --- other games, other code ------------------------------------------------------------------


@pytest.mark.parametrize("what", IN_THE_MIDDLE)
def test_another_game_over_an_open_round_is_wrong(tmp_path: Path, what: str) -> None:
    place = tmp_path / "record"
    game = game_as_it_is("classic")
    log = boot(place, game)
    write(log, played(game, IN_THE_MIDDLE[what]).entries)
    log.close()
    assert verify(place).code == VALID
    boot(place, game_as_it_is("classic", "strict")).close()
    (found,) = whats(verify(place))
    assert "dealt by another game or jurisdiction" in found


@pytest.mark.parametrize("what", IN_THE_MIDDLE)
def test_what_follows_on_other_code_with_an_open_round_is_not_known(
    tmp_path: Path, what: str
) -> None:
    """It may be right: that version would have to say how its round stood."""
    place = tmp_path / "record"
    game = game_as_it_is("classic")
    log = boot_of(place, other(game))
    theirs = played(game, IN_THE_MIDDLE[what]).entries
    write(log, theirs)
    log.close()
    log = boot(place, game)
    ours = played(game, lambda s: s.step is Step.WAGERING)
    write(log, ours.entries)
    log.close()
    report = verify(place)
    assert (report.code, report.findings) == (INCOMPLETE, ())
    (unchecked,) = report.unchecked
    count = int(unchecked.partition(" ")[0].replace(",", ""))
    assert len(theirs) < count <= len(theirs) + len(ours.entries)
    assert f"made by holecard 0.0.1, whose procedure's code is {OTHER_CODE}" in unchecked


@pytest.mark.parametrize("what", ["no wager", "a shuffle after the round"])
def test_after_other_code_that_left_a_table_at_rest_ours_is_made_again(
    tmp_path: Path, what: str
) -> None:
    place = tmp_path / "record"
    game = game_as_it_is("mega")
    theirs = played(game, AT_REST[what], f"rests {what}")
    log = boot_of(place, other(game))
    write(log, theirs.entries)
    log.close()
    log = boot(place, game, folded(place, game).state)
    ours = played(game, lambda s: s.step is Step.WAGERING)
    write(log, ours.entries)
    log.close()
    report = verify(place)
    assert (report.code, report.findings) == (INCOMPLETE, ())
    assert report.again == len(ours.entries)
    (unchecked,) = report.unchecked
    assert unchecked.startswith(f"{len(theirs.entries):,} decisions and refusals were made by")


# --- hole cards that came another way ---------------------------------------------------------


def decided(event: dict[str, object], *effects: dict[str, object], **more: Any) -> RecordEntry:
    sealed = {"sealed": more.pop("sealed")} if "sealed" in more else {}
    data = {"event": event, "rows": [], "effects": list(effects), **sealed}
    return RecordEntry("decision", RecordActor("device", "shoe"), data, **more)


def test_a_card_drawn_in_error_that_became_the_hole_card_is_opened_too(tmp_path: Path) -> None:
    place = tmp_path / "record"
    vault = RecordingVault(TABLE, KEYS.hole, KEYS.surveillance)
    log = boot(place, game_as_it_is("classic"))
    ten_of_spades = 48
    drawn = vault.hidden(ten_of_spades)
    told = vault.take_source()
    write(
        log,
        [
            decided(
                {"type": "ErrorCardDrawn", "commitment": drawn},
                cursor=told.cursor,
                sealed=told.sealed,
                round=4,
            ),
            *[note(f"{number}", 900, round=4) for number in range(100)],
            decided({"type": "HoleDealt", "commitment": drawn, "spare": True}, round=5),
            decided({"type": "RoundVoided"}, {"type": "RoundVoid", "round": 5}, round=5),
        ],
    )
    log.close()
    (hole,) = sealed_hole_cards(place, 5)
    assert hole.round == 5
    assert open_hole_card(place, hole, SURVEILLANCE_KEY) == ten_of_spades
    with pytest.raises(NotVoided):
        sealed_hole_cards(place, 4)
    with pytest.raises(KeyDoesNotOpen):
        open_hole_card(place, hole, X25519PrivateKey.generate())
    with pytest.raises(RecordDamaged, match="the opening does not give the commitment"):
        open_hole_card(place, replace(hole, table="another"), SURVEILLANCE_KEY)
