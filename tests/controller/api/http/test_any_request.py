"""Whatever is sent is answered as the document says, and never by a fault of ours."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from controller.api.http.routes import PREFIX, ROUTES
from controller.procedure.model.state import Step
from controller.table.loop.acts import NAMES
from hil.table.robots.api_client import bearer
from tests.support.api.at_api import FIRST, SECOND, at_api, run
from tests.support.api.deeds import FIELDS
from tests.support.api.document import DOCUMENT, operation
from tests.support.api.fits import Schemas

PATHS = [PREFIX + call.path for call in ROUTES if call.method == "POST"]
scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.floats()
values = scalars | st.lists(scalars, max_size=2) | st.dictionaries(st.text(max_size=4), scalars)
names = st.sampled_from(
    [*NAMES, "Go", "CardDrawn", "DeviceAdopted", "ShuffleAgain", "HoleRevealed"]
) | st.text(max_size=5)
fields = st.sampled_from(
    ["seat", "hand", "amount", "card", "way", "reason", "bet", "round", "serial", "skip", "actor"]
)


@st.composite
def acts(draw: st.DrawFn) -> dict[str, Any]:
    """One that may be right, with something of it otherwise."""
    name = draw(names)
    act: dict[str, Any] = {"type": name, **FIELDS.get(name, {})}
    if draw(st.booleans()):
        act[draw(fields)] = draw(values)
    return act


@st.composite
def bodies(draw: st.DrawFn) -> tuple[str, Any]:
    path = draw(st.sampled_from(PATHS)).replace("{serial}", draw(serials))
    if path.endswith("/acts"):
        return path, draw(acts() | values)
    if path.endswith("/authorisations"):
        who = draw(st.sampled_from([FIRST, SECOND]))
        return path, {
            "act": draw(acts() | values),
            "badge": who.badge,
            "pin": who.pin,
            "second": draw(st.booleans()),
        }
    return path, draw(st.dictionaries(st.sampled_from(["name", "badge", "pin", "skip"]), values))


serials = st.sampled_from(["SH-1", "SF-1", "SH-9", "%00", "..", "é"])


@settings(
    max_examples=6,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(sent=st.lists(bodies(), min_size=30, max_size=60), step=st.sampled_from(Step))
def test_whatever_is_sent(sent: list[tuple[str, Any]], step: Step) -> None:
    schemas = Schemas(DOCUMENT)

    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with at_api(Path(folder)) as at:
                screen = await at.dealing()
                robot = await at.robot(screen)
                await robot.play(lambda s: s.state.step is step or s.state.round == 1)
                http, headers = at.client.http, bearer(screen.token)
                for path, body in sent:
                    content = json.dumps(body).encode()
                    headers["Content-Type"] = "application/json"
                    response = await http.post(path, content=content, headers=headers)
                    status = response.status_code
                    if status == 404 and path.startswith(f"{PREFIX}/devices/.."):
                        continue  # a client makes another path of it
                    said = operation("POST", str(response.request.url.path))["responses"]
                    content_of = said[str(status)]["content"]["application/json"]
                    assert status != 500, (path, body, response.text)
                    faults = list(schemas.faults(content_of["schema"], response.json()))
                    assert faults == [], (path, body)

    run(main())
