"""What is listed as a problem, in words: irregularities, refusals, what happened to the record."""

from __future__ import annotations

from typing import Final

from controller.audit.index.entries import NOT_UNDERSTOOD
from controller.errors_problems import printable
from controller.procedure.prompts.terms import WHAT

_OTHERS: Final = {
    NOT_UNDERSTOOD: "record not understood",
    "clock": "clock set",
    "tail": "write cut off",
    "unwitnessed": "not witnessed",
}
_WORDS: Final = {what.value: words for what, words in WHAT.items()} | _OTHERS


def problem_words(name: str) -> str:
    """What our words do not have is told as the record has it."""
    return _WORDS.get(name) or printable(name).replace("_", " ")
