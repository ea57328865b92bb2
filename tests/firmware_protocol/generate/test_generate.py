"""The catalogue is checked before anything is made of it, and nothing made of it is stale."""

import re
import shutil
from pathlib import Path

import pytest

from firmware_protocol import conformance
from firmware_protocol.generate import __main__, emit_page
from firmware_protocol.generate import catalogue as catalogues
from firmware_protocol.generate.catalogue import REPLY_OFFSET, CatalogueError, schema_hash
from firmware_protocol.host.exchange import INITIAL_DELAY, MAX_LOST
from firmware_protocol.host.handshake import MAX_DELAY
from firmware_protocol.messages import (
    COMMANDS,
    MESSAGES,
    SCHEMA_HASHES,
    HandshakeNotAuthentic,
    all_errors,
    slug,
)
from tests.support.firmware_protocol.strategies import catalogue

SOURCE = (__main__.PACKAGE / catalogues.FILE).read_text(encoding="utf-8")


def test_everything_generated_is_fresh() -> None:
    assert list(__main__.stale()) == []
    assert __main__.main(["--check"]) == 0


def test_a_stale_file_is_named_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("c", "messages"):
        (tmp_path / folder).mkdir()
    shutil.copy(__main__.PACKAGE / catalogues.FILE, tmp_path)
    monkeypatch.setattr(__main__, "PACKAGE", tmp_path)
    monkeypatch.setattr(__main__, "stale", lambda stale=__main__.stale: stale(tmp_path))
    assert __main__.main(["--check"]) == __main__.EXIT_STALE
    assert "firmware_protocol/messages/shoe.py: is stale" in capsys.readouterr().out
    assert __main__.main(["--write"]) == 0
    assert __main__.main(["--check"]) == 0
    (tmp_path / "PROTOCOL.md").write_text("older", encoding="utf-8")
    capsys.readouterr()
    assert __main__.main(["--check"]) == __main__.EXIT_STALE
    assert capsys.readouterr().out == "firmware_protocol/PROTOCOL.md: is stale\n"
    (tmp_path / catalogues.FILE).write_text(
        SOURCE.replace('"epoch", type = "u32"', '"epoch", type = "u33"'), encoding="utf-8"
    )
    assert __main__.main(["--check"]) == __main__.EXIT_USAGE
    assert "type 'u33' is not known" in capsys.readouterr().err


def changed(old: str, new: str, count: int = 1) -> str:
    assert old in SOURCE
    return SOURCE.replace(old, new, count)


