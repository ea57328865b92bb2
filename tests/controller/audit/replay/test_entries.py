"""Encoding and decoding of events as record entries."""

import base64
import re
from pathlib import Path
from random import Random
from typing import Final

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from controller.audit.format.hole_cards import NONCE_SIZE, CardOpening, check, opened_card, opening
from controller.audit.format.records import DeviceCursor, RecordActor, RecordEntry, encode
from controller.audit.read.reader import records, segments
from controller.audit.replay import DecisionData, event_entry
from controller.audit.replay.entries import (
    EFFECTS,
    RefusalData,
    decision_entry,
    decode_decision,
    decode_refusal,
    refusal_entry,
    signs,
    without_actor,
)
from controller.audit.simulate import RecordingVault
from controller.games import DEALER, SHOE, player
from controller.procedure.engine import EVENTS, Procedure
from controller.procedure.model import effects, events
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State, Step
from controller.rules.cards import DECK, Card
from controller.rules.hands import is_blackjack
from tests.support.audit.record.dealing import (
    KEYS,
    SURVEILLANCE_KEY,
    TABLE,
    Dealing,
    as_read,
    recorded,
    same_salt,
)
from tests.support.audit.twin import Twin
from tests.support.procedure.random_games import GAMES, some_game

CURSOR: Final = DeviceCursor("SIM-SHOE", 1, 7, "00112233445566ff", 1, 2_800_000)
COMMITMENT: Final = "ab" * 32
SEALED: Final = base64.b64encode(bytes(104)).decode()
DEALT: Final = events.HoleDealt(SHOE, COMMITMENT)
TAKEN: Final = Decision(("hole_card",), State(round=4), (effects.ShoeLock(True),))


_ROUNDS: Final = 40


# --- what an entry has ------------------------------------------------------------------------


def test_a_decision_has_event_rows_effects_and_state() -> None:
    made = decision_entry(DEALT, TAKEN, cursor=CURSOR, sealed=SEALED, cause=12)
    assert made == RecordEntry(
        "decision",
        RecordActor("device", "shoe"),
        DecisionData(without_actor(DEALT), TAKEN.rows, TAKEN.effects, SEALED),
        4,
        12,
        CURSOR,
        TAKEN.state,
        False,
    )
    assert msgspec.json.decode(encode(made.data)) == {
        "event": {"type": "HoleDealt", "commitment": COMMITMENT},
        "rows": ["hole_card"],
        "effects": [{"type": "ShoeLock"}],
        "sealed": SEALED,
    }


def test_a_refusal_has_a_reason_and_no_state() -> None:
    event = events.Hit(player(3), 3, 0)
    answer = Refused("not_in_turn", "seat 3 is not in turn")
    made = event_entry(event, answer, State(round=9), cursor=CURSOR)
    assert made == RecordEntry(
        "refusal",
        RecordActor("player", "seat-3", 3),
        RefusalData(without_actor(event), answer.id, answer.why),
        9,
        0,
        CURSOR,
        state=None,
        sign=False,
    )
    assert decode_refusal(as_read(made)) == RefusalData(event, answer.id, answer.why)


@pytest.mark.parametrize(
    ("actor", "who"),
    [
        (DEALER, RecordActor("dealer", "dealer")),
        (events.Actor("floor", "Eve"), RecordActor("floor", "Eve")),
        (player(5), RecordActor("player", "seat-5", 5)),
        (events.Actor("surveillance", "Sam"), RecordActor("surveillance", "Sam")),
        (events.Actor("technician", "Tom"), RecordActor("technician", "Tom")),
        (SHOE, RecordActor("device", "shoe")),
    ],
)
def test_the_entry_names_the_events_actor(actor: events.Actor, who: RecordActor) -> None:
    event = events.FloorCalled(actor)
    assert decision_entry(event, TAKEN).by == who
    assert refusal_entry(event, Refused("no", "no"), State()).by == who


