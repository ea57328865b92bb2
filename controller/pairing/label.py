"""The code of a device's label and its fingerprint, given as options or typed."""

from __future__ import annotations

import getpass
import sys
from typing import Final

from controller import terminal
from controller.errors import UsageProblem
from controller.terminal import PromptCancelled, echo_restored, input_line
from firmware_protocol.messages import BadLabelCode
from firmware_protocol.tablelink import FINGERPRINT_SIZE, read_label

_MAX_TRIES: Final = 3
"""For typing the code; typing errors are found here and never reach the device."""
_LABEL: Final = "the 36 digits that are printed under the device's seal"


def given_code(option: str | None) -> bytes | None:
    """The code of --label, or None if it is to be asked for."""
    if option is None and not terminal.at_terminal():
        raise UsageProblem("--label", "is missing", "CODE, or - to read it from standard input")
    if option is None or (
        option == "-" and terminal.at_terminal()
    ):  # typed, so it is not to be shown
        return None
    try:
        return read_label(input_line() if option == "-" else option)
    except BadLabelCode as problem:
        raise UsageProblem("--label", str(problem), _LABEL) from None


def ask_code() -> bytes:
    """Ask for the code without echo, up to three times. Raises PromptCancelled."""
    for _ in range(_MAX_TRIES):
        try:
            with echo_restored():
                typed = getpass.getpass("Code of the label (not shown): ")
            return read_label(typed)
        except (BadLabelCode, UnicodeDecodeError) as problem:
            what = problem if isinstance(problem, BadLabelCode) else "that is no text"
            print(f"{what}; try again", file=sys.stderr)
        except EOFError:
            raise PromptCancelled from None
    what = f"no code in {_MAX_TRIES} tries; the device has not been asked"
    raise UsageProblem("label", what, _LABEL)


def given_fingerprint(option: str | None) -> bytes | None:
    """The fingerprint of --fingerprint. Case, blanks and dashes are ignored."""
    if option is None:
        return None
    try:
        raw = bytes.fromhex("".join(option.split()).replace("-", ""))
    except ValueError:
        raw = b""
    if len(raw) != FINGERPRINT_SIZE:
        raise UsageProblem(
            "--fingerprint", f"{option!r} is none", f"{2 * FINGERPRINT_SIZE} digits 0 to 9, A to F"
        )
    return raw
