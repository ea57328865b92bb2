"""The document of the API says what the API does: each path and method, each answer, each act.

Whatever it lets a client send is answered as it says, and never by a fault of ours.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.openapi import from_url
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from controller.api.contract.errors import DENIED
from controller.api.contract.view import EFFECTS, StateShown
from controller.api.http.openapi import ABOUT, WORDS, document_bytes, errors_of
from controller.api.http.routes import PREFIX, ROUTES
from controller.config import load_table
from controller.procedure.model import effects
from controller.procedure.model.state import State, Step
from controller.table.loop import BadAct, kind_of
from controller.table.loop.acts import NAMES
from hil.table.robots import PREFIX as PREFIX_OF_CLIENT
from hil.table.robots.api_client import bearer
from tests.support.api.at_api import ANN, FIELDS, FIRST, SECOND, AtApi, api_test, asked, at_api, run
from tests.support.api.document import DOCUMENT, Schemas, operation
from tests.support.daemon.rig import free_port, furnished, served
from tests.support.table.simulated.house import PINS


def test_each_call_is_in_it_and_nothing_else() -> None:
    said = {(method.upper(), path) for path, one in DOCUMENT["paths"].items() for method in one}
    assert said == {(call.method, PREFIX + call.path) for call in ROUTES}
    names = [one["operationId"] for path in DOCUMENT["paths"].values() for one in path.values()]
    assert len(set(names)) == len(names)
    assert PREFIX == PREFIX_OF_CLIENT


@api_test(adopted=False)
async def test_the_application_has_the_same_routes(at: AtApi) -> None:
    routes = {
        (method, route.path)  # type: ignore[attr-defined]
        for route in at.app.routes
        for method in route.methods  # type: ignore[attr-defined]
    }
    assert routes == {(call.method, PREFIX + call.path) for call in ROUTES}


def test_each_reference_leads_somewhere() -> None:
    schemas = Schemas(DOCUMENT)
    refs = set(_refs(DOCUMENT))
    for ref in refs:
        assert schemas.of(ref)
    named = {f"#/components/schemas/{name}" for name in DOCUMENT["components"]["schemas"]}
    assert refs == named


def _refs(value: Any) -> list[str]:
    match value:
        case dict():
            own = [value["$ref"]] if "$ref" in value else []
            mapped = value.get("discriminator", {}).get("mapping", {})
            return own + [ref for one in value.values() for ref in _refs(one)] + [*mapped.values()]
        case list():
            return [ref for one in value for ref in _refs(one)]
        case _:
            return []


def test_errors_are_those_that_there_are() -> None:
    for call in ROUTES:
        assert set(errors_of(call)) <= set(WORDS)
        responses = operation(call.method, PREFIX + call.path)["responses"]
        assert {int(one) for one in responses} == {call.status, *errors_of(call)}
    assert {one.status for one in DENIED.values()} <= set(WORDS)


def test_it_is_printed_and_served_alike(tmp_path: Path) -> None:
    async def main() -> None:
        async with at_api(tmp_path, adopted=False) as at:
            response = await asked(at, "GET", "/api/v1/openapi.json")
            assert response.content == document_bytes(ROUTES)

    run(main())
    made = subprocess.run(
        [sys.executable, "-m", "controller.api.http.openapi"],
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert made.stdout == document_bytes(ROUTES)
    assert json.loads(made.stdout)["openapi"] == "3.1.0"
    assert ABOUT.isprintable()


# --- values -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_an_act_of_the_document_is_one_of_the_table(name: str) -> None:
    schemas = Schemas(DOCUMENT)
    act = {"type": name, **FIELDS.get(name, {})}
    schema = schemas.of("#/components/schemas/Act")
    assert list(schemas.faults(schema, act)) == []
    kind_of(act)
    for wrong in ({**act, "actor": 1}, {**act, "more": 1}, {"type": "Go"}):
        assert list(schemas.faults(schema, wrong)) != []
        with pytest.raises(BadAct):
            kind_of(wrong)


def test_every_effect_can_be_shown() -> None:
    leaves = {
        kind
        for kind in vars(effects).values()
        if isinstance(kind, type) and issubclass(kind, effects.Effect) and not kind.__subclasses__()
    }
    assert leaves - {effects.Prompt} <= set(EFFECTS)
    assert effects.Prompt in EFFECTS


def test_every_field_of_the_state_is_shown_or_kept_back() -> None:
    """A new field is nobody's to see before somebody has said so."""
    assert set(State.__struct_fields__) - set(StateShown.__struct_fields__) == {"seen"}
    types = {one.name: one.type for one in msgspec.structs.fields(State)}
    for one in msgspec.structs.fields(StateShown):
        assert types[one.name] == one.type


