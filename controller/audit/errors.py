"""Why a record cannot be opened, read or written. Each says what is wrong and what to do."""

from __future__ import annotations

from pathlib import Path


class RecordProblem(Exception):
    """The record: where, what is wrong, what to do."""

    def __init__(self, where: Path | str, what: str, todo: str) -> None:
        super().__init__(str(where), what, todo)
        self.where = str(where)
        self.what = what
        self.todo = todo

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.todo}"


class NoRecord(RecordProblem):
    """There is none at this place, or something else is."""


class InUse(RecordProblem):
    """Another process writes it."""


class OtherTable(RecordProblem):
    """It is the record of another table."""


class Damaged(RecordProblem):
    """Its bytes are not what was written."""


class Missing(RecordProblem):
    """Records that were acknowledged are gone, or cannot be read any more."""


class Unexplained(RecordProblem):
    """Bytes past the last record that no loss of power explains."""


class CannotWrite(RecordProblem):
    """The place for it cannot be written or read: rights, disk."""


def unreadable(where: Path | str, problem: OSError) -> CannotWrite:
    """The operating system does not let it be read."""
    return CannotWrite(where, f"cannot be read: {problem.strerror or problem}", "mend that")


class NotNow(RecordProblem):
    """It can be recorded later: nothing was written, nothing is lost."""


class NoRoom(NotNow):
    """The disk has no room for the next segment."""


class Busy(NotNow):
    """Too much waits to be recorded."""


class Failed(RecordProblem):
    """The record takes nothing any more until it is opened anew. `first` is the first cause."""

    def __init__(self, where: Path | str, first: BaseException) -> None:
        super().__init__(
            where,
            f"nothing is recorded any more since: {first}",
            "hold the table, mend the cause, start the controller again",
        )
        self.first = first


class Late(Failed):
    """The disk has not answered in time. What was handed in may stand in the record or not: that is
    seen when it is opened anew. Until then nobody may go on as if it did, or as if it did not."""


REBUILD = "holecard audit rebuild-index"


class IndexProblem(RecordProblem):
    """The index of a record cannot be used. The record itself is what it was."""

    remake = False
    """Whether it may be made anew without asking: nobody has to look into it first."""


class IndexOutdated(IndexProblem):
    """Another version made it, or it holds what is no longer in the record."""

    remake = True


class IndexDamaged(IndexProblem):
    """Its bytes are not what was written."""

    remake = True


class IndexOfOther(IndexProblem):
    """It is the index of another record, or no index at all."""


class IndexAhead(IndexProblem):
    """It has seen records that this record does not have."""


class IndexPlace(IndexProblem):
    """Its file cannot be made, read or written where it is."""


class IndexNoRoom(IndexPlace):
    """The disk has no room for it."""


class IndexBusy(IndexProblem):
    """Somebody else writes it for too long."""


class CannotProve(RecordProblem):
    """There is no such proof."""


class NotVoided(RecordProblem):
    """Nobody opens the hole card of this round."""


class WitnessProblem(RecordProblem):
    """Nothing is countersigned."""


class Unsigned(WitnessProblem):
    """There is no checkpoint yet."""
