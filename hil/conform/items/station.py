"""The station: which presses count, and what the lamps show."""

from __future__ import annotations

from typing import Final

from firmware_protocol.device import ButtonName, LetGo, Press
from firmware_protocol.messages import (
    STUCK_AFTER_MS,
    Button,
    ButtonMask,
    Edge,
    LampPattern,
    Lamps,
    LampsReply,
    Stuck,
    WhichButton,
)
from hil.conform.tester import (
    TOKEN,
    ConformBench,
    TesterSession,
    arm,
    described,
    find_seat,
    message_text,
)

_HELD_MS: Final = 80
_SETTLE_MS: Final = 400
_TTL_MS: Final = 600
_LEASE_MS: Final = 2000
_RED: Final = bytes((200, 0, 0))


def _events(session: TesterSession, mark: int) -> list[Button | Stuck]:
    return [one.event for one in session.accepted[mark:] if isinstance(one.event, Button | Stuck)]


async def _press(bench: ConformBench, button: ButtonName = "hit", bounces: int = 0) -> None:
    await bench.request(Press(seat=bench.seat, button=button, held_ms=_HELD_MS, bounces=bounces))
    await bench.pause(_HELD_MS + _SETTLE_MS)


async def _counts(
    bench: ConformBench, session: TesterSession, token: int, why: str, bounces: int = 0
) -> int:
    """Require that a press of HIT makes DOWN and UP. Returns its number."""
    mark = len(session.accepted)
    await _press(bench, bounces=bounces)
    await bench.until(lambda: len(_events(session, mark)) >= 2, 3000)
    await bench.pause(200)
    found = _events(session, mark)
    shown = ", ".join(message_text(one) for one in found) or "nothing"
    if [one.edge for one in found if isinstance(one, Button)] != [Edge.DOWN, Edge.UP]:
        raise bench.finding(f"BUTTON DOWN and BUTTON UP, once each: {why}", shown)
    for one in found:
        if not isinstance(one, Button) or (one.seat, one.button, one.token) != (
            bench.seat,
            WhichButton.HIT,
            token,
        ):
            raise bench.finding(f"BUTTON HIT of seat {bench.seat} with token {token}", shown)
    numbers = {one.press for one in found if isinstance(one, Button)}
    bench.require(len(numbers) == 1, "one press number in both edges", shown)
    return numbers.pop()


async def _makes_none(
    bench: ConformBench, session: TesterSession, button: ButtonName, why: str
) -> None:
    mark = len(session.accepted)
    await _press(bench, button)
    bench.require_none(_events(session, mark), f"no record of a press: {why}")


async def unarmed(bench: ConformBench) -> None:
    """A button that is not armed makes no record."""
    session = await bench.session()
    await find_seat(bench, session)
    await _makes_none(bench, session, "hit", "no button of the seat is armed")
    await arm(bench, session, mask=ButtonMask.HIT)
    await _makes_none(bench, session, "stand", "only HIT is armed")
    await _counts(bench, session, TOKEN, "HIT is armed")


async def one_press(bench: ConformBench) -> None:
    """A press makes DOWN and UP with the token of its ARM and one press number, even through a
    bouncing contact."""
    session = await bench.session()
    await arm(bench, session, token=1001)
    first = await _counts(bench, session, 1001, "a press")
    await arm(bench, session, token=65535)
    second = await _counts(bench, session, 65535, "a press under another ARM")
    bench.require(second != first, "another press number for another press", str(second))
    if not bench.operator.exact:
        return
    await arm(bench, session, token=7)
    await _counts(bench, session, 7, "a press whose contact bounces", bounces=6)
    mark = len(session.accepted)
    await bench.request(Press(seat=bench.seat, button="hit", held_ms=None))
    await bench.pause(100)
    await arm(bench, session, mask=ButtonMask(0), token=8)
    await bench.request(LetGo(seat=bench.seat, button="hit"))
    await bench.pause(_SETTLE_MS)
    found = [(one.edge, one.token) for one in _events(session, mark) if isinstance(one, Button)]
    bench.require(
        found == [(Edge.DOWN, 7), (Edge.UP, 7)],
        "UP with the token of its DOWN, also when disarmed since",
        str(found),
    )