@pytest.mark.parametrize(
    ("effect", "wanted"),
    [
        (effects.WagersLocked(3, 500), True),
        (effects.RoundOver(3, 0), True),
        (effects.RoundVoid(3, "the lights went out", "floor", ""), True),
        (effects.Corrected(3, 1, 0, "main", 5, 6, "floor", "floor-2"), True),
        (effects.Ruled("misdeal", "void", "floor", "floor-2"), True),
        (effects.Ruled("misdeal", "resume", "floor"), False),
        (effects.Told("floor", "misdeal"), False),
        (effects.Settled(3, 1, 0, "main", "win", None, 5, 10, "against_total", False), False),
        (effects.Prompt(effects.Tell.DEAL), False),
    ],
)
def test_a_checkpoint_is_requested_as_the_format_says(effect: effects.Effect, wanted: bool) -> None:
    assert signs((effects.ShoeLock(True), effect)) is wanted
    answer = msgspec.structs.replace(TAKEN, effects=(effects.ShoeLock(True), effect))
    assert decision_entry(events.Cleared(DEALER), answer).sign is wanted
    assert not signs(())


# --- how it is read back ----------------------------------------------------------------------


def _as_refused(event: events.Event, before: State) -> events.Event:
    """A hole card that is reported too early is not recorded."""
    if isinstance(event, events.HoleRevealed) and before.step is not Step.REVEAL:
        return msgspec.structs.replace(event, card=-1, opening="")
    if isinstance(event, events.HoleChecked) and before.step is not Step.CHECK:
        return msgspec.structs.replace(event, blackjack=False)
    return event


def test_all_entries_are_read_back_unchanged() -> None:
    said: set[str] = set()
    for number, name in enumerate(GAMES * 12):
        game, what = some_game(Random(f"entries {name} {number}"), name)
        table = Dealing(Procedure(game), f"entries {what}")
        table.play(_ROUNDS)
        for (before, event, answer), made in zip(table.heard, table.entries, strict=True):
            record = as_read(made)
            said.add(type(event).__name__)
            if isinstance(answer, Decision):
                read = decode_decision(record)
                assert (read.event, read.rows, read.effects) == (
                    event,
                    answer.rows,
                    answer.effects,
                )
                said.update(type(effect).__name__ for effect in read.effects)
            else:
                down = decode_refusal(record)
                assert (down.id, down.why) == (answer.id, answer.why)
                assert down.event == _as_refused(event, before)
    assert said == {kind.__name__ for kind in (*EVENTS, *EFFECTS)}


REFUSED: Final = refusal_entry(events.Cleared(DEALER), Refused("no", "no"), State())


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"event":{"type":"Dance"},"rows":[],"effects":[]}', "Dance"),
        (b'{"rows":[],"effects":[]}', "event"),
        (
            b'{"event":{"type":"Cleared"},"rows":[],"hole":17}',
            "hole",
        ),
        (b'{"event":7,"rows":[],"effects":[]}', "truncated"),
        (b"[]", "object"),
    ],
)
def test_an_invalid_decision_is_rejected(data: bytes, why: str) -> None:
    with pytest.raises(msgspec.DecodeError, match=why):
        decode_decision(replace(as_read(REFUSED), data=msgspec.Raw(data)))


# --- entries of face-down cards: a commitment and a sealed opening ----------------------------

_TWINS: Final = 40
"""Pairs of hole cards, for each game."""


@pytest.mark.parametrize(
    ("event", "cursor", "sealed"),
    [
        (DEALT, CURSOR, ""),
        (DEALT, None, SEALED),
        (DEALT, CURSOR, SEALED[:-4]),
        (DEALT, CURSOR, "?" * len(SEALED)),
        (events.HoleDealt(SHOE, "17"), CURSOR, SEALED),
        (events.HoleDealt(SHOE, COMMITMENT.upper()), CURSOR, SEALED),
        (events.HoleDealt(SHOE, "not-hex", True), CURSOR, SEALED),
        (events.ErrorCardDrawn(SHOE, COMMITMENT), CURSOR, ""),
        (events.ErrorCardDrawn(SHOE, COMMITMENT), None, SEALED),
        (events.CardDrawn(SHOE, 17), CURSOR, SEALED),
        (events.HoleRevealed(SHOE, 17, "00"), CURSOR, SEALED),
    ],
)
def test_a_face_down_card_needs_commitment_and_seal(
    event: events.Event, cursor: DeviceCursor | None, sealed: str
) -> None:
    with pytest.raises(ValueError, match=r"without|nothing of a"):
        decision_entry(event, TAKEN, cursor=cursor, sealed=sealed)


