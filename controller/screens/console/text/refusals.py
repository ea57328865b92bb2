"""Why the procedure refuses something, in the house's words.

The texts are those of the procedure's rows, which the record keeps as they are. A house may have
its own.
"""

from __future__ import annotations

import re
from typing import Final

from controller.api.contract.messages import Answer
from controller.screens.common.texts import Texts
from controller.screens.console.text.terms import either

TERMS: Final = {
    "bet": "console.bet_name",
    "offered": "console.bet_name",
    "legal": "console.choice",
    "role": "console.role",
    "allowed": "console.role",
}
"""Where the words stand of what a field names. The other fields are numbers and amounts."""
NONE: Final = {"no decision": "console.term.no_decision", "nothing": "console.term.nothing"}
BETWEEN: Final = re.compile(", | or ")


def refused(answer: Answer, texts: Texts) -> str:
    """`answer`: to an event that was not taken."""
    said = {field: _said(field, value, texts) for field, value in answer.detail.items()}
    return texts(f"console.refuse.{refusal_of(answer.code)}", **said)


def refusal_of(code: str) -> str:
    """What the rows of one act have in common, at whatever step each of them stands."""
    return code.partition("_at_")[0]


def _said(field: str, value: str, texts: Texts) -> str:
    if value in NONE:
        return texts(NONE[value])
    if field not in TERMS:
        return value
    return either(texts, [texts(f"{TERMS[field]}.{one}") for one in BETWEEN.split(value)])