async def disarms(bench: ConformBench) -> None:
    """A seat is disarmed when its ttl runs out, by an empty mask, and with the end of the
    session."""
    session = await bench.session()
    await arm(bench, session, ttl=_TTL_MS)
    await bench.pause(_TTL_MS + 100 + bench.late_ms)
    await _makes_none(bench, session, "hit", f"the ttl of {_TTL_MS} ms has run out")
    await arm(bench, session)
    await arm(bench, session, mask=ButtonMask(0))
    await _makes_none(bench, session, "hit", "ARM with an empty mask")
    await arm(bench, session)
    await arm(bench, session, ttl=0)
    await _makes_none(bench, session, "hit", "ARM with ttl 0")
    await arm(bench, session, token=21)
    new = await bench.session(session.cursor)
    await _counts(bench, new, 21, "a session that takes over changes no arm")
    cursor = new.cursor
    await bench.fall_silent()
    await _press(bench)
    last = await bench.session(cursor)
    await _makes_none(bench, last, "hit", "the session had ended")
    bench.require_none(_events(last, 0), "no record of a press after the end of the session")


async def stuck(bench: ConformBench) -> None:
    """A button held for STUCK_AFTER makes STUCK once, and does not count until it has come up."""
    session = await bench.session()
    await arm(bench, session)
    mark = len(session.accepted)
    await bench.request(Press(seat=bench.seat, button="hit", held_ms=None))
    await bench.until(lambda: _events(session, mark), 3000)
    # The time of the record, not when a person presses Enter.
    down = next((one.at for one in session.records if one.record in session.accepted[mark:]), 0)
    await bench.pause_until(down + (STUCK_AFTER_MS - 1000) * 1000)
    early = any(isinstance(one, Stuck) for one in _events(session, mark))
    bench.require(not early, "no STUCK before 10 s")
    expected = f"STUCK {STUCK_AFTER_MS // 1000} s after the button went down"
    await session.until_event(Stuck, 2000 + bench.late_ms, expected, mark)
    await arm(bench, session, token=77)
    await bench.pause_until(down + (STUCK_AFTER_MS + 5000) * 1000)
    await bench.request(LetGo(seat=bench.seat, button="hit"))
    await bench.pause(_SETTLE_MS)
    found = _events(session, mark)
    kinds = [one.edge.name if isinstance(one, Button) else "STUCK" for one in found]
    bench.require_equal(kinds, ["DOWN", "STUCK", "UP"], "DOWN, STUCK once, and UP")
    await _counts(bench, session, 77, "it has come up, so it counts again")


async def lamps(bench: ConformBench) -> None:
    """Lamps show what LAMPS says, and are dark when the lease runs out."""
    session = await bench.session()
    seat = await find_seat(bench, session)
    await session.demand(Lamps(seat, _RED, LampPattern.STEADY, 0, _LEASE_MS), LampsReply)
    await _shows(bench, True, f"seat {seat} is lit red")
    await bench.pause(_LEASE_MS + bench.late_ms)
    await _shows(bench, False, f"seat {seat} is lit")
    await session.demand(Lamps(seat, _RED, LampPattern.STEADY, 0, 60_000), LampsReply)
    await _shows(bench, True, f"seat {seat} is lit red")
    await session.demand(Lamps(seat, _RED, LampPattern.OFF, 0, 60_000), LampsReply)
    await _shows(bench, False, f"seat {seat} is lit")


async def _shows(bench: ConformBench, wanted: bool, what: str) -> None:
    if not bench.operator.exact:
        seen = await bench.beside(bench.operator.confirm(f"Look: {what}?"))
    else:
        seen = await described(bench, f"mechanism.seats.{bench.seat}.lamps.lit", bool)
    bench.require(seen is wanted, f"{what}: {'yes' if wanted else 'no'}", "yes" if seen else "no")
