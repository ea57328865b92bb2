"""The document of the API says what the API does: each path and method, each answer, each act."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from controller.api.contract.errors import DENIED
from controller.api.contract.view import EFFECTS, StateShown
from controller.api.http.openapi import ABOUT, WORDS, document_bytes, errors_of
from controller.api.http.routes import PREFIX, ROUTES
from controller.procedure.model import effects
from controller.procedure.model.state import State, Step
from controller.table.loop import BadAct, kind_of
from controller.table.loop.acts import NAMES
from hil.table.robots import PREFIX as PREFIX_OF_CLIENT
from tests.support.api.at_api import ANN, FIRST, SECOND, AtApi, api_test, asked, at_api, run
from tests.support.api.deeds import FIELDS
from tests.support.api.document import DOCUMENT, operation
from tests.support.api.fits import Schemas
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
            screen = await at.dealing()
            await at.to_step(screen, Step.REVEAL)
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
