"""A whole table that does not do what it should: neither the user's mistake nor a wrong answer."""

from __future__ import annotations

from typing import Final

from hil.table.robots.api_client import ApiProblem, Unreachable
from hil.table.robots.robot import Stuck
from hil.table.setup.daemon import DidNotServe

FAULTS: Final = (ApiProblem, DidNotServe, Stuck, TimeoutError, Unreachable)


_BROKEN: Final = 70
_ITS_OWN: Final = (1, 2)
"""Codes of a daemon that does not begin: the record is damaged, or something of the house is not in
order. They are the same for whoever starts it."""


def code_of(problem: BaseException) -> int:
    """What a command ends with."""
    if isinstance(problem, DidNotServe) and problem.code in _ITS_OWN:
        return problem.code
    return _BROKEN


def words_of(problem: BaseException) -> str:
    """What has failed, in a line or more."""
    said = str(problem) or "nothing came of it in time"
    return f"the table has failed: {type(problem).__name__}: {said}"