FIRST_MESSAGE = '[[message]]\nid = 0x01\nname = "POWER"'
MISTAKES = {
    "an id given twice": (changed("id = 0x02", "id = 0x01"), "message id 0x01 is declared twice"),
    "a name given twice": (
        changed('name = "TAMPER"', 'name = "POWER"'),
        "name POWER is declared twice",
    ),
    "a message named as an enum": (
        changed('name = "TAMPER"', 'name = "POWER_CAUSE"'),
        "name POWER_CAUSE is declared twice",
    ),
    "an unknown type": (
        changed('type = "power_cause"', 'type = "power_course"'),
        "message POWER.cause: type 'power_course' is not known",
    ),
    "an unknown key": (changed(FIRST_MESSAGE, FIRST_MESSAGE + "\nsinse = 1"), "sinse"),
    "a missing key": (changed('class = "all"\nkind = "event"', 'kind = "event"'), "class"),
    "a wrong kind": (changed('kind = "event"', 'kind = "happening"'), "happening"),
    "broken TOML": ("[[message", "Expected"),
    "an id of another class": (
        changed("id = 0x01", "id = 0x31"),
        "message POWER: id 0x31 is outside of 0x01 to 0x0f",
    ),
    "a reserved id": (
        changed("id = 0x01", "id = 0x08"),
        "reserved 0x08 to 0x0b: message POWER is in it",
    ),
    "a body too long": (
        changed('type = "bytes[11]"', 'type = "bytes[12]"'),
        "message CARD_READ: its fields take 25 bytes, and there is room for 24",
    ),
    "a plaintext too long": (
        changed("size = 120\nsecret", "size = 100\nsecret"),
        "message REREAD_REPLY: size 100 is not one of (56, 120, 226)",
    ),
    "a field twice": (
        changed('{ name = "decks", type = "u8", doc', '{ name = "count", type = "u8", doc'),
        "message LOADED: field count is declared twice",
    ),
    "an enum value twice": (
        changed('"STAND", value = 1', '"STAND", value = 0'),
        "which_button: value 0 is given twice",
    ),
    "an enum value too large": (
        changed('"CALL", value = 8', '"CALL", value = 300'),
        "which_button.CALL: 300 does not fit into u8",
    ),
    "a flag of two bits": (
        changed('"REVERSED", value = 0x4', '"REVERSED", value = 0x6'),
        "card_flags.REVERSED: 6 is not one bit",
    ),
    "flags of nothing": (
        changed('of = "which_button"', 'of = "buttons"'),
        "button_mask: `of` makes flags of a declared enum",
    ),
    "a range that does not fit": (
        changed('"used", type = "u8", max = 100', '"used", type = "u8", max = 1000'),
        "message LOG_PRESSURE.used: 1000 does not fit",
    ),
    "a range upside down": (
        changed(
            '"seat", type = "u8", min = 1, max = 15', '"seat", type = "u8", min = 20, max = 15'
        ),
        "message BUTTON.seat: min is above max",
    ),
    "a range of bytes": (
        changed('type = "bytes[11]"', 'type = "bytes[11]", min = 1'),
        "message CARD_READ.salt: a range for bytes[11] means nothing",
    ),
    "a command without a reply": (
        changed('to = "LOCK"', 'to = "REREAD"'),
        "message LOCK: has no reply",
    ),
    "a reply to nothing": (
        changed('to = "LOCK"', 'to = "UNLOCK"'),
        "message LOCK_REPLY: `to` UNLOCK is no command",
    ),
    "a reply with a wrong id": (
        changed("id = 0xD0", "id = 0xD2"),
        "message LOCK_REPLY: its id must be 0xd0",
    ),
    "an event that retries": (
        changed(FIRST_MESSAGE, FIRST_MESSAGE + "\nidempotent = true"),
        "message POWER: `idempotent` and `deadline_ms` are for commands",
    ),
    "an event of the host": (
        changed('kind = "event"\nfrom = "device"', 'kind = "event"\nfrom = "host"'),
        "message POWER: an event is sent by the device",
    ),
    "a result that never comes": (
        changed('result = "STARTED"', 'result = "CUT_CARD"'),
        "message START: result CUT_CARD is no event of its class",
    ),
    "a version to come": (
        changed(FIRST_MESSAGE, FIRST_MESSAGE.replace("POWER", "POWER")).replace(
            "since = 1", "since = 2", 1
        ),
        "message POWER: since 2, which is no version yet",
    ),
    "a frame kind undeclared": (
        changed('kind = "HS2"', 'kind = "HS3"'),
        "frame HS2: is a value of frame_kind, but not declared",
    ),
    "a frame too long": (
        changed("sizes = [72, 136, 242]", "sizes = [72, 136, 243]"),
        "frame DATA: its payload is longer than 242 bytes",
    ),
    "a record of another length": (
        changed(
            '"chain", type = "bytes[8]", doc = "BLAKE2b', '"chain", type = "bytes[9]", doc = "B'
        ),
        "layout EVENT: is not 56 bytes",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_catalogue_is_named(mistake: str) -> None:
    text, words = MISTAKES[mistake]
    with pytest.raises(CatalogueError, match=rf"(?s)^messages\.toml: .*{re.escape(words)}"):
        catalogues.parse_catalogue(text)


def test_all_mistakes_are_named_at_once() -> None:
    text = SOURCE.replace("id = 0xD0", "id = 0xD2").replace(
        "size = 120\nsecret", "size = 100\nsecret"
    )
    with pytest.raises(CatalogueError) as caught:
        catalogues.parse_catalogue(text)
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize(
    ("prose", "words"),
    [
        ("# T\n{{NO_SUCH}}", "{{NO_SUCH}} is not known"),
        ("# T\nall alone", "has no frames, layouts"),
        ("# T\n" + "".join(f"{{{{{name}}}}}" for name in emit_page.TABLES), "has no section"),
    ],
)
def test_a_mistake_in_the_prose_is_named(prose: str, words: str) -> None:
    with pytest.raises(CatalogueError, match=re.escape(words)):
        emit_page.page(catalogue(), prose)


def test_the_schema_hash_changes_with_the_bytes_and_with_nothing_else() -> None:
    assert schema_hash(catalogue(), 1) == SCHEMA_HASHES[1]
    for old, new, same in (
        ('name = "percent"', 'name = "per_cent"', False),
        ('"used", type = "u8", max = 100', '"used", type = "u8", max = 99', False),
        ("idempotent = true", "idempotent = false", False),
        ('"CALL", value = 8', '"CALL", value = 9', False),
        ("doc = ", "doc = 'other words' # ", True),
        ("deadline_ms = 500", "deadline_ms = 600", True),
    ):
        other = catalogues.parse_catalogue(changed(old, new))
        assert (schema_hash(other, 1) == SCHEMA_HASHES[1]) is same, old


def test_the_page_names_every_message_error_and_rule() -> None:
    page = (__main__.PACKAGE / "PROTOCOL.md").read_text(encoding="utf-8")
    for one in catalogue().messages:
        assert f"**{one.name}** ({one.kind} 0x{one.id:02X}" in page
    for error in all_errors():
        assert f"| {error.number} | {slug(error.__name__)} |" in page
    items = conformance.load_items()
    assert all(f"| {item.id} |" in page for item in items)
    assert len({item.id for item in items}) == len(items)
    for profile in ("shoe", "shuffler", "station"):
        assert len([item for item in items if item.concerns(profile)]) > 40


def test_errors_have_numbers_and_names_of_their_own() -> None:
    every = list(all_errors())
    assert len({one.number for one in every}) == len(every)
    assert HandshakeNotAuthentic("x").name == "handshake-not-authentic"


def test_the_registry_has_every_message_once() -> None:
    assert set(MESSAGES) == {one.id for one in catalogue().messages}
    assert list(MESSAGES) == [kind.ID for kind in MESSAGES.values()]
    for command in COMMANDS.values():
        assert command.REPLY.ID == command.ID + REPLY_OFFSET


def test_what_the_page_says_of_the_host_is_what_it_does() -> None:
    """The prose states the numbers of the host that no device needs."""
    page = " ".join(emit_page.page(catalogue()).split())
    assert f"may wait until the session is {INITIAL_DELAY // 1000} ms old" in page
    assert f"A counter that leaps by more than {MAX_LOST:,} is accepted" in page
    assert f"with a backoff of up to {MAX_DELAY // 1_000_000} s." in page
