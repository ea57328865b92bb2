"""The vocabulary in FORMAT.md is that of the code, and complete."""

import pytest

from controller import record_vocabulary
from controller.audit.replay import EFFECTS
from controller.procedure.engine import EVENTS
from controller.record_vocabulary import NoMeaning, main, vocabulary
from controller.rules.options import Options


def test_the_page_is_fresh() -> None:
    assert main(["--check"]) == 0


def test_every_event_and_effect_has_a_line() -> None:
    lines = vocabulary().splitlines()
    for kind in (*EVENTS, *EFFECTS):
        (line,) = [one for one in lines if one.startswith(f"| `{kind.__name__}` |")]
        fields = [name for name in kind.__struct_encode_fields__ if name != "actor"]
        assert all(f"`{name}` (" in line for name in fields), line


def test_every_group_of_options_is_described() -> None:
    text = vocabulary()
    assert all(f"`{name}" in text for name in Options.__struct_fields__)


def test_a_field_without_a_meaning_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(record_vocabulary.COMMON, "seat")
    with pytest.raises(NoMeaning, match="seat has no docstring"):
        vocabulary()
