"""Open screens: tokens, names, how many, and when they end."""

from __future__ import annotations

import pytest

from controller.api.contract.errors import Problem
from controller.api.service import ScreenRegistry
from controller.api.service.screens import MAX_SCREENS, MIN_IDLE, SCREEN_IDLE_TIMEOUT
from controller.people import act_of
from controller.procedure.model.events import RoundVoided
from hil.table.robots.api_client import BadRequest
from tests.support.api.at_api import AtApi, api_test, asked


class Clock:
    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


def screens() -> tuple[ScreenRegistry, Clock]:
    clock = Clock()
    return ScreenRegistry(clock), clock


def test_a_token_opens_its_screen_and_nothing_else_does() -> None:
    every, _ = screens()
    token, screen = every.open("dealer")
    other, _ = every.open("pit")
    assert every.find(token) is screen
    assert token != other
    assert len(token) == 43  # 256 bits
    wrong = ("", token[:-1], token + "x", token.swapcase(), "x" * 10_000, "\udcff", token + " ")
    for text in wrong:
        with pytest.raises(Problem) as caught:
            every.find(text)
        assert (caught.value.status, caught.value.headers) == (401, {"WWW-Authenticate": "Bearer"})
        assert token not in str(caught.value.body)


def test_no_two_tokens_are_alike() -> None:
    every, _ = screens()
    tokens = set()
    for _ in range(500):
        token, screen = every.open("dealer")
        tokens.add(token)
        every.close(screen)
    assert len(tokens) == 500


def test_names_are_told_apart() -> None:
    every, _ = screens()
    names = [every.open("dealer")[1].name for _ in range(3)]
    _, second = every.open("dealer-2")
    assert names == ["dealer", "dealer-2", "dealer-3"]
    assert second.name == "dealer-2-2"
    every.close(second)
    assert every.open("dealer-2")[1].name == "dealer-2-2"


def test_a_screen_that_asks_for_nothing_ends() -> None:
    every, clock = screens()
    token, _ = every.open("dealer")
    clock.at += SCREEN_IDLE_TIMEOUT - 1
    every.find(token)
    clock.at += SCREEN_IDLE_TIMEOUT - 1
    every.find(token)
    clock.at += SCREEN_IDLE_TIMEOUT
    with pytest.raises(Problem):
        every.find(token)
    assert len(every) == 0


def test_a_screen_with_a_stream_is_in_use() -> None:
    every, clock = screens()
    token, screen = every.open("dealer")
    with every.streaming(screen):
        clock.at += 10 * SCREEN_IDLE_TIMEOUT
        assert every.find(token) is screen
        clock.at += 10 * SCREEN_IDLE_TIMEOUT
    clock.at += SCREEN_IDLE_TIMEOUT - 1
    assert every.find(token) is screen


def test_how_many_there_may_be() -> None:
    """Where there is no room, the one goes that only watched, and that was not used for longest."""
    every, clock = screens()
    tokens = []
    for number in range(MAX_SCREENS):
        token, screen = every.open("dealer")
        if number == 0:
            screen.badges["dealer"] = "D-17"
        tokens.append(token)
        clock.at += MIN_IDLE / (2 * MAX_SCREENS)
    with pytest.raises(Problem) as caught:
        every.open("one-more")
    assert (caught.value.status, caught.value.body.wait) == (429, round(MIN_IDLE))
    clock.at += MIN_IDLE
    every.find(tokens[1])
    every.open("one-more")
    assert len(every) == MAX_SCREENS
    for at, token in enumerate(tokens):
        if at == 2:
            with pytest.raises(Problem):
                every.find(token)
        else:
            every.find(token)


def test_what_was_signed_for_is_signed_for_once() -> None:
    every, _ = screens()
    _, screen = every.open("dealer")
    void, other = act_of(RoundVoided, about="round 1"), act_of(RoundVoided, about="round 2")
    screen.sign_for(void)
    assert (screen.signed_for(void), screen.signed_for(other)) == (True, False)
    screen.spend(other)
    screen.spend(void)
    assert not screen.signed_for(void)
    screen.spend(void)


# --- through the API --------------------------------------------------------------------------


async def status(at: AtApi, authorization: str | None) -> int:
    headers = {} if authorization is None else {"Authorization": authorization}
    return (await asked(at, "GET", "/api/v1/table", headers=headers)).status_code


@api_test(adopted=False)
async def test_a_token_goes_with_each_request(at: AtApi) -> None:
    token = (await at.client.open("dealer")).token
    assert await status(at, f"Bearer {token}") == 200
    assert await status(at, f"bearer   {token}") == 200
    for text in (None, "", "Bearer", "Bearer ", f"Basic {token}", token, "Bearer x"):
        assert await status(at, text) == 401, text
    for path in ("health", "openapi.json"):
        assert (await asked(at, "GET", f"/api/v1/{path}")).status_code == 200


@api_test(adopted=False)
async def test_names_of_screens(at: AtApi) -> None:
    for name in ("", "Dealer", "1", "a b", "a" * 33, "dealer\n", "é", "-a"):
        with pytest.raises(BadRequest) as caught:
            await at.client.open(name)
        error = caught.value.error
        assert (error.code, error.what) == ("bad_field", "name cannot be this")
        assert error.allowed.startswith("What a screen is called: a letter, then")
    assert (await at.client.open("a" * 32)).name == "a" * 32
