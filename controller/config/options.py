"""The options by dotted path: their checks, texts, layers, and --set.

The paths are derived from the structs of controller.rules.options: a new field there is a new
option. A later layer (sheet, jurisdiction, table, --set) outranks an earlier one, option by option.
If it turns a feature off, the options that depend on it are removed; a contradiction within a
layer, or with an earlier one, is an error.
"""

from __future__ import annotations

import argparse
import difflib
import json
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import (
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Struct
from msgspec.structs import FieldInfo

from controller.config import values
from controller.config.values import TO_ONE, InvalidValue, ValueCheck, either, read_count
from controller.errors import UsageProblem, printable, refuse, shown
from controller.rules.money import Denomination, Odds
from controller.rules.option_constraints import (
    COMMON,
    FEATURES,
    RANGES,
    SHOES,
    Feature,
    impossible,
    off_features,
)
from controller.rules.options import Options

_NONE: Final = type(None)
TAKEN_AWAY: Final = "none"
"""Represents null, which TOML does not have."""


class Leaf(Struct, frozen=True):
    path: str
    check: ValueCheck[Any]
    optional: bool
    required: bool
    default: object

    @property
    def allowed(self) -> str:
        return f"{self.check.allowed}, or none" if self.optional else self.check.allowed

    def read(self, raw: object) -> object:
        """Parse a value of this option. Raises InvalidValue."""
        if raw is None or raw == TAKEN_AWAY:
            if self.optional:
                return None
            raise values.InvalidValue("it cannot be taken away")
        return self.check.read(raw)


_BY_TYPE: Final[dict[object, ValueCheck[Any]]] = {
    bool: values.TRUTH,
    Odds: values.ODDS,
    dict[int, int]: values.PAYS,
    tuple[Denomination, ...]: values.CHIPS,
}


def _check(path: str, hint: object) -> ValueCheck[Any]:
    if path == "decks":
        return values.choice(SHOES)
    if path in RANGES:
        return values.whole_number(RANGES[path])
    if hint in _BY_TYPE:
        return _BY_TYPE[hint]
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return values.choice(parts)
    if origin is tuple and get_origin(parts[0]) is Literal:
        return _some_of(get_args(parts[0]))
    raise TypeError(f"{path}: no way to read {hint}")


def _some_of(known: tuple[str, ...]) -> ValueCheck[tuple[str, ...]]:
    """Checks a list of known words; returns them in the order of the option."""
    listed = values.list_of(values.choice(known))

    def read(value: object) -> tuple[str, ...]:
        given = listed.read(value)
        return tuple(word for word in known if word in given)

    return ValueCheck(f"a list with {', '.join(known)}, all, some or none of them", read)


@cache
def _fields(shape: type[Struct]) -> tuple[tuple[FieldInfo, Any], ...]:
    hints = get_type_hints(shape)
    return tuple((field, hints[field.name]) for field in msgspec.structs.fields(shape))


def _walk(shape: type[Struct], prefix: str) -> Iterator[Leaf]:
    for field, hint in _fields(shape):
        path = prefix + field.name
        if _is_group(hint):
            yield from _walk(hint, path + ".")
            continue
        optional = get_origin(hint) in (Union, types.UnionType)
        some = next(part for part in get_args(hint) if part is not _NONE) if optional else hint
        default = None if field.required else field.default
        yield Leaf(path, _check(path, some), optional, field.required, default)


def _is_group(hint: object) -> bool:
    return isinstance(hint, type) and issubclass(hint, Struct) and hint not in (Odds, Denomination)


def _tables(paths: Iterable[str]) -> dict[str, tuple[str, ...]]:
    keys: dict[str, dict[str, None]] = {}
    for path in paths:
        names = path.split(".")
        for depth, name in enumerate(names):
            keys.setdefault(".".join(names[:depth]), {})[name] = None
    return {table: tuple(names) for table, names in keys.items()}


LEAVES: Final[dict[str, Leaf]] = {leaf.path: leaf for leaf in _walk(Options, "")}
GROUPS: Final[dict[str, tuple[str, ...]]] = _tables(LEAVES)
"""Each table of options and its keys; "" is the root."""

COUNTED: Final = "bonus.buster.pays"
"""The only option whose entries can be set singly: `bonus.buster.pays.4`."""


def count_of(path: str) -> str | None:
    """Returns the count in `bonus.buster.pays.4`, or None for any other path."""
    group, _, count = path.rpartition(".")
    return count if group == COUNTED else None


def keys_of(table: str) -> str:
    keys = ", ".join(GROUPS[table])
    return f"in {table}: {keys}" if table else keys


def keys_near(path: str) -> str:
    """Returns the path nearest to an unknown one, and the keys of its table."""
    table = path.rpartition(".")[0]
    while table not in GROUPS:
        table = table.rpartition(".")[0]
    near = nearest(path, [*LEAVES, *filter(None, GROUPS)])
    return f"{near}{keys_of(table)}"


def nearest(word: str, known: Iterable[str]) -> str:
    """Returns the nearest known word, as a prefix for the list of known words; may be empty."""
    near = difflib.get_close_matches(word[:100], list(known), n=1)
    return f"{near[0]}? " if near else ""


S = TypeVar("S", bound=Struct)


def build(values: Mapping[str, object]) -> Options:
    """Returns options with these values, and defaults for all others."""
    return _build(Options, "", values)


def _build(shape: type[S], prefix: str, values: Mapping[str, object]) -> S:
    given: dict[str, object] = {}
    for field, hint in _fields(shape):
        path = prefix + field.name
        if _is_group(hint):
            given[field.name] = _build(hint, path + ".", values)
        elif path in values:
            given[field.name] = values[path]
    return shape(**given)


# --- texts ------------------------------------------------------------------------------------

_BETS: Final = {
    "main": "main wager",
    "diamond": "diamond bet",
    "buster": "Buster wager",
    "toke_main": "toke on the main wager",
    "toke_buster": "toke on the Buster wager",
}
_BOUNDS: Final = {
    "min": "The smallest first {bet} that is taken; none for no such limit.",
    "max": "The largest first {bet} that is taken; none for no such limit.",
    "step": "A first {bet} must be a multiple of this; none for any amount.",
}

OPTION_TEXT: Final[dict[str, str]] = {
    "decks": "How many decks of 52 cards are in the shoe.",
    "blackjack.pays": "What a dealt blackjack pays.",
    "blackjack.pays_diamonds": "What a blackjack dealt in diamonds pays; none for no difference.",
    "blackjack.tie": "What becomes of a player's blackjack against the dealer's.",
    "blackjack.ten_up": (
        "With a ten up and ties that push: the dealer checks before a blackjack is paid, or after."
    ),
    "blackjack.paid": (
        "When a blackjack that waits for the check is paid: right after it, or at settlement."
    ),
    "decisions.by": (
        "How decisions come in: hand signals that the dealer enters, station buttons, or both."
    ),
    "dealer.soft_17": "What the dealer does with a soft 17.",
    "dealer.peek": "Under which up cards the dealer checks the hole card before play.",
    "dealer.push_22": "Whether a dealer's 22 pushes every unresolved hand.",
    "dealer.push_bust_cards": (
        "A dealer's bust with at least so many cards pushes every unresolved hand; 0 for never."
    ),
    "dealer.no_peek_takes": (
        "Where the dealer does not check under A and T: what doubled and split wagers lose to a "
        "blackjack."
    ),
    "wins.pays_21": "What a winning 21 that is no blackjack pays, on the whole wager.",
    "split.max_hands": "How many hands a seat may have after splitting; 1 for no splits.",
    "split.match": "Whether two cards split that are equal in value, or only in rank.",
    "split.aces_one_card": "Whether a split ace gets one card and no double.",
    "split.aces_again": "Whether a pair of aces that came from a split may be split again.",
    "double.on": "Whether a hand of any number of cards may double, or only one of two.",
    "double.max_total": "The highest total that may double.",
    "double.ace_is_one_with_ten": (
        "Whether an ace and a ten may double, the ace then counting 1 for good."
    ),
    "double.times": "How often one hand may double, each time its total wager.",
    "double.after_split": "Whether a hand that came from a split may double.",
    "double.natural": "Whether a dealt blackjack may decline its pay and double.",
    "double.for_less": "Whether a double may be for less than the hand's wager.",
    "surrender.when": (
        "When a hand may be given up for half: never, as the first decision on the two dealt "
        "cards, or at any time in turn."
    ),
    "surrender.of_doubled": (
        "What a doubled hand loses when it is given up: half of all, or the bet before the double."
    ),
    "instant.pays_21": "What an undoubled 21 of instant.cards_21 or more cards is paid at once.",
    "instant.cards_21": "From how many cards on a 21 is paid at once.",
    "instant.pays_count": (
        "What an undoubled hand of instant.cards_count cards, 20 or less, is paid at once."
    ),
    "instant.cards_count": "With how many cards a hand of 20 or less is paid at once.",
    "instant.on_split": "Whether hands that came from a split are paid at once too.",
    "insurance.offered": "Whether insurance is offered under an ace.",
    "insurance.pays": "What insurance pays.",
    "insurance.max": "How much of the main wager insurance may be.",
    "even_money.offered": "Whether a blackjack under an ace may take 1:1 at once.",
    "bonus.diamond.pays": (
        "How many to 1 the diamond bet pays for a blackjack dealt in diamonds; none for no such "
        "bet."
    ),
    "bonus.diamond.first_round_only": (
        "Whether the diamond bet is taken only on the first round after a shuffle."
    ),
    "bonus.buster.pays": (
        "How many to 1 the Buster wager pays by the cards in the dealer's bust hand, the highest "
        "count standing for more too; a count that is missing loses; none for no such wager."
    ),
    "toke.allowed": "Whether bets for the dealers are taken.",
    "money.rounding": "How winnings and halves that do not come out even are rounded.",
    "money.unit": "The smallest amount that can be paid, in the currency's smallest coin.",
    **{
        f"limits.{bet}.{bound}": sentence.format(bet=name)
        for bet, name in _BETS.items()
        for bound, sentence in _BOUNDS.items()
    },
    "limits.table_payout": (
        "The most that one round may cost the table, shown before wagers lock; none for no cap."
    ),
    "shuffle.cut_cards_behind": (
        "How many cards lie behind the cut card; none for a quarter of the shoe."
    ),
    "shuffle.max_rounds": "After how many rounds a shuffle is due at the latest; none for no end.",
    "burn.on_shuffle": "How many cards are burned after a shuffle.",
    "burn.on_dealer": "How many cards are burned when a dealer takes over.",
    "settle.order": "Which seat is settled first.",
    "payout.floor_from": "From which amount on a payment waits for the floor; none for never.",
    "chips": (
        "The house's chips, in the currency's smallest coin; the smallest value is money.unit."
    ),
}


def allowed(path: str, decks: tuple[int, ...] = SHOES) -> str:
    """Returns the allowed values of the option, for a game with these numbers of decks."""
    return either(decks) if path == "decks" else LEAVES[path].allowed


def hint(path: str, decks: tuple[int, ...] = SHOES) -> str:
    """Returns allowed values and sentence, for the end of an error message."""
    return f"{allowed(path, decks)} ({OPTION_TEXT[path].rstrip('.')})"


# --- values -----------------------------------------------------------------------------------


def written(value: object) -> str:
    """Returns an option's value as text."""
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case dict():
            return ", ".join(f"{key}={each_}" for key, each_ in value.items())
        case tuple():
            return ", ".join(map(written, value)) or "-"
        case Denomination(name=name, value=worth):
            return f"{name} {worth}"
        case _:
            return str(value)


def plain(value: object) -> object:
    """Returns an option's value as a file or script has it."""
    match value:
        case Odds():
            return str(value)
        case Denomination(name=name, value=worth):
            return {"name": name, "value": worth}
        case tuple():
            return [plain(one) for one in value]
        case dict():
            return {str(key): one for key, one in value.items()}
        case _:
            return value


# --- layers -----------------------------------------------------------------------------------

LayerName: TypeAlias = Literal["sheet", "jurisdiction", "table", "override", "default"]

_UNSET: Final = -1
"""The rank of an option that no layer sets."""


class Layer(NamedTuple):
    """The options that one file sets, by dotted path."""

    name: LayerName
    source: str
    values: Mapping[str, object]


class OptionOrigin(Struct, frozen=True):
    """An option's value, and the file that gives it."""

    value: object
    source: str
    layer: LayerName


class Merged(NamedTuple):
    options: Options
    origin: dict[str, OptionOrigin]


def read_layer(
    name: LayerName,
    source: str,
    raw: Mapping[str, object],
    problems: list[UsageProblem],
    decks: tuple[int, ...] = SHOES,
) -> Layer:
    """Parse the options in `raw`, nested or by dotted path; errors are appended to `problems`."""
    values: dict[str, object] = {}
    for path, value in flat(raw):
        try:
            if path in values:
                raise UsageProblem("", "is set twice", "once")
            values[path] = _read(path, value, decks)
        except UsageProblem as problem:
            where = f"{source}: {printable(path)}"
            problems.append(UsageProblem(where, problem.what, problem.allowed))
    return Layer(name, source, values)


def flat(raw: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yields the options of nested tables by dotted path; unknown keys are not changed."""
    for key, value in raw.items():
        path = f"{prefix}{key}"
        if path in GROUPS and isinstance(value, Mapping):
            yield from flat(value, path + ".")
        else:
            yield path, value


def _read(path: str, raw: object, decks: tuple[int, ...]) -> object:
    leaf, count = LEAVES.get(path), count_of(path)
    try:
        if leaf is not None:
            return leaf.read(raw)
        if count is not None:
            return _entry(count, raw)
    except InvalidValue as wrong:
        raise UsageProblem("", str(wrong), hint(COUNTED if leaf is None else path, decks)) from None
    if path in GROUPS:
        raise UsageProblem("", f"{shown(raw)} is not a table", keys_of(path))
    raise UsageProblem("", "is no option", keys_near(path))


def _entry(count: str, raw: object) -> int | None:
    read_count(count)
    return None if raw is None or raw == TAKEN_AWAY else TO_ONE.read(raw)


class _Stack:
    """The merged values of all layers, each with the rank of its layer."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.layers = layers
        self.values: dict[str, object] = {}
        self.rank: dict[str, int] = {}
        for rank, layer in enumerate(layers):
            # Whole tables before single entries, in any order of the file.
            for path in sorted(layer.values):
                self._lay(path, layer.values[path], rank)

    def _lay(self, path: str, value: object, rank: int) -> None:
        count = count_of(path)
        if count is not None:
            path, value = COUNTED, self._with_count(int(count), value)
        self.values[path] = value
        self.rank[path] = rank

    def _with_count(self, count: int, odds: object) -> dict[int, object]:
        table = self.values.get(COUNTED)
        pays = dict(table) if isinstance(table, dict) else {}
        pays.pop(count, None)
        return dict(sorted(pays.items() if odds is None else [*pays.items(), (count, odds)]))

    def ranked(self, path: str) -> int:
        return self.rank.get(path, _UNSET)

    def outranks(self, feature: Feature, path: str) -> bool:
        """Whether a later layer than the one that set `path` turned the feature off."""
        return max(map(self.ranked, feature.paths)) > self.ranked(path)


def merge(layers: Sequence[Layer], decks_allowed: tuple[int, ...]) -> Merged:
    """Merge and validate all layers. Raises UsageProblem with all errors."""
    stack = _Stack(layers)
    refuse(
        [
            UsageProblem(f"{layers[0].source}: {path}", "is missing", hint(path, decks_allowed))
            for path, leaf in LEAVES.items()
            if leaf.required and path not in stack.values
        ]
    )
    values = dict(stack.values)
    options = build(values)
    origin = {
        path: OptionOrigin(values[path], layers[rank].source, layers[rank].name)
        for path, rank in stack.rank.items()
    }
    for path, feature in _left_out(stack, options):
        values.pop(path, None)
        origin[path] = OptionOrigin(LEAVES[path].default, f"left out: {feature.off}", "default")
    for path, common in COMMON.items():
        if values.get(path) is None and not off_features(path, options):
            values[path] = common
            origin[path] = OptionOrigin(common, "default", "default")
    options = build(values)
    explicit = {path for path in values if stack.ranked(path) > _UNSET}
    refuse(
        [
            UsageProblem(f"{_blame(stack, path, others)}: {path}", message, allowed)
            for path, message, allowed, others in impossible(options, explicit, decks_allowed)
        ]
    )
    for path, leaf in LEAVES.items():
        origin.setdefault(path, OptionOrigin(leaf.default, "default", "default"))
    return Merged(options, {path: origin[path] for path in LEAVES})


def _left_out(stack: _Stack, options: Options) -> Iterator[tuple[str, Feature]]:
    """Yields the options to remove because a later layer turned their feature off."""
    for path in FEATURES:
        if stack.values.get(path) is None:
            continue
        off = off_features(path, options)
        if off and all(stack.outranks(feature, path) for feature in off):
            yield path, off[0]


def _blame(stack: _Stack, path: str, others: tuple[str, ...]) -> str:
    """Returns the file to correct: the last that set one of the options that clash."""
    return stack.layers[max(0, *map(stack.ranked, (path, *others)))].source


# --- --set PATH=VALUE -------------------------------------------------------------------------

SET: Final = "--set"


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add --set, which sets an option of the game."""
    parser.add_argument(
        SET,
        dest="settings",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="lay an option over it, as often as needed",
    )


def read_settings(settings: Iterable[str]) -> dict[str, object]:
    """Parse PATH=VALUE arguments. Returns options by dotted path; raises UsageProblem."""
    values: dict[str, object] = {}
    for setting in settings:
        path, equals, text = setting.partition("=")
        if not equals or not path:
            raise UsageProblem(SET, f"'{printable(setting)}' sets nothing", "PATH=VALUE")
        if path in values:
            raise UsageProblem(f"{SET}: {printable(path)}", "is set twice", "once")
        values[path] = _read_value(text)
    return values


def _read_value(text: str) -> object:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value
