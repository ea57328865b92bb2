"""Serves a table: builds its parts, starts them in order and stops them in order.

    code = await serve(load_table("tables/mega-1.toml"), stop)

Ports are bound before the record is opened, so that a failed start has no side effects. Errors of
files, keys, people, ports or the record are raised unchanged; other exceptions in an
ExceptionGroup.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias

import structlog
from msgspec import Struct
from msgspec.structs import replace

from controller.api.http import (
    SHUTDOWN_TIMEOUT,
    ConnectionLimits,
    Server,
    application,
    find_session,
)
from controller.api.service import ServedTable, TableApi
from controller.audit.errors import LogFailed, disk_fails
from controller.audit.log import Log, SystemClock
from controller.audit.text import minutes_words
from controller.commands import real_path
from controller.config import ControlPlace, TableConfig
from controller.daemon.logging import log_context, log_result
from controller.daemon.metrics import Metrics, TimedWriter, metrics_app
from controller.daemon.people_watch import PeopleWatch
from controller.daemon.sockets import HOST, ListeningSockets, listening
from controller.daemon.watchdog import (
    NO_MANAGER,
    Notify,
    Vitals,
    Watchdog,
    links_of,
    status,
)
from controller.errors import UsageProblem
from controller.people import PeopleDesk, PeopleFile
from controller.procedure.prompts import Texts
from controller.screens.app import ScreensApp
from controller.screens.common.texts import load
from controller.table.loop import (
    REAL_ENVIRONMENT,
    RecordWriter,
    RequestResult,
    TableEnvironment,
    parts_of,
    required_section,
)
from controller.table.running import RunningTable, SpaceMonitor, WitnessMonitor
from drivers.keys import KeyProblem

CONTROL_LIMITS: Final = ConnectionLimits(total=128, per_address=64)
PAGE_LIMITS: Final = ConnectionLimits(total=640, per_address=448)
"""Each browser uses up to six connections, and a stream. Behind a proxy 200 browsers that only
watch share one address: their streams are less than half of its limit."""
METRICS_LIMITS: Final = ConnectionLimits(total=32, per_address=16)

NAME: Final = ".cases-"
"""Suffix of the record's name."""


@contextmanager
def case_folder(record: Path, where: str) -> Iterator[Path]:
    """Create a private directory, and delete it at the end. Raises UsageProblem for `where` in the
    table file, and DiskFails."""
    place = real_path(record)
    try:
        made = Path(tempfile.mkdtemp(prefix=place.name + NAME, dir=place.parent))
    except OSError as problem:
        broken = disk_fails(place.parent, problem)
        if broken is not None:
            raise broken from None
        why = (problem.strerror or str(problem)).lower()
        what = f"no directory for cases can be made in {str(place.parent)!a}: {why}"
        allowed = "room there that this user may write to, or no [screens]"
        raise UsageProblem(where, what, allowed) from None
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def remove_stale(record: Path, ours: Path) -> None:
    """Delete directories of controllers that were killed. The caller must hold the record's lock,
    so that no other controller uses them."""
    place = real_path(record)
    with suppress(OSError):
        for one in list(place.parent.iterdir()):
            if one.name.startswith(place.name + NAME) and one.is_dir() and one != ours:
                shutil.rmtree(one, ignore_errors=True)


_log: Final = structlog.get_logger("daemon")
_Work: TypeAlias = Coroutine[Any, Any, None]


class ReadyNotice(Struct, frozen=True):
    """The addresses of a table that is being served."""

    name: str
    socket: Path
    port: int | None
    pages: str = ""
    """The URL of the pages; empty without pages."""

    def __str__(self) -> str:
        also = "" if self.port is None else f", http://{HOST}:{self.port}"
        pages = f", screens {self.pages}" if self.pages else ""
        return f"ready: {self.name} at {self.socket}{also}{pages}"


class ServeCallbacks(Struct, frozen=True):
    """Callbacks for the progress of a served table."""

    notify: Notify = NO_MANAGER
    ready: Callable[[ReadyNotice], None] = lambda ready: None
    ending: Callable[[], None] = lambda: None
    """Called when the shutdown begins."""


class ServeParts(Struct, frozen=True):
    """What serving needs in addition to the table's parts."""

    people: PeopleFile
    control: ControlPlace
    texts: Texts | None
    """The texts of the pages; None without pages."""
    unwitnessed: timedelta
    """Time without a cosignature after which that is reported."""


