"""The mistakes a user can mend: where, what, and what is allowed instead."""


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
