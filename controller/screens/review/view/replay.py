"""A round as frames: each record and the felt after it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from controller.audit.text import TimelineLine, problem_words
from controller.procedure.model.state import State
from controller.procedure.prompts import AmountFormat
from controller.screens.common.felt_svg import FeltDrawing
from controller.screens.review.view.felt import felt_of

_DRAWING: Final = FeltDrawing()


class ReplayFrame(Struct, frozen=True):
    """The round after one record."""

    seq: int
    at: int
    """Milliseconds since the first frame."""
    time: str
    who: str
    what: str
    more: tuple[str, ...]
    prompts: tuple[str, ...]
    refused: str
    problem: str
    """As text."""
    picture: int
    """The index of its picture; -1: the state is unknown."""


class RoundReplay(Struct, frozen=True):
    round: int
    pictures: tuple[str, ...]
    frames: tuple[ReplayFrame, ...]

    @property
    def known(self) -> bool:
        """Whether the felt is known."""
        return any(frame.picture >= 0 for frame in self.frames)


def replay_of(
    number: int,
    lines: Sequence[TimelineLine],
    states: Iterable[State | None],
    money: AmountFormat,
    seats: int,
) -> RoundReplay:
    """Records that do not concern the table are skipped."""
    numbers: dict[str, int] = {}
    frames: list[ReplayFrame] = []
    began = lines[0].utc if lines else 0
    at = 0
    for line, state in zip(lines, states, strict=True):
        if line.quiet or line.look:
            continue
        at = max(at, (line.utc - began) // 1000)  # a clock that was set back
        which = -1
        if state is not None:
            which = numbers.setdefault(_DRAWING.picture(felt_of(state, money, seats)), len(numbers))
        frames.append(
            ReplayFrame(
                line.seq,
                at,
                line.time,
                line.who,
                line.what,
                line.facts,
                line.prompts,
                line.refused,
                problem_words(line.problem) if line.problem else "",
                which,
            )
        )
    return RoundReplay(number, tuple(numbers), tuple(frames))
