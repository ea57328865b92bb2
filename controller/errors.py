"""The mistakes a user can mend: where, what, and what is allowed instead."""

from __future__ import annotations

from collections.abc import Iterable


class UsageProblem(Exception):
    """A user's mistake. The `holecard` command prints it as one line and exits with 2.

    The fields are set once and only read. They go to `Exception.args` as they are, so
    that a problem found in a worker process arrives whole.
    """

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
        """What is wrong with it."""
        return self._what

    @property
    def allowed(self) -> str | None:
        """What would be right, where that can be said."""
        return self._allowed

    def __str__(self) -> str:
        text = f"{self._where}: {self._what}"
        return text if self._allowed is None else f"{text}; allowed: {self._allowed}"


MOST_SHOWN = 40


class UsageProblems(UsageProblem):
    """All mistakes found in one file or layering, one line each."""

    def __init__(self, problems: Iterable[UsageProblem]) -> None:
        self.problems = tuple(problems)
        first = self.problems[0]
        super().__init__(first.where, first.what, first.allowed)
        self.args = (self.problems,)  # what a worker process hands over

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


def each(problem: UsageProblem) -> tuple[UsageProblem, ...]:
    return problem.problems if isinstance(problem, UsageProblems) else (problem,)


def refuse(problems: list[UsageProblem]) -> None:
    """Raise what was found, if anything was."""
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise UsageProblems(problems)


def printable(text: object) -> str:
    """A name or key in one line, whatever bytes it is made of."""
    line = str(text)
    if line.isprintable():
        return line
    return line.encode("unicode_escape", "backslashreplace").decode("ascii")


def shown(value: object) -> str:
    """A value as a message quotes it: short, and never more digits than people read."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int():
            return str(value) if value.bit_length() <= 64 else "a number of over 19 digits"
        case str():
            return repr(value if len(value) <= MOST_SHOWN else value[:MOST_SHOWN] + "...")
        case float():
            return repr(value)
        case dict():
            return "a table"
        case list() | tuple():
            return "a list"
        case _:
            return printable(value)[:MOST_SHOWN]