def test_all_that_is_answered_is_what_the_document_says(tmp_path: Path) -> None:
    """Each answer of a round, with what goes wrong in it, and each call at least once."""
    seen: list[tuple[str, str, int, bytes]] = []

    async def main() -> None:
        async with at_api(tmp_path) as at:
            _listen(at, seen)
            screen = await at.dealing(step=Step.REVEAL)
            await screen.act("MisdealCalled")
            await screen.table()
            await screen.act("CheckHole")
            await at.client.health()
            await at.to_step(screen, Step.CLEARING)
            await _each_once(at, screen.token)
            await screen.sign_out()
            await screen.close()

    run(main())
    schemas = Schemas(DOCUMENT)
    called = set()
    for method, path, status, body in seen:
        made = operation(method, path)
        called.add((made["operationId"], status))
        content = made["responses"][str(status)]["content"]["application/json"]
        faults = list(schemas.faults(content["schema"], json.loads(body)))
        assert faults == [], (method, path, status)
    names = {name for name, _ in called}
    # A stream that goes on is looked at where there is a port.
    assert names == {call.name for call in ROUTES} - {"stream"}
    assert {status for _, status in called} >= {200, 201, 400, 401, 403, 404, 409}


def _listen(at: AtApi, seen: list[tuple[str, str, int, bytes]]) -> None:
    async def hook(response: httpx.Response) -> None:
        body = await response.aread()
        asked_for = response.request
        seen.append((asked_for.method, asked_for.url.path, response.status_code, body))

    at.client.http.event_hooks = {"response": [hook]}


async def _each_once(at: AtApi, token: str) -> None:
    http, headers = at.client.http, {"Authorization": f"Bearer {token}"}
    act = {"type": "PaymentCorrected", **FIELDS["PaymentCorrected"]}
    for method, path, body in (
        ("POST", "/sign-in", {"badge": "D-17", "pin": "1"}),
        ("POST", "/sign-in", {"badge": SECOND.badge, "pin": SECOND.pin}),
        ("POST", "/sign-in", {"badge": ANN.badge, "pin": ANN.pin}),
        ("POST", "/authorisations", {"act": act, "badge": FIRST.badge, "pin": FIRST.pin}),
        ("POST", "/authorisations", {"act": act, "badge": "T-1", "pin": PINS["T-1"]}),
        ("POST", "/acts", act),
        ("POST", "/acts", {"type": "Go"}),
        ("POST", "/shuffle-again", {}),
        ("POST", "/devices/SH-9/adopt", {}),
        ("POST", "/devices/SH-1/adopt", {"skip": True}),
        ("POST", "/devices/SH-1/self-test", {}),
        ("GET", "/openapi.json", None),
    ):
        await http.request(method, PREFIX + path, json=body, headers=headers)
    await http.get(PREFIX + "/table")


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


EXAMPLES: Final = 12
"""Of each call: all of them together take some seconds."""
CHECKS: Final = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
ASKED: Final = [call for call in ROUTES if not call.streams]


@contextmanager
def table(folder: Path) -> Iterator[str]:
    """Where one is served, in a loop of its own."""
    port = free_port()
    file = furnished(folder, f"port = {port}")
    ready, over = threading.Event(), threading.Event()

    async def main() -> None:
        async with served(load_table(file)) as here:
            ready.set()
            await asyncio.to_thread(over.wait)
            assert await here.end() == 0

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    try:
        assert ready.wait(60)
        yield f"http://127.0.0.1:{port}"
    finally:
        over.set()
        thread.join(60)


def _token(at: str) -> str:
    opened = httpx.post(f"{at}{PREFIX}/screens", json={"name": "fuzz"}, timeout=30)
    return str(opened.json()["token"])


def test_it_answers_as_its_document_says(tmp_path: Path) -> None:
    load_all_checks()
    with table(tmp_path) as at:
        schema = from_url(f"{at}{PREFIX}/openapi.json")
        for call in ASKED:
            operation = schema[PREFIX + call.path][call.method]
            statuses = _asked(operation.as_strategy(), _token(at))
            assert statuses, call.name
            assert not statuses & {405, 500}, call.name


def _asked(cases: Any, token: str) -> set[int]:
    """With what so many requests were answered."""
    statuses: set[int] = set()

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def asked(case: schemathesis.Case[Any]) -> None:
        answer = case.call_and_validate(headers={"Authorization": f"Bearer {token}"}, checks=CHECKS)
        statuses.add(answer.status_code)

    asked()
    return statuses
