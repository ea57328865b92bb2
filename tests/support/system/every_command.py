"""Every command and subcommand of `holecard`, found from the parsers themselves."""

import argparse
import importlib.metadata
import re
from collections.abc import Iterator
from typing import NamedTuple

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
