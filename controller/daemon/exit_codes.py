"""Exit codes of `holecard serve`, and the errors of an exception group that it reports."""

from __future__ import annotations

from typing import Final

from controller.audit.errors import RecordProblem
from controller.errors import UsageProblem

EXIT_OK: Final = 0
EXIT_FAULT: Final = 70
"""EX_SOFTWARE: a fault of this program."""
EXIT_RECORD: Final = 74
"""EX_IOERR: the record cannot be written, or did not close in time."""
EXIT_AT_ONCE: Final = 130
"""Ended at once by a second signal."""


def known(group: BaseExceptionGroup[BaseException]) -> UsageProblem | RecordProblem | None:
    """The error to report to the user, if all exceptions of the group are such errors."""
    found = list(leaves(group))
    theirs = [one for one in found if isinstance(one, UsageProblem | RecordProblem)]
    return theirs[0] if theirs and len(theirs) == len(found) else None


def leaves(problem: BaseException) -> list[BaseException]:
    """All exceptions of a group, in order."""
    if not isinstance(problem, BaseExceptionGroup):
        return [problem]
    return [leaf for one in problem.exceptions for leaf in leaves(one)]