@example(COMMITMENT, "0" * 138 + "1=", events.HoleDealt)
@example(COMMITMENT, "0" * 139 + "=", events.HoleDealt)
@given(
    commitment=st.one_of(st.just(COMMITMENT), st.from_regex(r"[0-9a-f]{60,66}"), st.text()),
    sealed=st.one_of(st.just(SEALED), st.from_regex(r"[A-Za-z0-9+/]{136,142}={0,2}"), st.text()),
    kind=st.sampled_from([events.HoleDealt, events.ErrorCardDrawn]),
)
def test_commitment_and_seal_have_a_fixed_form(
    commitment: str, sealed: str, kind: type[events.HoleDealt | events.ErrorCardDrawn]
) -> None:
    try:
        made = decision_entry(kind(SHOE, commitment), TAKEN, cursor=CURSOR, sealed=sealed)
    except ValueError:
        assert not (re.fullmatch("[0-9a-f]{64}", commitment) and len(_unbase64(sealed)) == 104)
        return
    assert (bytes.fromhex(commitment).hex(), len(_unbase64(sealed))) == (commitment, 104)
    assert len(encode(made)) == len(
        encode(decision_entry(kind(SHOE, COMMITMENT), TAKEN, cursor=CURSOR, sealed=SEALED))
    )


def _unbase64(text: str) -> bytes:
    """Nothing unless the base64 is canonical."""
    try:
        data = base64.b64decode(text.encode(), validate=True)
    except (ValueError, UnicodeEncodeError):
        return b""
    return data if base64.b64encode(data).decode() == text else b""


def test_a_spare_card_was_sealed_when_it_was_drawn() -> None:
    assert b"sealed" not in encode(
        decision_entry(events.HoleDealt(SHOE, COMMITMENT, True), TAKEN).data
    )


def test_a_refusal_has_no_seal() -> None:
    with pytest.raises(ValueError, match="nothing sealed"):
        event_entry(DEALT, Refused("no", "no"), State(), sealed=SEALED)


@pytest.mark.parametrize("name", GAMES)
def test_an_early_reveal_is_recorded_without_its_card(name: str) -> None:
    """And a repeated one is refused with the same text."""
    asked = 0
    game, what = some_game(Random(f"early {name}"), name)
    procedure = Procedure(game)
    table = Dealing(procedure, f"early {what}")
    while asked < 40:
        table.once()
        s = table.state
        if not s.hole or s.step is Step.REVEAL or not table.chance(0.2):
            continue
        told = set()
        for card in DECK:
            event = events.HoleRevealed(SHOE, card, f"{card:02x}" * 56)
            answer = procedure.step(s, event)
            assert isinstance(answer, Refused)
            made = event_entry(event, answer, s)
            told.add(encode(made.data))
            assert procedure.step(s, decode_refusal(as_read(made)).event) == answer
        assert len(told) == 1
        asked += 1


def test_a_refused_reveal_in_time_keeps_its_card() -> None:
    lying = State(step=Step.REVEAL, hole=COMMITMENT)
    event = events.HoleRevealed(SHOE, 17, "00" * 56)
    assert event_entry(event, Refused("no", "no"), lying).data.event == without_actor(event)


def test_no_opening_is_recorded_before_the_reveal(tmp_path: Path) -> None:
    """Searches for nonce and body bytes in every readable form."""
    rounds = 0
    for number, name in enumerate(GAMES):
        game, what = some_game(Random(f"hidden {name} {number}"), name)
        table = Dealing(Procedure(game), f"hidden {what}")
        hidden = _remember(table.vault)
        table.play(_ROUNDS)
        place = tmp_path / str(number)
        recorded(place, game, table.entries)
        whole = b"".join(encode(record.data) for _, record in records(place))
        frames = b"".join(frame.data for s in segments(place) for frame in s.frames)
        assert len(hidden) > _ROUNDS // 4
        for commitment, secrets in hidden.items():
            assert commitment.encode() in whole
            for form in (form for secret in secrets for form in _forms(secret)):
                assert form not in frames
        rounds += table.rounds
    assert rounds >= 4 * _ROUNDS


def _remember(vault: RecordingVault) -> dict[str, tuple[bytes, ...]]:
    """The secrets of each face-down card: the shoe's salt, which would make its chain reveal the
    card, and the nonce and body of the opening."""
    kept: dict[str, tuple[bytes, ...]] = {}
    hide = vault.hidden

    def hidden(card: Card, /) -> str:
        commitment = hide(card)
        down = vault.face_down
        assert down is not None
        opened = opening(KEYS.hole, down.cursor, down.body).open()
        kept[commitment] = (down.body.open().salt, opened[:NONCE_SIZE], opened[NONCE_SIZE:])
        return commitment

    vault.hidden = hidden  # type: ignore[method-assign]
    return kept


