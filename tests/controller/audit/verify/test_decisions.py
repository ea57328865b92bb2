"""Every decision made again: rounds with all that goes wrong, other games, other code."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec.structs import replace

from controller.audit.errors import NotVoided, RecordDamaged
from controller.audit.format.notes import VerifierKey
from controller.audit.format.records import RecordActor, RecordEntry
from controller.audit.replay import KeyDoesNotOpen, open_hole_card, sealed_hole_cards
from controller.audit.simulate import RecordingVault
from controller.audit.verify import INCOMPLETE, INVALID, VALID, verify
from controller.procedure.model.state import Step
from tests.support.audit import wrong_records as wrong
from tests.support.audit.record.dealing import (
    KEYS,
    SURVEILLANCE_KEY,
    TABLE,
    boot,
    boot_of,
    played,
    recorded,
    revealed,
)
from tests.support.audit.record.scripted import (
    AT_REST,
    IN_THE_MIDDLE,
    OTHER_CODE,
    fill,
    folded,
    other,
    write,
)
from tests.support.audit.record.table import note
from tests.support.audit.tools.by_page import (
    GAME,
    ORIGIN,
    WITNESS,
    Pen,
    Signer,
    closed,
    opening,
    started,
)
from tests.support.audit.verifying import accepted, read_independently, whats
from tests.support.audit.wrong_records import CASES, GROUPS, ONLY_WITH_REPLAY, broken, filled
from tests.support.procedure.random_games import game_as_it_is


@pytest.mark.parametrize("name", ["maxtime", "sf21x", "classic", "mega"])
@pytest.mark.parametrize("seed", ["a", "b"])
def test_rounds_with_all_that_goes_wrong_come_out_as_recorded(
    name: str, seed: str, place: Path
) -> None:
    table = revealed(name, seed, events=300)
    recorded(place, table.engine.game, table.entries)
    report = verify(place, jobs=1)
    assert (report.code, report.findings, report.unchecked) == (VALID, (), ())
    assert (report.again, report.unread) == (len(table.entries), 0)
    assert report.segments[1] > 2
    theirs = read_independently(place)
    assert (theirs["exit"], theirs["wrong"]) == (VALID, None)


def test_an_entry_that_the_rules_would_not_make_is_found_in_its_place(place: Path) -> None:
    """Somebody made the controller itself write it: there is nothing wrong but what it says."""
    table = revealed("mega", "wrong", events=200)
    before = zip(table.entries, table.entries[1:], strict=False)
    in_round = [
        at
        for at, (one, made) in enumerate(before, 1)
        if made.kind == "decision" and made.round == one.round
    ]
    with closing(boot(place, table.engine.game)) as log:
        wrong = in_round[90]
        write(log, table.entries[:wrong])
        entry = table.entries[wrong]
        lie = {"event": entry.data.event, "rows": entry.data.rows, "effects": []}
        at = log.write([replace(entry, data=lie)])[0].seq
        write(log, table.entries[wrong + 1 :])
    report = verify(place)
    assert (report.code, report.findings[0].seq) == (INVALID, at)
    assert report.findings[0].round == entry.round
    assert verify(place, replay=False).code == INCOMPLETE


# --- other games, other code ------------------------------------------------------------------


@pytest.mark.parametrize("what", IN_THE_MIDDLE)
def test_another_game_over_an_open_round_is_wrong(place: Path, what: str) -> None:
    game = game_as_it_is("classic")
    fill(boot(place, game), played(game, IN_THE_MIDDLE[what]).entries)
    assert verify(place).code == VALID
    boot(place, game_as_it_is("classic", "strict")).close()
    (found,) = whats(verify(place))
    assert "dealt by another game or jurisdiction" in found


@pytest.mark.parametrize("what", IN_THE_MIDDLE)
def test_what_follows_on_other_code_with_an_open_round_is_not_known(place: Path, what: str) -> None:
    """It may be right: that version would have to say how its round stood."""
    game = game_as_it_is("classic")
    with closing(boot_of(place, other(game))) as log:
        theirs = played(game, IN_THE_MIDDLE[what]).entries
        write(log, theirs)
    with closing(boot(place, game)) as log:
        ours = played(game, lambda s: s.step is Step.WAGERING)
        write(log, [replace(entry, round=theirs[-1].round) for entry in ours.entries])
    report = verify(place)
    assert (report.code, report.findings) == (INCOMPLETE, ())
    (unchecked,) = report.unchecked
    count = int(unchecked.partition(" ")[0].replace(",", ""))
    assert len(theirs) < count <= len(theirs) + len(ours.entries)
    assert f"made by holecard 0.0.1, whose procedure's code is {OTHER_CODE}" in unchecked


@pytest.mark.parametrize("what", ["no wager", "a shuffle after the round"])
def test_after_other_code_that_left_a_table_at_rest_ours_is_made_again(
    place: Path, what: str
) -> None:
    game = game_as_it_is("mega")
    theirs = played(game, AT_REST[what], f"rests {what}")
    fill(boot_of(place, other(game)), theirs.entries)
    with closing(boot(place, game, folded(place, game).state)) as log:
        ours = played(game, lambda s: s.step is Step.WAGERING)
        write(log, [replace(entry, round=theirs.state.round) for entry in ours.entries])
    report = verify(place)
    assert (report.code, report.findings, report.again) == (INCOMPLETE, (), len(ours.entries))
    (unchecked,) = report.unchecked
    assert unchecked.startswith(f"{len(theirs.entries):,} decisions and refusals were made by")


# --- hole cards that came another way ---------------------------------------------------------


def decided(event: dict[str, object], *effects: dict[str, object], **more: Any) -> RecordEntry:
    sealed = {"sealed": more.pop("sealed")} if "sealed" in more else {}
    data = {"event": event, "rows": [], "effects": list(effects), **sealed}
    return RecordEntry("decision", RecordActor("device", "shoe"), data, **more)


def test_a_card_drawn_in_error_that_became_the_hole_card_is_opened_too(place: Path) -> None:
    vault = RecordingVault(TABLE, KEYS.hole, KEYS.surveillance)
    with closing(boot(place, game_as_it_is("classic"))) as log:
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
    (hole,) = sealed_hole_cards(place, 5)
    assert hole.round == 5
    assert open_hole_card(place, hole, SURVEILLANCE_KEY) == ten_of_spades
    with pytest.raises(NotVoided):
        sealed_hole_cards(place, 4)
    with pytest.raises(KeyDoesNotOpen):
        open_hole_card(place, hole, X25519PrivateKey.generate())
    with pytest.raises(RecordDamaged, match="the opening does not give the commitment"):
        open_hole_card(place, replace(hole, table="another"), SURVEILLANCE_KEY)


# --- Each rule of FORMAT.md: both verifiers find what breaks it, at the same place ------------


@pytest.mark.parametrize(("group", "name"), CASES)
def test_a_broken_rule_is_found_at_its_place_by_both_verifiers(
    group: str, name: str, tmp_path: Path
) -> None:
    pen = broken(group, name)
    seq, (number, offset, _) = pen.seq, pen.frames[-1]
    pen.write("note", {"text": "something after it"})
    pen.sync()
    pen.write("note", {"text": "and that is on the disk"})
    place = pen.save(tmp_path)
    theirs = read_independently(place)["wrong"]
    assert GROUPS[group][name][1] in theirs["what"]
    assert (theirs["seq"], theirs["last_good_seq"]) == (seq, seq - 1)
    assert (theirs["segment"], theirs["offset"]) == (f"{number:08}.seg", offset)
    for replay in (True, False):
        if not replay and (group, name) in ONLY_WITH_REPLAY:
            continue
        first, *_ = verify(place, replay=replay).findings
        assert (first.segment, first.offset, first.seq) == (number, offset, seq)
        assert first.since == _utc(pen.records[seq - 2])


def _utc(record: bytes) -> int:
    return int(record.partition(b'"utc":')[2].partition(b",")[0])


@pytest.mark.parametrize(("group", "name"), CASES)
def test_it_is_found_whatever_segments_it_falls_into(group: str, name: str, tmp_path: Path) -> None:
    """The same with a segment before and after it, so that joins have to find it."""
    write, _ = GROUPS[group][name]
    pen = started(1 << 18, rounds=1, version=1 if group == "old" else 2)
    pen.next_segment()
    while pen.seq < 13:
        pen.write("note", {"text": "more"})
    write(pen)
    seq = pen.seq
    pen.next_segment()
    pen.write("note", {"text": "something after it"})
    first, *_ = verify(pen.save(tmp_path)).findings
    theirs = read_independently(tmp_path)
    assert theirs["exit"] == INVALID
    assert first.seq == seq == theirs["wrong"]["seq"]


BOOTS: dict[str, tuple[Callable[[Pen], object], str]] = {
    "less on the disk": (
        lambda pen: pen.write("note", {"text": "x"}, frame_durable=2),
        "it says that less was on the disk than the record before it",
    ),
    "not before it was written": (
        lambda pen: pen.write("note", {"text": "x"}, frame_durable=pen.seq + 1),
        "it says that 14 was on the disk before it was written; records after seq 13 cannot be",
    ),
    "a certificate twice": (
        lambda pen: pen.certify(2),
        "a certificate where none is due: its boot has a key, or was not opened",
    ),
    "a witness of what is to come": (
        lambda pen: pen.write(
            "witnessed",
            {"note": WITNESS.cosign(pen.key.sign(f"{ORIGIN}\n99\n{'A' * 43}=\n"))},
        ),
        "a witnessed checkpoint over 99 records; 13 stand before it",
    ),
    "bytes that are not told of": (
        lambda pen: (pen.open(torn=7), pen.write("note", {"text": "x"})),
        "no tail record tells of 7 bytes that were set aside",
    ),
    "a game that is not hashed": (
        lambda pen: pen.open(game={**GAME, "decks": 1}),
        "opened: its proc is not the hash of its code and its game",
    ),
    "debuggable that is not true": (
        lambda pen: pen.open(debuggable=False),
        "opened: its debuggable is false: only true is recorded",
    ),
    "another table's key": (
        lambda pen: pen.open(table_key=Signer(f"{ORIGIN}/table", "x").vkey()),
        "the table's key is another one than that of the boot before",
    ),
}


@pytest.mark.parametrize("name", BOOTS)
def test_what_is_wrong_with_a_boot_is_said(name: str, tmp_path: Path) -> None:
    write, words = BOOTS[name]
    pen = filled()
    write(pen)
    pen.sync()
    pen.write("note", {"text": "and more"})
    found = whats(verify(pen.save(tmp_path)))
    assert any(one.startswith(words) for one in found), found


@pytest.mark.parametrize(("debuggable", "valid"), [(True, True), (False, False)])
def test_debuggable_is_true_or_absent(debuggable: bool, valid: bool, tmp_path: Path) -> None:
    pen = filled()
    pen.open(debuggable=debuggable)
    pen.certify(pen.seq)
    pen.close()
    place = pen.save(tmp_path)
    assert (whats(verify(place)) == []) is valid
    assert (read_independently(place)["wrong"] is None) is valid


def test_what_the_page_allows_is_right(tmp_path: Path) -> None:
    """Forms that we never write, and that a reader of the page must take all the same."""
    pen = started(65536)
    pen.write("note", {"text": "x"}, lambda data: data.replace(b'"x"', b'"\\u0078"'))
    pen.write("note", {"text": '\N{EM DASH} \\ " \N{PLAYING CARD ACE OF SPADES}'})
    pen.write("note", {"text": "x"}, by={"role": "player", "name": "Al", "seat": 0})
    pen.write("device", {"what": "button", "in": {"any": ["order", None, {"deep": [[True]]}]}})
    pen.write("fault", {"what": "disk", "detail": {"slow": [1, 2]}})
    pen.write("clock", {"utc_was": pen.utc, "mono": pen.mono, "two": ["Ann", "Bo"]})
    early = pen.note(4)
    pen.next_segment()
    pen.checkpoint(early)  # over fewer records than stand before it, in the segment before
    pen.write("witnessed", {"note": WITNESS.cosign(pen.note(6))})
    report = verify(pen.end(tmp_path), jobs=2)
    assert (report.code, report.findings, report.unchecked) == (VALID, (), ())
    assert (report.checkpoints, read_independently(tmp_path)["exit"]) == (3, VALID)


def test_a_checkpoint_over_another_tree_segments_back_is_found(tmp_path: Path) -> None:
    pen = started(65536)
    for _ in range(3):
        pen.next_segment()
    right = pen.seq
    pen.checkpoint(pen.key.sign(f"{ORIGIN}\n4\n{'A' * 43}=\n"))
    (found,) = verify(pen.end(tmp_path)).findings
    assert (found.segment, found.seq) == (4, right + 1)
    assert found.what == "a checkpoint over another tree than that of the first 4 records"
    assert read_independently(tmp_path)["wrong"]["seq"] == right + 1


def test_a_segment_that_cannot_be_read_spoils_nothing_else(tmp_path: Path) -> None:
    place = closed(8192, rounds=6, boots=2).save(tmp_path)
    files = sorted((place / "segments").glob("0*.seg"))
    whole = [file.read_bytes() for file in files]
    spoils: dict[str, tuple[Callable[[bytes], bytes], str]] = {
        "zeros": (lambda data: bytes(len(data)), "is no segment of a record"),
        "short": (lambda data: data[:100], "has 100 bytes, its header says 8192"),
        "empty": (lambda data: b"", "is no segment of a record"),
        "no snapshot": (
            lambda data: data[:90] + b"X" + data[91:],
            "its first record is not whole",
        ),
    }
    for at, file in enumerate(files):
        for spoil, words in spoils.values():
            file.write_bytes(spoil(whole[at]))
            first, *rest = verify(place).findings
            assert (first.segment, first.what) == (at + 1, words)
            assert not rest, "what comes after it is right as far as it can be told"
        file.unlink()
        report = verify(place)
        if 0 < at < len(files) - 1:
            assert [(one.segment, one.what) for one in report.findings] == [
                (at + 1, "the segment is missing")
            ]
        file.write_bytes(whole[at])
    assert not verify(place).findings


def test_later_segments_alone_are_checked_as_far_as_they_can_be(tmp_path: Path) -> None:
    pen = closed(8192, rounds=6, boots=2)
    for first in range(2, len(pen.files) + 1):
        place = pen.save(tmp_path / str(first), first)
        theirs = read_independently(place)
        assert (theirs["exit"], theirs["wrong"], theirs["last_seq"]) == (INCOMPLETE, None, pen.seq)
        assert f"from segment {first}: what came before is not here" in theirs["not_checked"]
        assert theirs["first_seq"] == next(
            seq for seq, frame in enumerate(pen.frames, 1) if frame[0] == first
        )
        report = verify(place)
        assert (report.code, report.findings) == (INCOMPLETE, ())
        assert f"what stands before segment {first} is not here" in report.unchecked
        assert (report.last, report.segments) == (pen.seq, (first, len(pen.files)))


def test_a_signature_that_comes_too_late_is_remarked(tmp_path: Path) -> None:
    pen = started()
    for spans in (0.9, 2.5, 1.5):
        pen.write("note", {"text": "waits"})
        pen.mono, pen.utc = pen.mono + int(spans * 1e9), pen.utc + int(spans * 1e6)
        pen.next_segment()
        pen.write("note", {"text": "waits too"})
        pen.checkpoint()
    place = pen.end(tmp_path)
    assert any("more than a second" in one for one in read_independently(place)["remarks"])
    assert [one for one in verify(place).remarks if "without a signature" in one] == [
        "2 times something stood without a signature for more than a second, the longest for 2.5 s"
    ]


def test_what_is_behind_the_last_signature_is_said(tmp_path: Path) -> None:
    pen = started()
    for _ in range(3):
        pen.write("note", {"text": "x"})
    report = verify(pen.save(tmp_path))
    assert (report.code, report.signed) == (VALID, 3)
    assert "the last 4 records have no signature over them: nothing proves them" in report.remarks


def test_the_tables_key_is_held_against_the_one_that_is_given(tmp_path: Path) -> None:
    pen = closed(8192)
    key = VerifierKey.parse(pen.table_key.vkey())
    for first in (1, 2):
        place = pen.save(tmp_path / str(first), first)
        assert verify(place).proven_key is False
        report = verify(place, table_key=key)
        assert (report.proven_key, report.findings) == (True, ())
        (found,) = verify(
            place, table_key=VerifierKey.parse(Signer(f"{ORIGIN}/table", "a stranger").vkey())
        ).findings
        assert "not the one that was given" in found.what
        assert found.segment == first


def test_notes_beside_the_record_are_held_against_it(tmp_path: Path) -> None:
    pen = closed()
    place = pen.save(tmp_path)
    beside = place / "cosigned"
    beside.mkdir()
    for size in (0, 5, 12):
        (beside / f"{size}.note").write_text(WITNESS.cosign(pen.note(size)), encoding="utf-8")
    (beside / "readme.note").write_text("not one of ours")
    assert whats(verify(place)) == []
    (beside / "7.note").write_text(WITNESS.cosign(pen.note(6)), encoding="utf-8")
    assert whats(verify(place)) == ["cosigned/7.note: is of 6 records"]
    assert read_independently(place)["wrong"]["what"] == "cosigned/7.note is of 6 records"
    (beside / "7.note").write_text("x")
    assert whats(verify(place))[0].startswith("cosigned/7.note: a note without an empty line")
    (beside / "7.note").unlink()
    (beside / f"{pen.seq + 1}.note").write_text(
        WITNESS.cosign(pen.key.sign(f"{ORIGIN}\n{pen.seq + 1}\n{'A' * 43}=\n")), encoding="utf-8"
    )
    assert "cut off: cosigned/" in read_independently(place)["wrong"]["what"]
    (what,) = whats(verify(place))
    assert what == (
        f"cut off: cosigned/{pen.seq + 1}.note has seen {pen.seq + 1} records, {pen.seq} are here"
    )


def test_findings_are_told_up_to_a_bound_and_all_are_counted(tmp_path: Path) -> None:
    pen = started(1 << 20)
    for _ in range(300):
        pen.write("note", {"text": "x"}, table="BJ-08")
    report = verify(pen.save(tmp_path))
    assert (len(report.findings), report.more, report.findings[0].seq) == (50, 250, 5)


def test_a_card_that_was_drawn_in_error_may_become_the_hole_card_rounds_later(
    tmp_path: Path,
) -> None:
    pen = started(65536)
    pen.lock()
    pen.hole(card=12)
    digest = pen.hole(card=30, kind="ErrorCardDrawn")
    pen.reveal(card=12)
    pen.lock()
    pen.decide({"type": "HoleDealt", "commitment": digest, "spare": True})
    pen.reveal(card=30)
    report = verify(pen.end(tmp_path))
    assert (report.findings, report.opened) == ((), 2)
    assert accepted(read_independently(tmp_path))


def test_the_writers_of_broken_records_can_write_valid_ones(tmp_path: Path) -> None:
    pen = started(65536, rounds=1)
    for add in (
        wrong.note(cause=3),
        wrong.clock(400_000, 0),
        wrong.clock(0, 400_000_000),
        wrong.kind(
            "refusal", event={"type": "HoleDealt", "commitment": "ab" * 32}, id="a", why="b"
        ),
        wrong.turned(12, opening(12)),
        wrong.segment(lambda data: None),
        wrong.dealt(spare=False),
        wrong.cursors(80, 81),
        wrong.adopted(),
        wrong.cursors(12, 13),
        wrong.adopted(),
        wrong.segment(lambda data: None),
        wrong.cursors(40, epoch=7),
        wrong.adopted(),
        wrong.cursors(41),
        wrong.boot(),
        lambda pen: pen.certify(pen.seq),
        lambda pen: pen.write("witnessed", {"note": WITNESS.cosign(pen.note())}),
        wrong.kind("link", what="lost", device="SHOE-1"),
        wrong.kind("person", what="signed in", who={"name": "Al"}),
        wrong.kind("fault", what="disk", detail="slow"),
        wrong.kind("unwitnessed", since=5),
        wrong.kind("closed"),
    ):
        add(pen)
    found = read_independently(pen.save(tmp_path))
    assert accepted(found)
    assert not [what for what in whats(verify(tmp_path)) if "log goes on" in what]
