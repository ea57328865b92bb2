"""Links that open once, sessions that end, tries that are used up."""

from __future__ import annotations

import pytest

from controller.screens.common.sessions import (
    IDLE_TIMEOUT,
    LINK_MAX_AGE,
    MAX_AGE,
    MAX_SESSIONS,
    AttemptLimit,
    LinkSessions,
    LoginLinks,
    PageUser,
    is_secret_of,
)

EVE, FLO = PageUser("Eve"), PageUser("Flo", "floor")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_session_lasts_while_it_is_used_and_no_longer_than_a_shift() -> None:
    clock = Clock()
    ended: list[PageUser] = []
    sessions = LinkSessions(clock, ended.append)
    session = sessions.begin(EVE)
    for _ in range(int(MAX_AGE / IDLE_TIMEOUT)):
        clock.now += IDLE_TIMEOUT - 1
        assert sessions.find(session.id) is session
    clock.now += IDLE_TIMEOUT - 1
    assert sessions.find(session.id) is None
    assert ended == [EVE]
    assert sessions.find(session.id) is None
    assert ended == [EVE]


def test_a_session_that_nobody_uses_ends() -> None:
    clock = Clock()
    sessions = LinkSessions(clock)
    session = sessions.begin(EVE)
    clock.now += IDLE_TIMEOUT
    assert sessions.alive(session)
    clock.now += 0.1
    assert not sessions.alive(session)
    assert sessions.find(session.id) is None


def test_looking_whether_it_is_alive_does_not_use_it() -> None:
    clock = Clock()
    sessions = LinkSessions(clock)
    session = sessions.begin(EVE)
    clock.now += IDLE_TIMEOUT - 1
    assert sessions.alive(session)
    clock.now += 2
    assert sessions.find(session.id) is None


def test_one_session_too_many_ends_the_one_that_was_used_least_lately() -> None:
    clock = Clock()
    sessions = LinkSessions(clock)
    made = []
    for _ in range(MAX_SESSIONS):
        clock.now += 1
        made.append(sessions.begin(EVE))
    sessions.find(made[0].id)
    sessions.begin(FLO)
    assert sessions.find(made[0].id) is made[0]
    assert sessions.find(made[1].id) is None
    assert sessions.find(made[2].id) is made[2]


def test_names_and_secrets_are_their_own_and_long() -> None:
    sessions = LinkSessions()
    one, other = sessions.begin(EVE), sessions.begin(EVE)
    assert len({one.id, other.id, one.secret, other.secret}) == 4
    assert min(map(len, (one.id, one.secret))) >= 43
    assert is_secret_of(one, one.secret)
    assert not is_secret_of(one, other.secret)
    assert not is_secret_of(one, "")
    assert not is_secret_of(one, "\u00e4")
    for name in (None, "", "x", one.secret):
        assert sessions.find(name) is None


def test_a_link_opens_once() -> None:
    links = LoginLinks()
    word = links.make(EVE)
    assert links.take("x" + word) is None
    assert links.take(word) == EVE
    assert links.take(word) is None


def test_a_new_link_takes_the_place_of_the_one_before() -> None:
    links = LoginLinks()
    old, others = links.make(EVE), links.make(FLO)
    new = links.make(EVE)
    assert links.take(old) is None
    assert (links.take(new), links.take(others)) == (EVE, FLO)


@pytest.mark.parametrize(("after", "found"), [(LINK_MAX_AGE, EVE), (LINK_MAX_AGE + 1, None)])
def test_a_link_is_too_old_after_its_time(after: float, found: PageUser | None) -> None:
    clock = Clock()
    links = LoginLinks(clock)
    word = links.make(EVE)
    clock.now += after
    assert links.take(word) == found


def test_tries_are_used_up_and_come_back_one_by_one() -> None:
    clock = Clock()
    tries = AttemptLimit(3, 10, clock)
    assert [tries.one() for _ in range(4)] == [True, True, True, False]
    clock.now += 9
    assert not tries.one()
    clock.now += 1
    assert tries.one()
    assert not tries.one()
    clock.now += 1_000
    assert [tries.one() for _ in range(4)] == [True, True, True, False]