async def serve(
    config: TableConfig,
    stop: asyncio.Event | None = None,
    *,
    callbacks: ServeCallbacks = ServeCallbacks(),  # noqa: B008 - nothing in it changes
    world: TableEnvironment = REAL_ENVIRONMENT,
) -> int:
    """Serve until `stop` is set, and return the exit code. Without `stop`, until cancelled.

    Raises UsageProblem or RecordProblem if it cannot be served, LogFailed if the record cannot be
    written, and ExceptionGroup for a fault.
    """
    stop = stop or asyncio.Event()
    given = serve_parts(config)
    parts = parts_of(config)
    metrics = Metrics(config.name)
    failed = asyncio.Event()
    running = RunningTable(parts, watched_environment(world, metrics, failed))
    with ExitStack() as last:
        last.enter_context(log_context(config.name, running))
        screens = config.equipment.screens
        sockets = last.enter_context(listening(given.control, config.file, screens))
        scratch: Path | None = None
        if screens is not None:
            scratch = last.enter_context(case_folder(parts.record, f"{config.file}: screens"))
        async with running as table:
            sockets.check()
            metrics.follow(table)
            # Log lines are written after the displays have been notified.
            table.add_result_listener(_log_later)
            if scratch is not None:
                await asyncio.to_thread(remove_stale, parts.record, scratch)
            served = _TableService(table, given, sockets, metrics, callbacks, world, scratch)
            await served.run(stop, failed)
        _log.info("ended")
    return 0


class _TableService:
    """The services of a running table: API, pages, metrics, watchdog, monitors."""

    def __init__(
        self,
        table: RunningTable,
        given: ServeParts,
        sockets: ListeningSockets,
        metrics: Metrics,
        callbacks: ServeCallbacks,
        world: TableEnvironment,
        scratch: Path | None,
    ) -> None:
        self._table = table
        self._sockets = sockets
        self._callbacks = callbacks
        self._clock = world.clock
        self._moment = moment = world.utc or SystemClock()
        self._desk = PeopleDesk(
            given.people, table.record, table.boot, table.standing, shut=lambda: table.shut
        )
        self._news = PeopleWatch(self._desk, given.people, moment)
        self._witnessing = WitnessMonitor(table, table.parts.record, moment, given.unwitnessed)
        log, seats = table.log, table.parts.game.seats
        self._space = SpaceMonitor(table, log.room, log.spares.retry, seats)
        self._serving = ServedTable(table, self._desk, moment)
        table.monitor.add_listener(metrics.late)
        self._watchdog = Watchdog(callbacks.notify, self._health, self._status)
        control = application(self._serving)
        api: TableApi = control.state.api
        self._screens = _screens(api, sockets, given.texts, scratch)
        self._servers = [
            Server(
                control,
                sockets.control,
                connections=metrics.connections("control", CONTROL_LIMITS),
                find_session=find_session(api),
            )
        ]
        if self._screens is not None and sockets.screens is not None:
            self._servers.append(_pages_server(self._screens, sockets, metrics))
        if sockets.metrics is not None:
            self._servers.append(
                Server(
                    metrics_app(metrics.registry),
                    [sockets.metrics],
                    connections=metrics.connections("metrics", METRICS_LIMITS),
                )
            )

    async def run(self, stop: asyncio.Event, failed: asyncio.Event) -> None:
        """Run until `stop` is set, or the record has failed."""
        try:
            async with asyncio.TaskGroup() as group:

                def begin(work: Callable[[], _Work], name: str) -> asyncio.Task[None]:
                    return group.create_task(work(), name=f"{self._table.parts.name}: {name}")

                serving = [begin(one.run_until_stopped, "its API") for one in self._servers]
                for server in self._servers:
                    await server.answering.wait()
                others = [
                    begin(self._news.run, "its people"),
                    begin(self._witnessing.run, "its witnesses"),
                    begin(self._space.run, "its disk"),
                ]
                if self._screens is not None:
                    others.append(begin(self._screens.run, "its pages"))
                self._is_ready()
                others.append(begin(self._watchdog.run, "its watchdog"))
                await _either(stop, failed)
                self._ends("told to stop" if stop.is_set() else "the record has failed")
                await asyncio.wait(serving, timeout=2 * SHUTDOWN_TIMEOUT)
                for task in others:
                    task.cancel()
                await self._news.sign_all_out()
        finally:
            if not self._serving.stopping.is_set():  # a fault ends it; the timeout applies too
                self._callbacks.ending()
            await self._close_pages()
            await self._desk.close()

    async def _close_pages(self) -> None:
        """Close the pages, with a timeout, so that they cannot delay making the table safe."""
        if self._screens is None:
            return
        self._screens.end()
        work = asyncio.to_thread(self._screens.close)
        closing = asyncio.create_task(work, name=f"{self._table.parts.name}: its pages")
        done, _ = await asyncio.wait((closing,), timeout=SHUTDOWN_TIMEOUT)
        if not done:
            _log.warning("the pages do not end", seconds=SHUTDOWN_TIMEOUT)
        for task in done:
            task.result()

    def _is_ready(self) -> None:
        place = self._sockets
        port = None if place.tcp is None else int(place.tcp.getsockname()[1])
        pages = "" if self._screens is None else f"{self._screens.address}/"
        ready = ReadyNotice(self._table.parts.name, place.place, port, pages)
        self._callbacks.notify.tell("READY=1", status(self._status()))
        clock = self._moment().quality
        _log.info(
            "ready",
            socket=str(ready.socket),
            port=port,
            pages=pages,
            boot=self._table.boot,
            clock=clock,
        )
        self._callbacks.ready(ready)

    def _ends(self, why: str) -> None:
        """Begin the shutdown: reject new requests."""
        self._callbacks.ending()
        self._callbacks.notify.tell("STOPPING=1", status(f"ending: {why}"))
        _log.info("ending", why=why)
        self._serving.stopping.set()
        if self._screens is not None:
            self._screens.end()
        for server in self._servers:
            server.stop()

    def _health(self) -> Vitals:
        table, monitor = self._table, self._table.monitor
        # Nothing was done while the process did not run, and all of it is done soon now.
        stalled = max(monitor.lag, monitor.late)
        links = links_of(table, self._clock() - round(1_000_000 * stalled))
        return Vitals(monitor.own_lag, max(0.0, table.table.append_seconds - stalled), links)

    def _status(self) -> str:
        """The status line for `systemctl status`, without cards and seats."""
        shown = self._table.shown
        step = f"{shown.state.step.value}, round {shown.state.round}"
        if shown.stopped:
            return f"held at {step}: {shown.stopped}"
        space = self._table.space
        if not space.problem:
            return step
        left = minutes_words(space.minutes)
        return f"{step}; disk full: {space.problem}, {left} of play can be recorded"


