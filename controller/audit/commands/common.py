"""Arguments and progress lines that several commands about records share."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import date
from typing import TYPE_CHECKING, Final, TypeVar

from controller.audit.files import read_file
from controller.audit.format.notes import KeyKind, NoteProblem, VerifierKey, table_name
from controller.audit.keys import BadKeyText, read_table
from controller.audit.proofs import MAX_BYTES
from controller.commands import path_of, reason
from controller.errors import UsageProblem, printable

if TYPE_CHECKING:
    from controller.audit.index import IndexProgress

_VKEY: Final = "NAME+8 hex digits+BASE64"
_LIKE_A_KEY: Final = re.compile(r"[A-Za-z0-9+/=]{40}|-----|\s")
_ROUNDS: Final = re.compile(r"([1-9][0-9]{0,17})(?:-([1-9][0-9]{0,17}))?")
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_Step = TypeVar("_Step")


def bytes_of(option: str, value: str, limit: int = MAX_BYTES) -> bytes:
    """The content of a file. Raises UsageProblem."""
    file = path_of(option, value)
    try:
        data = read_file(file, limit + 1)
    except OSError as problem:
        raise UsageProblem(option, f"{printable(file)}: {reason(problem)}", "a file") from None
    if len(data) > limit:
        raise UsageProblem(option, f"{printable(file)} is too large", "a smaller file")
    return data


def rounds_of(text: str, single: bool = False) -> tuple[int, int]:
    """The first and the last round of N or N-M. Raises UsageProblem."""
    found = _ROUNDS.fullmatch(text)
    first = int(found[1]) if found else 0
    last = int(found[2] or found[1]) if found else 0
    if not 0 < first <= last or (single and first != last):
        allowed = "a number from 1" if single else "N, or N-M with M not less than N"
        raise UsageProblem("--round", f"{text!a} is no round", allowed)
    return first, last


def day_of(option: str, text: str, allowed: str = "YYYY-MM-DD") -> date:
    """A gaming day. Raises UsageProblem."""
    try:
        if not _DAY.fullmatch(text):
            raise ValueError(text)
        return date.fromisoformat(text)
    except ValueError:
        raise UsageProblem(option, f"{text!a} is no day", allowed) from None


# --- keys -------------------------------------------------------------------------------------


def witness_key_of(value: str) -> VerifierKey:
    """A witness's verifier key, or the file that contains it."""
    key = _verifier_key("--witness-key", value, "witness.pub")
    if key.kind is not KeyKind.COSIGNATURE:
        raise UsageProblem("--witness-key", "is not a witness's key", "the content of witness.pub")
    return key


def release_key_of(value: str) -> VerifierKey:
    """The verifier key of releases, or the file that contains it."""
    key = _verifier_key("--release-key", value, "release.pub")
    if key.kind is not KeyKind.ED25519:
        raise UsageProblem("--release-key", "is a witness's key", "the content of release.pub")
    return key


def _verifier_key(option: str, value: str, file: str) -> VerifierKey:
    """A verifier key, or the file that contains it. The key is not quoted in errors."""
    text = value
    if _is_file(option, value):
        with suppress(UnicodeDecodeError):
            text = bytes_of(option, value).decode()
    key = _parsed(text)
    if key is None:
        raise UsageProblem(
            option,
            "is no verifier key"
            if text == value
            else f"{printable(value)} contains no verifier key",
            f"the content of {file}: {_VKEY}",
        )
    return key


def table_key_of(value: str, origin: Callable[[], str]) -> VerifierKey:
    """A table's verifier key, or a file with it.

    A file may also be table.pub from `holecard keys`, which has no record name: then the name is
    that of `origin()`. Raises UsageProblem.
    """
    if not _is_file("--table-key", value):
        key = _parsed(value)
        if key is None:
            raise UsageProblem("--table-key", "is no verifier key", f"{_VKEY}, or a file with it")
        return key
    data = bytes_of("--table-key", value)
    with suppress(UnicodeDecodeError):
        found = _parsed(data.decode())
        if found is not None:
            return found
    try:
        public = read_table(data)
    except BadKeyText as bad:
        raise UsageProblem(
            f"--table-key: {printable(value)}", bad.what, f"a verifier key, or {bad.allowed}"
        ) from None
    name = table_name(origin())
    try:
        return VerifierKey(name, public)
    except NoteProblem as problem:
        raise UsageProblem(
            "--table-key",
            f"no key has the name of this record: {problem.what.partition('; allowed: ')[0]}",
            "a record as a table makes it",
        ) from None


def _is_file(option: str, value: str) -> bool:
    """Returns whether `value` names a file. Raises UsageProblem if it is no key either.

    A verifier key contains a +. A value that looks like a key is not quoted in the error: it may
    be a private key.
    """
    if os.path.isfile(value):
        return True
    if "+" in value or "\0" in value:
        return False
    if _LIKE_A_KEY.search(value):
        raise UsageProblem(option, "is neither a file nor a verifier key", f"a file, or {_VKEY}")
    if value and not os.path.exists(value):
        raise UsageProblem(
            option, f"{printable(value)}: no such file or directory", f"a file, or {_VKEY}"
        )
    return True


def _parsed(text: str) -> VerifierKey | None:
    """The key, or None if it is invalid: the reason would quote a part of it."""
    try:
        return VerifierKey.parse(text.strip())
    except NoteProblem:
        return None


# --- progress ---------------------------------------------------------------------------------


def segment_progress() -> AbstractContextManager[Callable[[int], None]]:
    """Print the number of the segment that is being read."""
    return _progress("segment {}".format)


def index_progress() -> AbstractContextManager[Callable[[IndexProgress], None]]:
    """Print how many records have been indexed."""
    return _progress(
        lambda step: f"index: segment {step.segment} of {step.segments}, {step.records:,} records"
    )


@contextmanager
def _progress(text: Callable[[_Step], str]) -> Iterator[Callable[[_Step], None]]:
    """A line on stderr that is overwritten at each step; nothing if stderr is no terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda step: None
        return
    try:
        yield lambda step: print(f"\r{text(step)} ", end="", file=sys.stderr, flush=True)
    finally:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
