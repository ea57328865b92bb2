"""Options in layers: the sheet, the jurisdiction, the table, and --set.

A later layer outranks an earlier one, option by option. If a later layer turns a feature off, the
options that depend on it are removed; a contradiction within a layer, or with an earlier one, is an
error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from controller.config import option_texts
from controller.config.option_paths import (
    COUNTED,
    GROUPS,
    LEAVES,
    TAKEN_AWAY,
    build,
    count_of,
    keys_near,
    keys_of,
)
from controller.config.values import TO_ONE, InvalidValue, read_count
from controller.errors import UsageProblem, printable, refuse, shown
from controller.rules.option_constraints import SHOES, impossible
from controller.rules.option_features import COMMON, FEATURES, Feature, off_features
from controller.rules.options import Options

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
        known = option_texts.hint(COUNTED if leaf is None else path, decks)
        raise UsageProblem("", str(wrong), known) from None
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
            UsageProblem(
                f"{layers[0].source}: {path}", "is missing", option_texts.hint(path, decks_allowed)
            )
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
