"""Every command and subcommand of `holecard`, found from the parsers themselves."""

import argparse
import importlib.metadata
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from controller import cli
from controller.commands import Register


class Command(NamedTuple):
    """A command that runs, with its parser."""

    path: tuple[str, ...]
    parser: argparse.ArgumentParser
    register: Register
    groups: tuple[argparse.ArgumentParser, ...]
    """The parsers above it."""

    @property
    def name(self) -> str:
        return " ".join(self.path)

    def codes(self) -> set[int]:
        """The exit codes in its help, in that of its group, and in that of `holecard`."""
        texts = (one.epilog or "" for one in (self.parser, *self.groups))
        return {code for text in (*texts, cli.EXAMPLES) for code in _codes(text)}


def every_command() -> Iterator[Command]:
    """All commands: ours, and those of the entry points."""
    points = importlib.metadata.entry_points(group=cli.GROUP)
    names = [one.name for one in cli.COMMANDS] + [point.name for point in points]
    for name in dict.fromkeys(names):
        register = cli.find(name).load()
        root = argparse.ArgumentParser(prog="holecard")
        subparsers = root.add_subparsers()
        register(subparsers)
        yield from _below((name,), subparsers.choices[name], register, ())


def _below(
    path: tuple[str, ...],
    parser: argparse.ArgumentParser,
    register: Register,
    groups: tuple[argparse.ArgumentParser, ...],
) -> Iterator[Command]:
    if parser.get_default("func") is not None:
        yield Command(path, parser, register, groups)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from _below((*path, name), below, register, (parser, *groups))


def required(parser: argparse.ArgumentParser, value: str = "x") -> list[str]:
    """The fewest words with which a command can be parsed."""
    words: list[str] = []
    for action in parser._actions:
        if not action.required or action.nargs == "*":
            continue
        text = next(iter(action.choices)) if action.choices else value
        words += [*action.option_strings[:1], str(text)]
    return words


def _codes(text: str) -> Iterator[int]:
    """The numbers in a table of exit codes."""
    for table in re.findall(r"[Ee]xit codes[^:]*:(.*?)(?:\.\s|\.$|$)", text, re.DOTALL):
        yield from (int(code) for code in re.findall(r"(?:^|[;\s])\s*(\d{1,3}) ", table))


KEYS, PEOPLE = ("--keys", "run/keys"), ("--file", "run/people.json", "--keys", "run/keys")
TWO = ("--by", "Ann Lee", "--and", "Bo Chan")
GOOD: Final[dict[str, tuple[str, ...]]] = {
    "config check": ("table.toml", "game.toml"),
    "config show": ("game.toml",),
    "procedure": ("game.toml",),
    "script run": ("rounds.json", "--record", "record", "--keys", "all-keys"),
    "par": ("game.toml", "--rounds", "50", "--policy", "strategy.toml"),
    "devices init": KEYS,
    "devices ports": (),
    "devices pair": ("ports/shoe", *KEYS, *TWO),
    "devices list": KEYS,
    "devices show": ("EW-1", *KEYS),
    "devices forget": ("EW-1", *KEYS, *TWO),
    "keys new": ("table", "--dir", "new-keys"),
    "keys show": ("--dir", "all-keys"),
    "audit verify": (
        *("record", "--table-key", "all-keys/table.pub", "--checkpoint", "a.note"),
        *("--witness-key", "all-keys/witness.pub", "--jobs", "1"),
    ),
    "audit show": ("record", "--seq", "1-9", "--index", "record/index.db"),
    "audit tail": ("record",),
    "audit open": ("record", "--round", "1", "--keys", "all-keys"),
    "audit accept-tail": ("record", "--keys", "all-keys", "--by", "Ann", "--second", "Bo"),
    "audit sql": ("record", "SELECT * FROM rounds", "--index", "record/index.db"),
    "audit rebuild-index": ("record",),
    "audit export": ("record", "--all", "--out", "out.zip"),
    "audit check-case": ("case",),
    "audit prove": ("record", "--seq", "3", "--checkpoint", "a.note", "--out", "out.json"),
    "audit check-proof": ("proof.json", "--table-key", "all-keys/table.pub"),
    "audit cosign": ("record", "--keys", "all-keys", "--archive", "archive", "--out", "b.note"),
    "audit witnessed": ("record", "a.note", "--witness-key", "all-keys/witness.pub"),
    "audit retire": (
        *("record", "--before", "2030-01-01", "--out", "old.zip", "--keys", "all-keys"),
        *("--by", "Ann", "--and", "Bo"),
    ),
    "review": ("record", "--port", "0", "--texts", "texts.toml"),
    "people init": PEOPLE,
    "people list": PEOPLE,
    "people add": ("X-1", "--name", "Cy", "--roles", "dealer", *TWO, *PEOPLE),
    "people disable": ("D-17", *TWO, *PEOPLE),
    "people enable": ("D-17", *TWO, *PEOPLE),
    "people reset": ("D-17", *TWO, *PEOPLE),
    "people roles": ("D-17", "dealer", *TWO, *PEOPLE),
    "serve": ("table.toml", "--allow-root"),
    "doctor": ("table.toml", "--release", "a.note", "--release-key", "all-keys/witness.pub"),
    "bench": ("--section", "link"),
    "conform": ("--profile", "shoe", "--port", "ports/shoe", "--keys", "run/keys"),
    "demo": ("--rounds", "1", "--dir", "demo", "--game", "classic"),
    "sim shoe": ("--dir", "device"),
    "sim shuffler": ("--dir", "device"),
    "sim station": ("--dir", "device", "--seat", "1"),
    "sim do": ("control.sock", "describe"),
    "sim breaks": (),
}
"""Words with which each command does its work, in a folder that a test has filled."""
