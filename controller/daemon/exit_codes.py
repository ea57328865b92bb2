"""With which code `holecard serve` ends. What is wrong with files, ports and records the command
itself tells; here is what only a served table can end with.
"""

from __future__ import annotations

from typing import Final

from controller.audit.errors import RecordProblem
from controller.errors import UsageProblem

EXIT_OK: Final = 0
EXIT_FAULT: Final = 70
"""EX_SOFTWARE: a fault of ours."""
EXIT_RECORD: Final = 74
"""EX_IOERR: the record cannot be written, or was not closed in time."""
EXIT_AT_ONCE: Final = 130
"""Somebody did not want to wait."""


def known(group: BaseExceptionGroup[BaseException]) -> UsageProblem | RecordProblem | None:
    """What ended it, where that has words for people. Whatever else went wrong beside it is a
    fault of ours, and comes first."""
    found = list(leaves(group))
    theirs = [one for one in found if isinstance(one, UsageProblem | RecordProblem)]
    return theirs[0] if theirs and len(theirs) == len(found) else None


def leaves(problem: BaseException) -> list[BaseException]:
    """All that a group holds, in its order."""
    if not isinstance(problem, BaseExceptionGroup):
        return [problem]
    return [leaf for one in problem.exceptions for leaf in leaves(one)]
