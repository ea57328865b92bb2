"""Who comes in at all, and how whatever is not there is told."""

from __future__ import annotations

import httpx
import pytest
from starlette.requests import Request

from controller.api.http.app import LOOPBACK, access_problem
from controller.api.http.routes import PREFIX, ROUTES
from hil.table.robots import Api
from tests.support.api.at_api import AtApi, api_test, asked
from tests.support.api.at_port import Port, port_test


def request(**headers: str) -> Request:
    made = [(name.encode(), value.encode()) for name, value in headers.items()]
    return Request(
        {"type": "http", "method": "GET", "path": "/", "headers": made, "query_string": b""}
    )


@pytest.mark.parametrize("host", [*LOOPBACK, *(f"{one}:8021" for one in LOOPBACK), "LocalHost"])
def test_names_of_the_loopback(host: str) -> None:
    assert access_problem(request(host=host), over_tcp=True) is None


@pytest.mark.parametrize(
    "host",
    [
        "",
        "casino.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:8021",
        "localhost:8021@evil.example",
        "127.0.0.1:",
        "127.0.0.1:80:80",
        "127.0.0.2",
        "0.0.0.0",
        "::1",
        "[::1]x",
        "localhost\n",
        "2130706433",
    ],
)
def test_a_name_that_somebody_points_at_the_loopback(host: str) -> None:
    problem = access_problem(request(host=host), over_tcp=True)
    assert problem is not None
    assert (problem.status, problem.body.code) == (403, "no_host")
    assert access_problem(request(), over_tcp=True) is not None
    # Over a unix socket no browser comes, and programs call it as they like.
    assert access_problem(request(host=host), over_tcp=False) is None


@pytest.mark.parametrize(
    ("origin", "comes_in"),
    [
        ("http://localhost:8021", True),
        ("HTTP://LOCALHOST:8021", True),
        ("http://localhost", False),
        ("http://127.0.0.1:8021", False),
        ("https://localhost:8021", False),
        ("http://evil.example", False),
        ("null", False),
        ("", False),
        ("http://localhost:8021, http://evil.example", False),
    ],
)
def test_pages_from_elsewhere(origin: str, comes_in: bool) -> None:
    for over_tcp in (True, False):
        problem = access_problem(request(host="localhost:8021", origin=origin), over_tcp=over_tcp)
        assert (problem is None) is comes_in
        if problem is not None:
            assert (problem.status, problem.body.code) == (403, "other_origin")


def error(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


@api_test(adopted=False)
async def test_nobody_comes_in_by_another_name(at: AtApi) -> None:
    bad = await asked(at, "GET", "/api/v1/health", url="http://rebound.example:8021")
    assert error(bad) == (403, "no_host")
    good = await asked(at, "GET", "/api/v1/health", url="http://127.0.0.1:8021")
    assert good.status_code == 200
    page = await asked(at, "POST", "/api/v1/screens", headers={"Origin": "http://evil.example"})
    assert error(page) == (403, "other_origin")
    asks = {
        "Origin": "http://evil.example",
        "Access-Control-Request-Method": "POST",
    }
    preflight = await asked(at, "OPTIONS", "/api/v1/acts", headers=asks)
    assert error(preflight) == (403, "other_origin")
    for response in (bad, good, page, preflight):
        assert not any(name.startswith("access-control") for name in response.headers)
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["x-content-type-options"] == "nosniff"


@api_test(adopted=False)
async def test_methods_and_paths_that_are_not_there(at: AtApi) -> None:
    await _paths(at)
    for path in ("/", "/api/v1", "/api/v1/table/", "/api/v1/Table", "/api/v2/table"):
        assert error(await asked(at, "GET", path)) == (404, "no_path"), path
    for path in ("/api/v1/devices//adopt", "/api/v1/devices/a/b/adopt"):
        assert error(await asked(at, "POST", path)) == (404, "no_path"), path
    assert error(await asked(at, "GET", "/api/v1/health?x=1")) == (400, "no_query")


async def _paths(at: AtApi) -> None:
    by_path: dict[str, set[str]] = {}
    for call in ROUTES:
        by_path.setdefault(call.path, set()).add(call.method)
    for path, methods in by_path.items():
        for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
            if method in methods:
                continue
            response = await asked(at, method, PREFIX + path.replace("{serial}", "SH-1"))
            assert response.status_code == 405, (method, path)
            assert response.headers["allow"] == ", ".join(sorted(methods))
            if method != "HEAD":
                assert error(response) == (405, "no_method")


@api_test(adopted=False)
async def test_a_fault_of_ours_tells_engineers_and_nobody_else(
    at: AtApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise AssertionError("the ace of spades")

    monkeypatch.setattr(at.api.views, "health", broken)
    response = await asked(at, "GET", "/api/v1/health")
    assert error(response) == (500, "fault")
    assert "ace" not in response.text
    assert response.headers["cache-control"] == "no-store"


@port_test()
async def test_a_real_port_knows_what_it_is(port: Port, client: Api) -> None:
    """What is written at it as a Host matters on the loopback, and at a unix socket it does not."""
    for host, status in (("localhost:1", 200), ("127.0.0.1", 200), ("evil.example", 403)):
        async with httpx.AsyncClient(base_url=port.url, trust_env=False) as plain:
            response = await plain.get("/api/v1/health", headers={"Host": host})
            assert response.status_code == status, host
        transport = httpx.AsyncHTTPTransport(uds=str(port.path))
        async with httpx.AsyncClient(base_url="http://x", transport=transport) as plain:
            response = await plain.get("/api/v1/health", headers={"Host": host})
            assert response.status_code == 200
