"""What a command said: its exit code and what it printed, compared as one."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple


class Said(NamedTuple):
    """The fixture `said` makes it of an exit code: said(main(["par", "classic"]))."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What was done, as `--json` prints it."""
        assert self.code == 0, self
        return json.loads(self.out)

    def told(self, *words: str) -> bool:
        """It was done, and these words are in its output."""
        return self.code == 0 and all(each in self.out for each in words)

    def done(self, err: str = "") -> bool:
        """It was done, and this was warned of."""
        return (self.code, self.err) == (0, err)

    def refused(self, *words: str) -> bool:
        """It was a mistake of the user, nothing was printed, and the error has these words."""
        return self.out == "" and self.failed(2, *words)

    def mistaken(self, *words: str) -> bool:
        """It was refused, and the error is one line."""
        return self.refused(*words) and self.err.count("\n") == 1

    def failed(self, code: int, *words: str) -> bool:
        """It ended with this exit code, and the error has these words."""
        return self.code == code and all(each in self.err for each in words)


Says = Callable[[int], Said]
