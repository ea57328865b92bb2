"""Errors of opening, reading and writing a record: where, what is wrong, how to fix it."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Final

from controller.errors import EXIT_OUTPUT, EXIT_USAGE, CommandError


class RecordProblem(CommandError):
    """Base class: `where` names the file or directory, `todo` says how to fix it."""

    def __init__(self, where: Path | str, what: str, todo: str) -> None:
        super().__init__(str(where), what, todo)
        self.where = str(where)
        self.what = what
        self.todo = todo

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.todo}"

    @property
    def message(self) -> str:
        """One printable line, for any name of the directory."""
        return str(self).replace("\n", "\\n")


class NoRecord(RecordProblem):
    """The directory contains no record, or something else."""

    exit_code = EXIT_USAGE


class InUse(RecordProblem):
    """Another process holds the lock."""

    exit_code = EXIT_USAGE


class OtherTable(RecordProblem):
    """The record of another table."""

    exit_code = EXIT_USAGE


class RecordDamaged(RecordProblem):
    """The bytes are not the ones that were written."""


class RecordsMissing(RecordProblem):
    """Acknowledged records are missing or unreadable."""


class UnexplainedTail(RecordProblem):
    """Trailing bytes that no power loss explains."""


class CannotWrite(RecordProblem):
    """The operating system denies access, or the disk fails."""

    exit_code = EXIT_USAGE


class DiskFails(CannotWrite):
    """The disk is full, broken or mounted read-only: the same start may succeed later."""

    exit_code = EXIT_OUTPUT


_DISK: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS})
"""Errors of a disk, not of the user or of permissions."""


def disk_fails(where: Path | str, problem: OSError) -> DiskFails | None:
    """The error for an OSError of a disk that cannot be written; None for all others."""
    if problem.errno not in _DISK:
        return None
    what = f"cannot be written: {problem.strerror}"
    return DiskFails(where, what, "check the disk, and have it writable with free space")


def cannot_read(where: Path | str, problem: OSError) -> CannotWrite:
    """The error for an OSError while reading."""
    return CannotWrite(where, f"cannot be read: {problem.strerror or problem}", "mend that")


class RetryLater(RecordProblem):
    """The append was rejected and may be retried: nothing was written, nothing is lost."""

    exit_code = EXIT_OUTPUT


class DiskFull(RetryLater):
    """No disk space for the next segment."""


class WriterBusy(RetryLater):
    """The queue of the log writer is full."""


class LogFailed(RecordProblem):
    """The log accepts no append until the record is reopened. `first` is the first cause."""

    exit_code = EXIT_OUTPUT

    def __init__(self, where: Path | str, first: BaseException) -> None:
        super().__init__(
            where,
            f"nothing is recorded any more since: {first}",
            "hold the table, mend the cause, start the controller again",
        )
        self.first = first


class AppendTimeout(LogFailed):
    """The disk did not answer before the timeout. Whether the entries are durable is unknown until
    the record has been reopened; until then neither outcome may be assumed."""


REBUILD = "holecard audit rebuild-index"


class IndexProblem(RecordProblem):
    """The index of a record cannot be used. The record itself is unaffected."""

    remake = False
    """Whether the index may be rebuilt automatically, without an investigation."""


class IndexOutdated(IndexProblem):
    """Built by another version, or it contains frames that the record no longer has."""

    remake = True


class IndexDamaged(IndexProblem):
    """The bytes of the index are corrupt."""

    remake = True


class IndexOfOther(IndexProblem):
    """The index of another record, or not an index."""

    exit_code = EXIT_USAGE


class IndexAhead(IndexProblem):
    """The index contains records that this record does not have."""


class IndexFileProblem(IndexProblem):
    """The index file cannot be created, read or written at this path."""

    exit_code = EXIT_USAGE


class IndexDiskFull(IndexFileProblem):
    """No disk space for the index."""

    exit_code = EXIT_OUTPUT


class IndexBusy(IndexProblem):
    """Timeout: another process is writing the index."""

    exit_code = EXIT_USAGE


class CannotProve(RecordProblem):
    """The requested proof cannot be made."""


class NotVoided(RecordProblem):
    """The round was not voided, so its hole card may not be opened."""


class WitnessProblem(RecordProblem):
    """The witness refuses to cosign."""


class NothingSigned(WitnessProblem):
    """The record has no checkpoint yet."""
