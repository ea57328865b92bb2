"""What the commands about records have in common: arguments, exit codes, how they speak."""

from __future__ import annotations

import argparse
import errno
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeAlias

from controller.audit.files import read_file
from controller.audit.format.notes import KeyKind, NoteProblem, VerifierKey, table_name
from controller.audit.keys import BadKeyText, read_table
from controller.audit.proofs import MOST_BYTES, untold
from controller.errors import UsageProblem, printable

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
CODES: Final = """\
Exit codes: 0 done, or yes; 1 the answer is no, or a record is not as it must be; 2 wrong
arguments, a file that cannot be used, or a place without a record, or in use; 74 the output, a
record or an index cannot be written; 130 interrupted; 141 the reader of the output has gone.
"""
_VKEY: Final = "NAME+8 hex digits+BASE64"
_LIKE_A_KEY: Final = re.compile(r"[A-Za-z0-9+/=]{40}|-----|\s")
_ROUNDS: Final = re.compile(r"([1-9][0-9]{0,17})(?:-([1-9][0-9]{0,17}))?")
_MOST_WORDS: Final = 500


def command(
    subparsers: Subparsers,
    name: str,
    does: str,
    func: Callable[[argparse.Namespace], int],
    examples: str,
) -> argparse.ArgumentParser:
    parser = subparsers.add_parser(
        name,
        help=does,
        description=f"{does[0].upper()}{does[1:]}.",
        epilog=f"{examples}\n{CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(func=func)
    return parser


def path_of(option: str, value: str) -> Path:
    if not value or "\0" in value:
        raise UsageProblem(option, "is no name", "a name")
    return Path(value)


def bytes_of(option: str, value: str) -> bytes:
    file = path_of(option, value)
    try:
        data = read_file(file, MOST_BYTES + 1)
    except OSError as problem:
        reason = (problem.strerror or str(problem)).lower()
        raise UsageProblem(option, f"{printable(file)}: {reason}", "a file") from None
    if len(data) > MOST_BYTES:
        raise UsageProblem(option, f"{printable(file)} is too large", "a smaller file")
    return data


def given_witness(value: str) -> VerifierKey:
    """Given as it is, or in a file. Nothing is repeated of it: it may be the wrong one."""
    text = value
    if _in_file("--witness-key", value):
        with suppress(UnicodeDecodeError):
            text = bytes_of("--witness-key", value).decode()
    key = _parsed(text)
    if key is None:
        what = (
            "is no verifier key" if text == value else f"{printable(value)} holds no verifier key"
        )
        raise UsageProblem("--witness-key", what, f"what witness.pub holds: {_VKEY}")
    if key.kind is not KeyKind.COSIGNATURE:
        raise UsageProblem("--witness-key", "is no key of a witness", "what witness.pub holds")
    return key


def given_table(value: str, origin: Callable[[], str]) -> VerifierKey:
    """Given as it is, or in a file: as a verifier key, or as `holecard keys` has made it, which
    does not know the name of the record that it signs."""
    if not _in_file("--table-key", value):
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
        where = f"--table-key: {printable(value)}"
        raise UsageProblem(where, bad.what, f"a verifier key, or {bad.allowed}") from None
    name = table_name(origin())
    try:
        return VerifierKey(name, public)
    except NoteProblem as problem:
        what = f"no key has the name of this record: {problem.what.partition('; allowed: ')[0]}"
        raise UsageProblem("--table-key", what, "a record as a table makes it") from None


def _in_file(option: str, value: str) -> bool:
    """A verifier key has a + and is no file; whatever else is, must be one. What may be a key by
    itself is not repeated: it may be a private one."""
    if os.path.isfile(value):
        return True
    if "+" in value or "\0" in value:
        return False
    if _LIKE_A_KEY.search(value):
        raise UsageProblem(option, "is neither a file nor a verifier key", f"a file, or {_VKEY}")
    if value and not os.path.exists(value):
        what = f"{printable(value)}: no such file or directory"
        raise UsageProblem(option, what, f"a file, or {_VKEY}")
    return True


def _parsed(text: str) -> VerifierKey | None:
    """What is wrong with it is not said, for that would repeat some of it."""
    try:
        return VerifierKey.parse(text.strip())
    except NoteProblem:
        return None


def text_of(option: str, text: str | None) -> str:
    if text is None:
        return ""
    if not text.strip() or not text.isprintable() or len(text) > _MOST_WORDS:
        raise UsageProblem(option, "is no text", f"a line of 1 to {_MOST_WORDS} characters")
    return text


def words_of(option: str, text: str) -> str:
    """Words of any length that can be written down."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageProblem(option, "is not UTF-8", "text in UTF-8") from None
    return text


def rounds_of(text: str, single: bool = False) -> tuple[int, int]:
    found = _ROUNDS.fullmatch(text)
    first = int(found[1]) if found else 0
    last = int(found[2] or found[1]) if found else 0
    if not 0 < first <= last or (single and first != last):
        allowed = "a number from 1" if single else "N, or N-M with M not less than N"
        raise UsageProblem("--round", f"{text!a} is no round", allowed)
    return first, last


# --- what is shown ----------------------------------------------------------------------------


@contextmanager
def progress() -> Iterator[Callable[[int], None]]:
    """The segment that is read, on stderr, where that is a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield untold
        return
    try:
        yield lambda number: print(f"\rsegment {number} ", end="", file=sys.stderr, flush=True)
    finally:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


@contextmanager
def writing(out: Path) -> Iterator[None]:
    """What the place refuses is the user's to mend; a disk that is full is told by the command."""
    try:
        yield
    except OSError as problem:
        if problem.errno in NO_ROOM:
            raise
        reason = (problem.strerror or str(problem)).lower()
        where = printable(problem.filename or out)
        raise UsageProblem("--out", f"{where}: {reason}", "another place") from None


def print_json(found: object) -> None:
    print(json.dumps(found, indent=2))


def print_bytes(data: bytes) -> None:
    """As they are, whatever the terminal's letters are; nowhere where stdout is closed."""
    if sys.stdout is None:
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def say(text: str) -> None:
    print(f"holecard: {printable(text)}", file=sys.stderr)
