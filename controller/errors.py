"""Errors that a command reports to its user, the exit codes, and values as messages quote them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

EXIT_NO: Final = 1
"""The answer is no, or a record is damaged or is not what the rules make of it."""
EXIT_USAGE: Final = 2
"""Wrong arguments, a wrong file, or a place without the right record."""
EXIT_BROKEN: Final = 70
"""EX_SOFTWARE: the installation is at fault, not the user."""
EXIT_OUTPUT: Final = 74
"""EX_IOERR: the output or a record cannot be written."""
EXIT_INTERRUPTED: Final = 130
"""As a shell reports SIGINT."""
EXIT_PIPE: Final = 141
"""As a shell reports SIGPIPE."""


class CommandError(Exception):
    """An error that ends a command with a message on stderr and an exit code."""

    exit_code: ClassVar[int] = EXIT_NO

    @property
    def message(self) -> str:
        """The text that is printed."""
        return str(self)


class UsageProblem(CommandError):
    """A user's mistake: where it is, what is wrong, and what is allowed.

    The fields are read-only and are the exception's `args`, so that a problem found in a worker
    process survives pickling.
    """

    exit_code = EXIT_USAGE

    def __init__(self, where: str, what: str, allowed: str | None = None) -> None:
        super().__init__(where, what, allowed)
        self._where = where
        self._what = what
        self._allowed = allowed

    @property
    def where(self) -> str:
        """The file and key, the option or the argument that is wrong."""
        return self._where

    @property
    def what(self) -> str:
        """The error."""
        return self._what

    @property
    def allowed(self) -> str | None:
        """The allowed values, or None."""
        return self._allowed

    def __str__(self) -> str:
        text = f"{self._where}: {self._what}"
        return text if self._allowed is None else f"{text}; allowed: {self._allowed}"


MAX_SHOWN = 40


class UsageProblems(UsageProblem):
    """All errors of one file or of merged layers, one line each."""

    def __init__(self, problems: Iterable[UsageProblem]) -> None:
        self.problems = tuple(problems)
        first = self.problems[0]
        super().__init__(first.where, first.what, first.allowed)
        self.args = (self.problems,)  # for pickling, when a worker process raises it

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


def each(problem: UsageProblem) -> tuple[UsageProblem, ...]:
    return problem.problems if isinstance(problem, UsageProblems) else (problem,)


def refuse(problems: list[UsageProblem]) -> None:
    """Raise the problems, if there are any."""
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise UsageProblems(problems)


def printable(text: object) -> str:
    """Returns a name or key in one printable line, escaped if necessary."""
    line = str(text)
    if line.isprintable():
        return line
    return line.encode("unicode_escape", "backslashreplace").decode("ascii")


def shown(value: object) -> str:
    """Returns a value for an error message: short, without very long numbers."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int():
            return str(value) if value.bit_length() <= 64 else "a number of over 19 digits"
        case str():
            return repr(value if len(value) <= MAX_SHOWN else value[:MAX_SHOWN] + "...")
        case float():
            return repr(value)
        case dict():
            return "a table"
        case list() | tuple():
            return "a list"
        case _:
            return printable(value)[:MAX_SHOWN]
