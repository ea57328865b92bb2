"""A round verified, and what is found where it was tampered with."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controller.audit.format.notes import SigningKey, VerifierKey
from controller.audit.format.segments import segment_file
from controller.audit.index import Index, RecordQuery, RoundRow, find_rounds
from controller.audit.proofs import decode_proof, verify_proof
from controller.audit.read.reader import records
from controller.screens.review.view.verdict import check_round
from tests.support.audit.record.table import TABLE_KEY
from tests.support.screens.looked_at import Looking


@pytest.fixture(scope="module")
def rounds(sound: Path, tmp_path_factory: pytest.TempPathFactory) -> list[RoundRow]:
    with Index.open(sound, tmp_path_factory.mktemp("verdict") / "index.db") as index:
        index.catch_up()
        return list(find_rounds(index.db, RecordQuery(), 0, 1_000).rounds)


@pytest.fixture
def copy(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "copy"))


def key(sound: Path) -> VerifierKey:
    opened = next(one for _, one in records(sound) if one.kind == "opened")
    name = re.search(rb'"table_key":"([^"+]+)', bytes(opened.data))
    assert name is not None
    return SigningKey(name[1].decode(), TABLE_KEY).verifier


def test_a_round_is_right_and_its_proof_stands_by_itself(
    sound: Path, rounds: list[RoundRow]
) -> None:
    for one in (rounds[0], rounds[7], rounds[-1]):
        found = check_round(sound, one, key(sound))
        assert (found.said, found.findings) == ("right", ())
        assert found.again > 0
        assert found.given
        assert found.proof is not None
        last = min(one.last_seq, found.proof.size)
        assert one.last_seq - last <= 1  # what ends the record
        checked = verify_proof("it", decode_proof("it", found.proof.encoded.encode()), key(sound))
        assert [r.seq for r in checked.records] == list(range(one.first_seq, last + 1))
        assert checked.checkpoint.root.hex() == found.proof.root


def test_hole_cards_of_the_round_are_opened(sound: Path, rounds: list[RoundRow]) -> None:
    shown = 0
    for one in rounds:
        events = [
            r.data
            for _, r in records(sound)
            if r.kind == "decision" and one.first_seq <= r.seq <= one.last_seq
        ]
        revealed = sum(b'"type":"HoleRevealed"' in bytes(data) for data in events)
        if revealed:
            assert check_round(sound, one).opened == revealed
            shown += 1
        if shown == 4:
            return
    pytest.fail("too few hole cards were turned over")


def test_a_byte_that_was_changed_is_found_in_its_round_and_no_other(
    copy: Path, rounds: list[RoundRow]
) -> None:
    one = rounds[2]
    at, record = next((p, r) for p, r in records(copy) if r.seq == one.first_seq + 2)
    file = segment_file(copy, at.segment)
    data = bytearray(file.read_bytes())
    where = data.index(b'"utc":', at.offset) + 8
    data[where] = data[where] ^ 1
    file.write_bytes(data)
    assert record.seq > 0
    found = check_round(copy, one)
    assert found.said == "wrong"
    assert found.findings
    assert found.proof is None


def test_another_key_than_the_tables_proves_nothing(sound: Path, rounds: list[RoundRow]) -> None:
    other = SigningKey(key(sound).name, Ed25519PrivateKey.generate()).verifier
    found = check_round(sound, rounds[2], other)
    assert found.said == "wrong"
    assert "key" in found.findings[-1]


@pytest.fixture
def looking(sound: Path, tmp_path: Path) -> Iterator[Looking]:
    with Looking(sound, tmp_path / "scratch") as found:
        yield found


def test_the_page_says_what_it_means(looking: Looking) -> None:
    browser = looking.enter()
    page = browser.post("/rounds/3/verify")
    assert page.status == 200
    assert '<p class="said">RIGHT</p>' in page.text
    assert "THE TABLE&#39;S KEY IS NOT PROVEN" in page.text
    proof = browser.post("/rounds/3/verify", {"as": "proof"})
    assert proof.headers["content-disposition"] == 'attachment; filename="round-3-proof.json"'
    decode_proof("it", proof.bytes)
    assert browser.post("/rounds/3/verify", {"as": "x"}).status == 400
    assert browser.post("/rounds/999/verify").status == 404


def test_the_whole_record_is_verified_beside_the_pages(looking: Looking) -> None:
    browser = looking.enter()
    assert "Verify now" in browser.get("/verify").words
    assert browser.post("/verify").status == 303
    looking.review.house.checking.wait(60)
    page = browser.get("/verify")
    assert '<p class="said">RIGHT</p>' in page.text
    assert "Verified for Eve" in page.words
    assert "hole cards opened as they were committed to" in page.words


def test_a_damaged_record_is_found_and_its_pages_say_so(
    copy: Path, tmp_path: Path, rounds: list[RoundRow]
) -> None:
    with Looking(copy, tmp_path / "scratch") as looking:
        browser = looking.enter()
        at = next(p for p, r in records(copy) if r.seq == rounds[2].first_seq + 1)
        file = segment_file(copy, at.segment)
        data = bytearray(file.read_bytes())
        data[at.offset + 100] ^= 0xFF
        file.write_bytes(data)
        browser.post("/verify")
        looking.review.house.checking.wait(60)
        assert '<p class="said">WRONG</p>' in browser.get("/verify").text
        for path in ("/rounds/3", "/rounds/3/replay", "/rounds/3/replay.json"):
            answer = browser.get(path)
            assert answer.status == 409, path
            assert "is not there" in answer.words
        assert browser.get("/rounds/2").status == 200
        assert browser.post("/rounds/3/verify").status in (200, 409)


def test_only_one_run_at_a_time_and_none_is_left_behind(looking: Looking) -> None:
    checking = looking.review.house.checking
    assert [checking.run] == [None]
    assert checking.start("Eve")
    again = checking.start("Flo")
    checking.wait(60)
    run = checking.run
    assert run is not None
    assert run.who == ("Flo" if again else "Eve")
    checking.close()
    assert not checking.start("Ida")
