"""Random histories: a witness cosigns only trees that extend each other, whatever is done to a
record with the table's key; and it always cosigns a record that only grew."""

from __future__ import annotations

import shutil
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.audit.errors import RecordProblem
from controller.audit.format.segments import SPARE, segment_file
from controller.audit.read.reader import records, segments
from tests.support.audit.record.table import begun, note
from tests.support.audit.tools.by_page import tree_hash
from tests.support.audit.tools.outside import leaves_of
from tests.support.audit.witnessing import seen_by

MOST_SAVED: Final = 3
_NAMES: Final = count()


class Done(NamedTuple):
    """A step of a history."""

    what: str
    number: int = 0
    words: str = ""


numbers = st.integers(0, 40)
grown = st.builds(Done, st.just("grow"), numbers, st.sampled_from("abc"))
honest = st.one_of(grown, st.just(Done("cosign")), st.just(Done("save")))
STEPS: Final = st.one_of(
    grown,
    st.just(Done("cosign")),
    st.just(Done("save")),
    st.builds(Done, st.just("restore"), st.integers(0, MOST_SAVED - 1)),
    st.builds(Done, st.just("cut"), st.integers(1, 9)),
    st.just(Done("cut segment")),
)


class World:
    """A record, old images of it, and a witness."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.live = place / "live"
        self.archive = place / "archive"
        self.saved: list[Path] = []
        self.signed: dict[int, bytes] = {}
        self.now = 1_800_000_000
        self.refused: list[str] = []
        log = begun(self.live, size=4096 * 2)
        log.close()

    def do(self, step: Done) -> None:
        getattr(self, step.what.replace(" ", "_"))(step)

    def grow(self, step: Done) -> None:
        log = begun(self.live, size=4096 * 2)
        for at in range(step.number):
            log.write([note(f"{step.words} {at}", 90)])
            if at % 7 == 6:
                log.sign()
        log.close()

    def save(self, step: Done) -> None:
        image = self.place / f"image-{next(_NAMES)}"
        shutil.copytree(self.live, image)
        self.saved = [*self.saved, image][-MOST_SAVED:]

    def restore(self, step: Done) -> None:
        if step.number < len(self.saved):
            shutil.rmtree(self.live)
            shutil.copytree(self.saved[step.number], self.live)

    def cut(self, step: Done) -> None:
        """Zero the last records, without a trace."""
        last = list(segments(self.live))[-1]
        first = max(1, len(last.frames) - step.number)
        if first == len(last.frames):
            return
        start = last.frames[first].offset
        with last.file.open("r+b") as file:
            file.seek(start)
            file.write(bytes(last.end - start))

    def cut_segment(self, step: Done) -> None:
        numbers = [one.number for one in segments(self.live)]
        if len(numbers) > 1:
            segment_file(self.live, numbers[-1]).unlink()
            (self.live / "segments" / SPARE).unlink(missing_ok=True)

    def cosign(self, step: Done) -> None:
        self.now += 1
        right = self.continues()
        try:
            made = seen_by(self.live, self.archive, self.now)
        except RecordProblem as problem:
            if right:
                raise
            self.refused.append(type(problem).__name__)
            return
        assert right
        leaves = leaves_of(self.live)
        for size, root in {**self.signed, made.size: made.root}.items():
            assert size <= made.size
            assert tree_hash(leaves[:size]) == root
        self.signed[made.size] = made.root

    def continues(self) -> bool:
        """By definition: every cosigned tree is a prefix of the record, and signed."""
        leaves = leaves_of(self.live)
        checkpoints = [one.seq - 1 for _, one in records(self.live) if one.kind == "checkpoint"]
        last = max(self.signed, default=0)
        return max(checkpoints, default=0) >= max(last, 1) and all(
            tree_hash(leaves[:size]) == root for size, root in self.signed.items()
        )


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, min_size=2, max_size=14))
def test_cosigned_trees_extend_each_other(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Done]
) -> None:
    place = tmp_path_factory.mktemp("history")
    world = World(place)
    for step in (Done("cosign"), *steps, Done("cosign")):
        world.do(step)
    shutil.rmtree(place)


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(honest, min_size=1, max_size=10))
def test_a_growing_record_is_always_cosigned(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Done]
) -> None:
    place = tmp_path_factory.mktemp("history")
    world = World(place)
    for step in (*steps, Done("cosign")):
        world.do(step)
    assert not world.refused
    shutil.rmtree(place)


def test_a_history_with_every_kind_of_step(tmp_path: Path) -> None:
    """Contains every kind of step."""
    world = World(tmp_path)
    steps = (
        Done("cosign"),
        Done("grow", 12, "a"),
        Done("save"),
        Done("grow", 25, "a"),
        Done("cosign"),
        Done("cut", 2),
        Done("cosign"),
        Done("restore"),
        Done("cosign"),
        Done("grow", 40, "b"),
        Done("cosign"),
        Done("cut segment"),
        Done("cosign"),
    )
    for step in steps:
        world.do(step)
    assert len(world.signed) == 2
    assert world.refused == ["RecordTruncated", "RecordTruncated", "RecordForked", "RecordForked"]
