"""Prometheus metrics of a served table. No label names a card, a seat, a decision or a person."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from controller.api.http import CloseReason, ConnectionLimits, ConnectionTable
from controller.audit.errors import LogFailed
from controller.audit.format.records import ChainPosition, RecordEntry
from controller.procedure.model.effects import Told
from controller.procedure.model.holds import REFUSED, TAKEN
from controller.procedure.model.row import Decision
from controller.rules.irregularities import Irregularity
from controller.table.intake import EventAnswer
from controller.table.loop import RecordWriter, RequestResult
from controller.table.running import RunningTable
from drivers.devices import LinkState

_APPENDS: Final = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 3.0, 10.0,
)  # fmt: skip
_LAGS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class Metrics:
    """The counters of a running table."""

    def __init__(self, name: str) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._name = name
        self._round: int | None = None
        self.appended = Histogram(
            "holecard_append_seconds",
            "How long the record took until an entry was on the disk.",
            buckets=_APPENDS,
            registry=self.registry,
        ).observe
        self.late = Histogram(
            "holecard_loop_lag_seconds",
            "How late the table's loop was.",
            buckets=_LAGS,
            registry=self.registry,
        ).observe
        self._rounds = Counter(
            "holecard_rounds", "Rounds that began since the start.", registry=self.registry
        )
        self._decisions = Counter(
            "holecard_decisions", "Events that the procedure took.", registry=self.registry
        )
        self._refusals = Counter(
            "holecard_refusals",
            "Events that the procedure refused, by the reason's name.",
            ["id"],
            registry=self.registry,
        )
        self._irregularities = Counter(
            "holecard_irregularities", "Irregularities.", ["kind"], registry=self.registry
        )
        self._connections = Gauge(
            "holecard_connections", "Open connections.", ["server"], registry=self.registry
        )
        self._connections_closed = Counter(
            "holecard_connections_closed",
            "Connections that a server closed before their clients did.",
            ["server", "reason"],
            registry=self.registry,
        )
        for kind in Irregularity:
            self._irregularities.labels(kind.value)

    def connections(self, server: str, limits: ConnectionLimits) -> ConnectionTable:
        """Returns the table of a server's connections, which is counted here."""

        def closed(reason: CloseReason) -> None:
            self._connections_closed.labels(server, reason).inc()

        for reason in get_args(CloseReason):
            self._connections_closed.labels(server, reason)
        made = ConnectionTable(server, limits, closed)
        self._connections.labels(server).set_function(lambda: len(made))
        return made

    def follow(self, table: RunningTable) -> None:
        """Count the results of this table from now on."""
        self._round = table.shown.state.round
        self.registry.register(_TableCollector(self._name, table))
        table.add_result_listener(self.count_result)

    def count_result(self, done: RequestResult) -> None:
        """Count a durable result."""
        for one in done.answered:
            if isinstance(one.answer, Decision):
                self._decisions.inc()
            else:
                self._refusals.labels(one.answer.id).inc()
            for kind in irregularities(one):
                self._irregularities.labels(kind).inc()
        if self._round is not None and done.state.round > self._round:
            self._rounds.inc(done.state.round - self._round)
            self._round = done.state.round


def irregularities(answered: EventAnswer) -> Iterator[str]:
    """The irregularities of an answer: refused and accepted ones, and those reported to the
    floor."""
    answer = answered.answer
    if not isinstance(answer, Decision):
        if answer.id in REFUSED:
            yield REFUSED[answer.id].value
        return
    shown = TAKEN.get(type(answered.event).__name__)
    if shown is not None:
        yield shown.value
    for effect in answer.effects:
        if isinstance(effect, Told) and effect.who == "floor":
            yield effect.what


class _TableCollector(Collector):
    """Collects the current state of the table."""

    def __init__(self, name: str, table: RunningTable) -> None:
        self._name = name
        self._running = table

    def collect(self) -> Iterator[Metric]:
        table = self._running.table
        info = GaugeMetricFamily("holecard_table_info", "Which table it is.", labels=["table"])
        info.add_metric([self._name], 1)
        yield info
        figures: tuple[tuple[str, str, float], ...] = (
            ("holecard_record_seq", "Sequence number of the last entry on disk.", table.seq),
            ("holecard_queue_length", "Requests in the queue of the table.", table.waiting),
            ("holecard_append_waits_seconds", "The record has not answered.", table.append_seconds),
            ("holecard_stopped", "1 while nothing can be done.", bool(self._running.shown.stopped)),
            ("holecard_round", "The number of the last round.", table.state.round),
        )
        room = self._running.log.room()
        figures = (
            *figures,
            ("holecard_record_full", "1: the next segment cannot be made.", bool(room.problem)),
            ("holecard_record_room_bytes", "Bytes left in segments that exist.", room.left),
        )
        for name, text, value in figures:
            yield GaugeMetricFamily(name, text, value)
        dropped = "Entries that were not recorded since the start: the record has their number."
        yield CounterMetricFamily("holecard_unrecorded", dropped, table.unrecorded.total)
        yield from self._links()

    def _links(self) -> Iterator[Metric]:
        served = self._running.devices.supervised
        names = ["device", "class"]
        state = GaugeMetricFamily(
            "holecard_link_state",
            "1 for the current state of a device, 0 for the others.",
            labels=[*names, "state"],
        )
        held = GaugeMetricFamily(
            "holecard_link_held", "1 while a device's log waits for two people.", labels=names
        )
        gaps = CounterMetricFamily(
            "holecard_link_gaps", "Records that came before one that was missing.", labels=names
        )
        resends = CounterMetricFamily(
            "holecard_link_resends", "Records that came again though they were kept.", labels=names
        )
        for serial, one in served.items():
            labels, supervisor = [serial, one.config.device], one.supervisor
            for found in LinkState:
                state.add_metric([*labels, found.value], float(supervisor.state is found))
            held.add_metric(labels, float(supervisor.held is not None))
            gaps.add_metric(labels, supervisor.gaps)
            resends.add_metric(labels, supervisor.repeats)
        yield from (state, held, gaps, resends)


PATH = "/metrics"


def metrics_app(registry: CollectorRegistry) -> Starlette:
    """The application that serves the metrics, in the table's event loop."""

    async def figures(request: Request) -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    # Rejects other host names, against DNS rebinding.
    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    return Starlette(routes=[Route(PATH, figures, methods=["GET"])], middleware=[hosts])


class TimedWriter:
    """A record writer that reports the duration of each append."""

    def __init__(self, inner: RecordWriter, took: Callable[[float], None]) -> None:
        self._inner = inner
        self._took = took

    @property
    def failed(self) -> LogFailed | None:
        return self._inner.failed

    async def append(self, *entries: RecordEntry) -> tuple[ChainPosition, ...]:
        """Append, and report the duration if it succeeded."""
        began = time.perf_counter()
        made = await self._inner.append(*entries)
        self._took(time.perf_counter() - began)
        return made

    async def close(self) -> None:
        await self._inner.close()
