"""The modules that a card and a verification pass through, as ARCHITECTURE.md lists them.

After a change, `HOLECARD_WRITE=1 python -m pytest tests/system/test_paths.py` writes the lists.
"""

import os
import re
import textwrap
from pathlib import Path

from controller.cli import main
from controller.procedure.model.state import Step
from tests.support.paths import ROOT, SCRIPT_FILES
from tests.support.table.simulated.serving import run, serving
from tests.support.table.simulated.telling import Told
from tests.support.tracing import Trace, traced

CARD_MODULES, CARD_SWITCHES = 35, 104
VERIFY_MODULES = 35
REPLAYED = ("controller/procedure/", "controller/rules/")
"""The rules that a verification plays again: not counted as its own path."""


PAGE = ROOT / "ARCHITECTURE.md"


def listed(name: str, found: Trace) -> None:
    """Compare a list of the page with what was found, or write it."""
    files = " ".join(file.removesuffix(".py") for file in found.files)
    count = f"{len(found.files)} modules"
    if name == "card":  # those of a verification depend on how its rounds went
        count += f", {found.switches} switches between files"
    block = textwrap.fill(files, 100, break_long_words=False, break_on_hyphens=False)
    block = f"<!-- {name} -->\n{count}:\n\n```\n{block}\n```\n<!-- end -->"
    print(f"{name}: {count}")
    text = PAGE.read_text("utf-8")
    pattern = re.compile(rf"<!-- {name} -->.*?<!-- end -->", re.DOTALL)
    if os.environ.get("HOLECARD_WRITE") == "1":
        PAGE.write_text(pattern.sub(lambda _: block, text), "utf-8")
    else:
        assert block in text, f"{PAGE.name}: the list of {name} is stale: {__doc__}"


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
    listed("card", found)
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
    listed("verify", own)
    assert len(own.files) <= VERIFY_MODULES
