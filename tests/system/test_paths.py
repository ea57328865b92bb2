"""How many modules a card and a verification pass through.

`python -m pytest -s tests/system/test_paths.py` prints the lists that ARCHITECTURE.md shows.
"""

from pathlib import Path

from controller.cli import main
from controller.procedure.model.state import Step
from tests.support.paths import SCRIPT_FILES
from tests.support.table.simulated.serving import run, serving
from tests.support.table.simulated.telling import Told
from tests.support.tracing import Trace, traced

CARD_MODULES, CARD_SWITCHES = 68, 240
VERIFY_MODULES = 35
REPLAYED = ("controller/procedure/", "controller/rules/")
"""The rules that a verification plays again: not counted as its own path."""


def shown(name: str, found: Trace) -> None:
    print(f"{name}: {len(found.files)} modules, {found.switches} switches between files")
    for file in found.files:
        print(f"  {file}")


def test_a_card(tmp_path: Path) -> None:
    """From the bytes at the shoe's port to the prompt and back to the acknowledgement."""
    traces: list[Trace] = []

    async def deal() -> None:
        async with serving(tmp_path, "classic") as one:
            table = Told(one.room, one.table, one.robot)
            await table.to(lambda s: s.step is Step.DEALING and s.dealt == 1)
            with traced() as trace:
                await table.draws()
            traces.append(trace)

    run(deal())
    found = traces[0].there_and_back("controller/table/intake/")
    shown("card", found)
    assert len(found.files) <= CARD_MODULES
    assert found.switches <= CARD_SWITCHES


def test_a_verification(tmp_path: Path) -> None:
    """`holecard audit verify` of a record, from the arguments to the verdict."""
    record = str(tmp_path / "record")
    assert main(["script", "run", str(SCRIPT_FILES / "examples.json"), "--record", record]) == 0
    assert main(["audit", "verify", record]) == 0  # loads the modules
    with traced() as found:
        assert main(["audit", "verify", record]) == 0
    own = found.without(REPLAYED)
    shown("verify", own)
    assert len(own.files) <= VERIFY_MODULES
