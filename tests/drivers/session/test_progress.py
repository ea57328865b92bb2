"""How a link gets on: what it counted, over all links of one device, and when anything was done."""

from __future__ import annotations

from pathlib import Path

from drivers.devices import State
from drivers.session.progress import Progress
from firmware_protocol.device.control import Draw, LineNoise, Load, Plug
from tests.long.fuzz.wired import Wired
from tests.support.drivers.simulated import until
from tests.support.table.simulated.serving import run, serving


def test_what_comes_again_and_what_comes_too_early_is_counted() -> None:
    wired = Wired.running(3)
    link = wired.link
    wired.send(2)
    assert (link.repeats, link.gaps) == (0, 1)
    wired.send(1, 2)
    wired.stored(2)
    assert (link.repeats, link.gaps) == (0, 1)
    wired.send(1, 2)
    wired.send(3)
    assert (link.repeats, link.gaps) == (2, 1)


def test_counts_go_on_over_links() -> None:
    progress = Progress()
    assert (progress.turned_at, progress.repeats, progress.gaps) == (0, 0, 0)
    first, second = Wired.running(3), Wired.running(3)
    progress.turn(5, first.link)
    first.send(3)
    first.send(1)
    first.stored(1)
    first.send(1)
    progress.turn(9, first.link)
    assert (progress.turned_at, progress.repeats, progress.gaps) == (9, 1, 1)
    progress.turn(11, None)
    assert (progress.repeats, progress.gaps) == (1, 1)
    progress.turn(12, second.link)
    second.send(2)
    assert (progress.turned_at, progress.repeats, progress.gaps) == (12, 1, 2)


def test_something_is_done_for_a_device_all_the_time(tmp_path: Path) -> None:
    """While it is ready, while it is away, and while it is looked for."""

    async def main() -> None:
        async with serving(tmp_path) as one:
            shoe = one.table.supervisor("SH-1")
            for connected, state in ((True, State.READY), (False, State.ABSENT)):
                one.room.shoe.hand(Plug(connected=connected))
                await until(lambda state=state: shoe.state is state)  # type: ignore[misc]
                for _ in range(5):
                    at = shoe.progress.turned_at
                    await until(lambda at=at: shoe.progress.turned_at > at, 10)  # type: ignore[misc]

    run(main())


def test_a_noisy_cable_shows_in_them(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as one:
            shoe = one.table.supervisor("SH-1")
            one.room.shoe.hand(LineNoise(drop=0.3, seed=3))
            one.room.shoe.hand(Load(decks=one.room.game.decks, seed=3))
            one.room.shoe.hand(Draw(force=True))
            await until(lambda: shoe.progress.repeats + shoe.progress.gaps > 0, 600)
            one.room.shoe.hand(LineNoise())

    run(main())
