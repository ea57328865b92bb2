"""Why a record cannot be opened, read or written. Each says what is wrong and what to do."""

from __future__ import annotations

from pathlib import Path

from controller.errors import EXIT_OUTPUT, EXIT_USAGE, CommandError


class RecordProblem(CommandError):
    """The record: where, what is wrong, what to do."""

    def __init__(self, where: Path | str, what: str, todo: str) -> None:
        super().__init__(str(where), what, todo)
        self.where = str(where)
        self.what = what
        self.todo = todo

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.todo}"

    @property
    def message(self) -> str:
        """One line, whatever characters the name of the directory has."""
        return str(self).replace("\n", "\\n")


class NoRecord(RecordProblem):
    """There is none at this place, or something else is."""

    exit_code = EXIT_USAGE


class InUse(RecordProblem):
    """Another process writes it."""

    exit_code = EXIT_USAGE


class OtherTable(RecordProblem):
    """It is the record of another table."""

    exit_code = EXIT_USAGE


class RecordDamaged(RecordProblem):
    """Its bytes are not what was written."""


class RecordsMissing(RecordProblem):
    """Records that were acknowledged are gone, or cannot be read any more."""


class UnexplainedTail(RecordProblem):
    """Bytes past the last record that no loss of power explains."""


class CannotWrite(RecordProblem):
    """The place for it cannot be written or read: rights, disk."""

    exit_code = EXIT_USAGE


def cannot_read(where: Path | str, problem: OSError) -> CannotWrite:
    """The operating system does not let it be read."""
    return CannotWrite(where, f"cannot be read: {problem.strerror or problem}", "mend that")


class RetryLater(RecordProblem):
    """It can be recorded later: nothing was written, nothing is lost."""

    exit_code = EXIT_OUTPUT


class DiskFull(RetryLater):
    """The disk has no room for the next segment."""


class WriterBusy(RetryLater):
    """Too much waits to be recorded."""


class LogFailed(RecordProblem):
    """The record takes nothing any more until it is opened anew. `first` is the first cause."""

    exit_code = EXIT_OUTPUT

    def __init__(self, where: Path | str, first: BaseException) -> None:
        super().__init__(
            where,
            f"nothing is recorded any more since: {first}",
            "hold the table, mend the cause, start the controller again",
        )
        self.first = first


class AppendTimeout(LogFailed):
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

    exit_code = EXIT_USAGE


class IndexAhead(IndexProblem):
    """It has seen records that this record does not have."""


class IndexFileProblem(IndexProblem):
    """Its file cannot be made, read or written where it is."""

    exit_code = EXIT_USAGE


class IndexDiskFull(IndexFileProblem):
    """The disk has no room for it."""

    exit_code = EXIT_OUTPUT


class IndexBusy(IndexProblem):
    """Somebody else writes it for too long."""

    exit_code = EXIT_USAGE


class CannotProve(RecordProblem):
    """There is no such proof."""


class NotVoided(RecordProblem):
    """Nobody opens the hole card of this round."""


class WitnessProblem(RecordProblem):
    """Nothing is countersigned."""


class NothingSigned(WitnessProblem):
    """There is no checkpoint yet."""