def _forms(secret: bytes) -> tuple[bytes, ...]:
    """Its encodings in a text."""
    return (
        secret,
        secret.hex().encode(),
        secret.hex().upper().encode(),
        base64.b64encode(secret).rstrip(b"="),
        str(list(secret)).replace(" ", "").encode(),
    )


# --- twins: all that differs is the hole card -------------------------------------------------


_RANDOM: Final = re.compile(
    rb'(?<="commitment":")[0-9a-f]{64}|(?<="sealed":")[^"]{140}|(?<="chain":")[0-9a-f]{16}'
    rb'|(?<="hole":")[0-9a-f]{64}'
)
"""Random parts: commitment, sealed opening, salted chain."""


def _twins(name: str, number: int) -> tuple[Twin, Twin, str] | None:
    seed = f"twins {name} {number}"
    game, what = some_game(Random(seed), name)
    one, other = (Twin(Procedure(game), f"{seed} {what}", second=s) for s in (False, True))
    for twin in (one, other):
        twin.play(Random(seed).randrange(2))
        twin.exchange()
    ends = one.to_the_reveal(), other.to_the_reveal()
    assert ends[0] == ends[1], seed
    assert one.pair == other.pair, seed
    if not ends[0] or one.pair is None:
        return None
    assert one.face(one.state.hole) != other.face(other.state.hole), seed
    return one, other, seed


@pytest.mark.parametrize("name", GAMES)
def test_records_do_not_depend_on_the_hole_card(name: str) -> None:
    """Equal bytes except for the random parts, which have equal lengths."""
    pairs = number = 0
    while pairs < _TWINS:
        number += 1
        found = _twins(name, number)
        if found is None:
            continue
        one, other, seed = found
        ours, theirs = ([encode(made) for made in twin.entries] for twin in (one, other))
        assert [len(data) for data in ours] == [len(data) for data in theirs], seed
        assert ours != theirs
        blank = [[_RANDOM.sub(b"", data) for data in each] for each in (ours, theirs)]
        assert blank[0] == blank[1], seed
        pairs += 1


# --- the vault --------------------------------------------------------------------------------


def test_a_vault_never_prints_its_card() -> None:
    shown = set()
    for card in DECK:
        vault = RecordingVault(TABLE, KEYS.hole, KEYS.surveillance, salt=same_salt())
        dealt = vault.dealt(card)
        assert isinstance(dealt, events.HoleDealt)
        hidden = re.sub(r"(?<=chain=')[0-9a-f]{16}", "", repr(vault.face_down))  # salted
        shown.add((hidden, len(repr(dealt)), len(repr(vault.take_source()))))
    assert len(shown) == 1


def test_a_vaults_opening_matches_its_commitment() -> None:
    vault = RecordingVault(TABLE, KEYS.hole, KEYS.surveillance)
    vault.loaded()
    for card in DECK:
        vault.drawn((card + 7) % 52)
        dealt = vault.dealt(card)
        told = vault.take_source()
        assert isinstance(dealt, events.HoleDealt)
        assert told.cursor is not None
        assert vault.checked(9) == events.HoleChecked(SHOE, is_blackjack(9, card))
        revealed = vault.revealed()
        assert isinstance(revealed, events.HoleRevealed)
        check(CardOpening.of_hex(revealed.opening), TABLE, told.cursor, dealt.commitment, card)
        assert vault.hole == revealed.card == card
        assert (
            opened_card(told.cursor, TABLE, dealt.commitment, told.sealed, SURVEILLANCE_KEY) == card
        )


def test_a_simulated_shoe_continues_its_chain() -> None:
    first = RecordingVault(TABLE, KEYS.hole, KEYS.surveillance)
    for card in range(3):
        first.drawn(card)
    last = first.take_source().cursor
    assert last is not None
    again = RecordingVault(TABLE, KEYS.hole, KEYS.surveillance, last)
    again.drawn(3)
    cursor = again.take_source().cursor
    assert cursor is not None
    assert (cursor.epoch, cursor.seq, cursor.boot) == (last.epoch, last.seq + 1, last.boot + 1)
    assert again.take_source().cursor is None  # cleared after one call


def test_a_vault_without_a_hole_card_reveals_none() -> None:
    vault = RecordingVault(TABLE, KEYS.hole, KEYS.surveillance)
    assert vault.hole == -1
    with pytest.raises(LookupError):
        vault.revealed()
