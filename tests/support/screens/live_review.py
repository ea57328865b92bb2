"""The review of a running table in a browser."""

from __future__ import annotations

import re
from typing import Final

from tests.support.screens.at_pages import AtPages, Tab
from tests.support.table.simulated.house import PINS

BASE: Final = "/review"


async def comes_in(pages: AtPages) -> Tab:
    tab = pages.tab()
    form = await tab.ask("GET", f"{BASE}/enter")
    found = _SECRET.search(form.text)
    assert found is not None
    tab.secret = found[1]
    entered = await tab.post(f"{BASE}/enter", badge="S-1", pin=PINS["S-1"])
    assert entered.headers["location"] == f"{BASE}/rounds", entered.text
    return tab


_SECRET: Final = re.compile(r'name="secret" value="([\w-]+)"')
