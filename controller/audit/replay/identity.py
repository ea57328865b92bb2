"""The identity of a boot: hashes of software and configuration, and the game, from which the
same procedure can be built again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from controller.audit.errors import RecordDamaged
from controller.audit.format.records import BootIdentity, OpenedData, encode
from controller.audit.read.reader import ASK
from controller.audit.release import (
    PROCEDURE,
    SOFTWARE,
    code_form,
    release_hashes,
    source_hash,
)
from controller.config import TableConfig
from controller.games import game_of_table
from controller.procedure.engine import Procedure
from controller.procedure.model.game import Game
from controller.procedure.prompts import MoneyFormat
from controller.rules.irregularities import Jurisdiction
from controller.rules.money import Amount
from controller.rules.options import Options

GAME_FORMAT: Final = 2
_KEPT: Final = 64
"""Cache size: procedures."""


class GameTerms(Struct, frozen=True, forbid_unknown_fields=True):
    """The serialized form of a game."""

    name: str
    title: str
    options: Options
    jurisdiction: Jurisdiction
    seats: int
    clauses: tuple[str, ...]
    currency: MoneyFormat | None = None
    """The format of amounts in refusals; None: a bare number."""
    format: int = GAME_FORMAT
    """The number of this form of a game; in records of version 1 there is none."""


# --- the game ---------------------------------------------------------------------------------


def terms_of(game: Game) -> GameTerms:
    return GameTerms(
        game.name,
        game.title,
        game.options,
        game.jurisdiction,
        game.seats,
        game.clauses,
        _currency(game.say_amount),
    )


def game_from(terms: GameTerms) -> Game:
    """Build the game from its serialized form."""
    say = str if terms.currency is None else terms.currency.amount
    return Game(
        terms.name,
        terms.options,
        terms.jurisdiction,
        terms.title,
        terms.seats,
        terms.clauses,
        say,
    )


def game_bytes(game: Game) -> bytes:
    """The encoded game, as recorded."""
    terms = terms_of(game)
    ways = {name: replace(one, text="") for name, one in terms.jurisdiction.ways.items()}
    found = _without_defaults(replace(terms, jurisdiction=replace(terms.jurisdiction, ways=ways)))
    return encode({"format": GAME_FORMAT, **found})


def _without_defaults(value: Struct) -> dict[str, object]:
    """The fields of a struct that differ from their defaults, with sorted names in mappings.
    Equal values give equal bytes: defaults are compared by value."""
    found: dict[str, object] = {}
    for field in msgspec.structs.fields(value):
        inner = getattr(value, field.name)
        if inner != field.default:
            found[field.encode_name] = _written(inner)
    return found


def _written(value: object) -> object:
    if isinstance(value, Struct):
        return _without_defaults(value)
    if isinstance(value, Mapping):
        return {name: _written(value[name]) for name in sorted(value)}
    if isinstance(value, tuple):
        return [_written(one) for one in value]
    return _plain(value)


def _currency(say: Callable[[Amount], str]) -> MoneyFormat | None:
    if say is str:
        return None
    money = getattr(say, "__self__", None)
    if isinstance(money, MoneyFormat) and say == money.amount:
        return money
    raise TypeError(f"a record cannot keep how this game writes amounts: {say!r}")


# --- who runs it ------------------------------------------------------------------------------


def identity_of(table: str, what: TableConfig | Game) -> BootIdentity:
    """The identity of a boot of this table with this configuration or game."""
    game = game_of_table(what) if isinstance(what, TableConfig) else what
    terms = game_bytes(game)
    conf = _configuration(what) if isinstance(what, TableConfig) else terms
    return BootIdentity(
        table,
        software_name(),
        source_hash(*SOFTWARE),
        sha256(conf).hexdigest(),
        source_hash(*PROCEDURE),
        terms,
        release=release_hashes().software,
        dependencies=release_hashes().dependencies,
        runs=code_form(),
    )


def proc_of(game: Game) -> str:
    """The procedure hash of this game with the installed code."""
    return _proc(source_hash(*PROCEDURE), game_bytes(game))


def procedure_of(opened: OpenedData) -> Procedure | None:
    """The procedure of a boot; None if its code is not the installed code, so that nothing can
    be replayed. Raises RecordDamaged."""
    game = bytes(opened.game)
    try:
        proc = _proc(opened.code, game)
    except ValueError:
        raise RecordDamaged(opened.origin, "the hash of its code is no hash", ASK) from None
    if proc != opened.proc:
        raise RecordDamaged(opened.origin, "the hash of its procedure is not that of its game", ASK)
    if opened.code != source_hash(*PROCEDURE):
        return None
    try:
        return _procedure(game)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise RecordDamaged(opened.origin, f"its game cannot be read: {problem}", ASK) from None


@lru_cache(maxsize=_KEPT)
def _procedure(game: bytes) -> Procedure:
    return Procedure(game_from(msgspec.json.decode(game, type=GameTerms)))


def _proc(code: str, game: bytes) -> str:
    return sha256(bytes.fromhex(code) + game).hexdigest()


def software_name() -> str:
    """Name and version."""
    try:
        return f"holecard {version('holecard')}"
    except PackageNotFoundError:
        return "holecard, not installed"


def _configuration(table: TableConfig) -> bytes:
    """A table's configuration as JSON, independent of where its files are."""
    sheet = table.sheet
    fields = {
        "name": table.name,
        "title": table.title,
        "game": sheet.name,
        "options": sheet.options,
        "clauses": sheet.clauses,
        "because": sheet.because,
        "decks_allowed": sheet.decks_allowed,
        "jurisdiction": table.jurisdiction,
        "seats": table.seats,
        "currency": table.currency,
    }
    return encode({name: _plain(value) for name, value in fields.items()})


def _plain(value: object) -> object:
    """The value with sorted keys, so that equal values have equal bytes."""
    return msgspec.to_builtins(value, str_keys=True, order="deterministic")
