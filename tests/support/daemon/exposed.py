"""The metrics that a table exposes."""

import tempfile
from pathlib import Path

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from controller.daemon.metrics import Metrics
from tests.support.table.simulated.serving import run, serving


def exposition(metrics: Metrics) -> str:
    return generate_latest(metrics.registry).decode()


def exposed() -> set[str]:
    """The names of all figures of a table."""
    found: set[str] = set()

    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with serving(Path(folder)) as one:
                metrics = Metrics("bj-1")
                metrics.follow(one.table)
                for family in text_string_to_metric_families(exposition(metrics)):
                    total = "_total" if family.type == "counter" else ""
                    found.add(f"{family.name}{total}")

    run(main())
    return {name for name in found if not name.endswith("_created")}
