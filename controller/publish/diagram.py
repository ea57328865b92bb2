"""A game's rows as a Mermaid state diagram, made by `transitions` from the row table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from transitions import State
from transitions.extensions import GraphMachine

from controller.procedure.engine import rows_of
from controller.procedure.model.game import Game
from controller.procedure.model.state import PASSING, Step
from controller.publish.rows import ANY, RowFamily, families, reachable_steps
from controller.publish.terms import STEPS, Part, part_of, steps_words

LEFT_OUT: Final = (
    "Left out: irregularities and rulings, and what may come at many steps (cut card, closing)."
)
TOGETHER: Final = "A box that names several steps stands for each of them."

_NOT_OF_PLAY: Final = (Part.IRREGULAR, Part.RULINGS)
_MAX_APART: Final = 4
"""In the whole table, a row that fires at more steps is drawn once, from one box for them."""
_STOPPED: Final = "stopped"
_STYLES: Final[dict[str, str | dict[str, str | dict[str, Any]]]] = {
    "node": {
        "waits": {"fillcolor": "#ffffff", "color": "#000000", "stroke": "#000000"},
        "passes": {"fillcolor": "#e8e8e8", "color": "#000000", "stroke": "#777777"},
    }
}


class _Box(State):
    """One or several steps, and the label in the diagram."""

    def __init__(self, name: str, label: str) -> None:
        super().__init__(name)
        self.label = label


class _DiagramModel:
    """A temporary model: get_graph() requires one."""


class _Edge(NamedTuple):
    source: str
    target: str
    row: str


class _Boxes:
    """The boxes of the edges, by name, in the order of first use."""

    def __init__(self, known: frozenset[Step], most_apart: int) -> None:
        self.known = known
        self.most_apart = most_apart
        self.labels: dict[str, str] = {}
        self.passing: list[str] = []

    def step(self, step: Step) -> str:
        self.labels[step.value] = STEPS[step].words
        if step in PASSING and step.value not in self.passing:
            self.passing.append(step.value)
        return step.value

    def steps(self, steps: tuple[Step, ...]) -> list[str]:
        here = [step for step in steps if step in self.known]
        if len(here) <= self.most_apart:
            return [self.step(step) for step in here]
        return [self.named(steps_words(here, self.known))]

    def named(self, label: str) -> str:
        for name, known in self.labels.items():
            if known == label:
                return name
        name = f"steps_{len(self.labels)}"
        self.labels[name] = label
        return name

    def stopped(self) -> str:
        self.labels[_STOPPED] = "the step where it was stopped"
        return _STOPPED


def _edges(family: RowFamily, boxes: _Boxes) -> Iterator[_Edge]:
    sources = boxes.steps(family.steps)
    targets = {row.to for row in family.rows}
    if len(family.rows) > 1 and all(row.at == (row.to,) for row in family.rows):
        for source in sources:
            yield _Edge(source, source, family.id)
        return
    target = boxes.step(family.one.to) if len(targets) == 1 else boxes.stopped()
    for source in sources:
        yield _Edge(source, target, family.id)


def _is_of_play(family: RowFamily) -> bool:
    return part_of(family.one) not in _NOT_OF_PLAY and not family.id.endswith(ANY)


def diagram(game: Game, *, whole: bool = False) -> str:
    """Returns the diagram of the rows of play, or of the whole table."""
    rows = rows_of(game)
    drawn = [family for family in families(rows) if whole or _is_of_play(family)]
    boxes = _Boxes(reachable_steps(rows), _MAX_APART if whole else len(Step))
    edges = [edge for family in drawn for edge in _edges(family, boxes)]
    # Added together: a machine with models redraws itself at each addition.
    model = _DiagramModel()
    machine = GraphMachine(
        model=model,
        states=[_Box(name, label) for name, label in boxes.labels.items()],
        initial=Step.CLOSED.value,
        transitions=[
            {
                "trigger": f"edge_{number}",
                "source": edge.source,
                "dest": edge.target,
                "label": edge.row,
            }
            for number, edge in enumerate(edges)
        ],
        auto_transitions=False,
        graph_engine="mermaid",
    )
    machine.machine_attributes = {"rankdir": "TB"}
    machine.style_attributes = dict(_STYLES)
    graph = machine.model_graphs[id(model)]
    for name in boxes.labels:
        graph.set_node_style(name, "passes" if name in boxes.passing else "waits")
    title = f"{game.title}: " + ("every row" if whole else "the rows of play")
    source = machine.get_combined_graph(title=f"title: {json.dumps(title)}").draw(None)
    lines = [line.rstrip() for line in (source or "").splitlines()]
    return "\n".join([*lines, f"  %% {TOGETHER if whole else LEFT_OUT}", ""])