def serve_parts(config: TableConfig) -> ServeParts:
    """Raises UsageProblem."""
    file, equipment = config.file, config.equipment
    people = required_section(equipment.people, f"{file}: people", '[people] with file = "..."')
    control = required_section(
        equipment.control, f"{file}: control", '[control] with socket = "..."'
    )
    keys = required_section(equipment.keys, f"{file}: keys", '[keys] with directory = "..."')
    record = required_section(
        equipment.record, f"{file}: record", '[record] with directory = "..."'
    )
    found = PeopleFile(people, keys)
    try:
        found.read()
    except KeyProblem as problem:
        raise UsageProblem(problem.where, problem.what, problem.allowed) from None
    screens = equipment.screens
    texts = None if screens is None else load(screens.texts)
    return ServeParts(found, control, texts, timedelta(hours=record.unwitnessed_hours))


def _screens(
    api: TableApi, sockets: ListeningSockets, texts: Texts | None, scratch: Path | None
) -> ScreensApp | None:
    """The pages, if the table has any."""
    if sockets.screens is None or sockets.pages is None or texts is None or scratch is None:
        return None
    port = int(sockets.screens.getsockname()[1])
    return ScreensApp(api, sockets.pages, port, texts, scratch)


def _pages_server(screens: ScreensApp, sockets: ListeningSockets, metrics: Metrics) -> Server:
    assert sockets.screens is not None
    place = sockets.pages
    certificate, key = (None, None) if place is None else (place.certificate, place.key)
    return Server(
        screens.app,
        [sockets.screens],
        connections=metrics.connections("pages", PAGE_LIMITS),
        find_session=screens.find_session,
        certificate=certificate,
        key=key,
    )


def watched_environment(
    world: TableEnvironment, metrics: Metrics, failed: asyncio.Event
) -> TableEnvironment:
    """The environment with a record writer that is timed, and sets `failed` when it fails."""
    loop = asyncio.get_running_loop()

    def write(log: Log, on_failure: Callable[[LogFailed], None]) -> RecordWriter:
        def both(problem: LogFailed) -> None:
            on_failure(problem)
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(failed.set)

        return TimedWriter(world.write(log, both), metrics.appended)

    return replace(world, write=write)


def _log_later(done: RequestResult) -> None:
    asyncio.get_running_loop().call_soon(log_result, done)


async def _either(first: asyncio.Event, second: asyncio.Event) -> None:
    tasks = [asyncio.create_task(one.wait()) for one in (first, second)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
