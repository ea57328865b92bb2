"""The control socket: what it understands, what it refuses, who may use it."""

from __future__ import annotations

import asyncio
import json
import select
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from firmware_protocol.conformance import Profile
from firmware_protocol.device import (
    Answer,
    Break,
    CannotDo,
    Chord,
    ControlRequest,
    CutPower,
    Describe,
    Draw,
    Firmware,
    Freeze,
    InjectDefect,
    LetGo,
    LineNoise,
    Load,
    MoveCover,
    MoveDoor,
    Plug,
    Press,
    Put,
    Retract,
    RingMemory,
    ServiceSwitch,
    SetJam,
    SetLamp,
    ShufflePace,
    TamperWith,
)
from firmware_protocol.messages import DeviceClass
from hil.control import (
    BY_CLASS,
    ControlClient,
    ControlLost,
    ControlServer,
    InvalidRequest,
    RequestRefused,
    page,
    parse_request,
)
from hil.control.page import (
    ANSWERS,
    CARDS,
    FLAG,
    KINDS,
    LAMPS,
    MECHANISM,
    NUMBER,
    NUMBERS,
    OBJECT,
    OR_NULL,
    READ_BY_CONFORM,
    SEAT,
    TEXT,
    TEXTS,
    ReplyField,
)
from hil.control.socket import MAX_CLIENTS, MAX_LINE_BYTES
from hil.control.verbs import ALL, request_fields
from hil.ports import PathTaken
from tests.support.asynchronous import asynchronous
from tests.support.hil.conform.conform_rig import PROFILES, Rig

SHOE = BY_CLASS[DeviceClass.SHOE]


class _Doer:
    def __init__(self) -> None:
        self.requests: list[ControlRequest] = []

    def __call__(self, request: ControlRequest) -> Answer:
        if isinstance(request, Draw) and request.count > 10:
            raise CannotDo("there are only 10 cards", "count up to 10")
        if isinstance(request, SetJam):
            raise CannotDo("nothing is stuck")
        self.requests.append(request)
        return {"done": len(self.requests)}


@contextmanager
def served(path: Path) -> Iterator[_Doer]:
    """A server in a thread of its own."""
    doer, ready = _Doer(), Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]()

    async def serve() -> None:
        server, stop = ControlServer(path, SHOE, doer), asyncio.Event()
        await server.start()
        ready.set_result((asyncio.get_running_loop(), stop))
        await stop.wait()
        await server.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    loop, stop = ready.result(10)
    try:
        yield doer
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
    assert not path.exists()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "control"


@pytest.fixture
def doer(path: Path) -> Iterator[_Doer]:
    """What a server at `path` has done."""
    with served(path) as made:
        yield made


def raw(path: Path, *lines: bytes) -> list[Any]:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(5)
        sock.connect(str(path))
        with sock.makefile("rwb") as file:
            answers = []
            for line in lines:
                file.write(line + b"\n")
                file.flush()
                answers.append(json.loads(file.readline()))
            return answers


def test_requests_are_done_in_order_and_answered(path: Path, doer: _Doer) -> None:
    with ControlClient(path) as control:
        assert control.do(Describe()) == {"done": 1}
        assert control.do(Draw(count=2, read="low")) == {"done": 2}
        assert control.ask(b'{"do": "line", "drop": 1}') == {"done": 3}
    assert doer.requests == [Describe(), Draw(count=2, read="low"), LineNoise(drop=1.0)]


BAD = [
    (b"", "line", '{"do": VERB, ...}'),
    (b"nonsense", "line", '{"do": VERB, ...}'),
    (b"[1, 2]", "line", '{"do": VERB, ...}'),
    (b"null", "line", '{"do": VERB, ...}'),
    (b'{"do": "draw"', "line", '{"do": VERB, ...}'),
    (b"[" * 5000, "line", '{"do": VERB, ...}'),
    (b'"\xff"', "line", '{"do": VERB, ...}'),
    (b"{}", "do", "describe, service"),
    (b'{"do": 7}', "do", "describe, service"),
    (b'{"do": null}', "do", "describe, service"),
    (b'{"do": ["draw"]}', "do", "describe, service"),
    (b'{"do": "dance"}', "do", "describe, service"),
    (b'{"do": "Draw"}', "do", "describe, service"),
    (b'{"do": "press", "seat": 1, "button": "hit"}', "do", "load, draw, retract"),  # a station's
    (b'{"do": "draw", "number": 3}', "number", "count, dwell_ms, read"),
    (b'{"do": "describe", "x": 1}', "x", "none"),
    (b'{"do": "service"}', "on", "true or false"),
    (b'{"do": "service", "on": true, "on": false}', "on", "each field once"),
    (b'{"do": "service", "on": true, "do": "service"}', "do", "each field once"),
    (b'{"do": "service", "on": true, "\\u006fn": true}', "on", "each field once"),
    (b'{"do": "service", "on": 1}', "on", "true or false"),
    (b'{"do": "service", "on": "true"}', "on", "true or false"),
    (b'{"do": "service", "on": null}', "on", "true or false"),
    (b'{"do": "draw", "count": 0}', "count", "a whole number from 1 to 10000"),
    (b'{"do": "draw", "count": 10001}', "count", "a whole number from 1 to 10000"),
    (b'{"do": "draw", "count": 1.5}', "count", "a whole number from 1 to 10000"),
    (b'{"do": "draw", "count": "3"}', "count", "a whole number from 1 to 10000"),
    (b'{"do": "draw", "count": true}', "count", "a whole number from 1 to 10000"),
    (b'{"do": "draw", "read": "badly"}', "read", "foreign, low, no_index"),
    (b'{"do": "draw", "confidence": 101}', "confidence", "from 0 to 100 or null"),
    (b'{"do": "line", "flip": 1.01}', "flip", "a number from 0 to 1"),
    (b'{"do": "line", "flip": -0.01}', "flip", "a number from 0 to 1"),
    (b'{"do": "line", "flip": NaN}', "line", '{"do": VERB, ...}'),
    (b'{"do": "line", "seed": 99999999999999999999999999}', "seed", "a whole number, of 64 bits"),
    (b'{"do": "line", "seed": ' + b"9" * 5000 + b"}", "line", '{"do": VERB, ...}'),
    (b'{"do": "power", "at": "sometime"}', "at", "in_commit or now"),
    (b'{"do": "power", "off_ms": -1}', "off_ms", "a whole number from 0 to 3600000"),
    (b'{"do": "load", "cards": "Ah"}', "cards", "a list of: a card"),
    (b'{"do": "load", "cards": ["Ah", "1h"]}', "cards", "a list of: a card"),
    (b'{"do": "load", "cards": ["Ah\\n"]}', "cards", "a list of: a card"),
    (b'{"do": "load", "decks": 13}', "decks", "a whole number from 0 to 12"),
    (b'{"do": "firmware", "version": ""}', "version", "1 to 32 characters"),
    (b'{"do": "jam"}', "code", "double_feed, exit_blocked"),
]


def test_an_invalid_request_is_rejected_without_side_effects(path: Path, doer: _Doer) -> None:
    answers = raw(path, *(line for line, _, _ in BAD))
    for (line, where, allowed), answer in zip(BAD, answers, strict=True):
        assert (answer["ok"], answer["where"], bool(answer["error"])) == (False, where, True), line
        assert allowed in answer["allowed"], (line, answer)
    assert doer.requests == []


@pytest.mark.usefixtures("doer")
def test_a_denied_request_names_the_verb(path: Path) -> None:
    with ControlClient(path) as control:
        with pytest.raises(RequestRefused, match="draw: there are only 10 cards; allowed: count"):
            control.do(Draw(count=11))
        with pytest.raises(RequestRefused, match=r"^jam: nothing is stuck$"):
            control.do(SetJam(code=None))
        with pytest.raises(RequestRefused) as refused:
            control.do(Press(seat=1, button="hit"))
        assert refused.value.where == "do"
        assert control.do(Describe()) == {"done": 1}


@pytest.mark.usefixtures("doer")
def test_it_is_for_its_owner_only_and_appears_whole(path: Path, tmp_path: Path) -> None:
    assert path.stat().st_mode == stat.S_IFSOCK | 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["control"]


@pytest.mark.usefixtures("doer")
def test_several_clients_at_a_time_and_not_too_many(path: Path) -> None:
    clients = [ControlClient(path) for _ in range(MAX_CLIENTS)]
    for number, one in enumerate(clients, 1):
        assert one.do(Describe()) == {"done": number}
    with ControlClient(path) as late:
        shut = select.poll()
        shut.register(late, select.POLLRDHUP)
        assert shut.poll(5_000)  # also one that asks when it has been turned away is told why
        with pytest.raises(RequestRefused, match="too many clients"):
            late.do(Describe())
        with pytest.raises(ControlLost):
            late.do(Describe())
    for one in clients:
        one.close()


@pytest.mark.usefixtures("doer")
def test_a_line_without_end_is_cut_off_and_the_others_go_on(path: Path) -> None:
    with ControlClient(path) as other, ControlClient(path) as long:
        with pytest.raises(RequestRefused, match="too long"):
            long.ask(b" " * (MAX_LINE_BYTES + 10))
        with pytest.raises(ControlLost):
            long.do(Describe())
        padded = b'{"do": "describe"' + b" " * (MAX_LINE_BYTES - 100) + b"}"
        assert other.ask(padded) == {"done": 1}


@pytest.mark.usefixtures("doer")
def test_half_a_line_is_no_request(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(path))
        sock.sendall(b'{"do": "describe"}')
    with ControlClient(path) as control:
        assert control.do(Describe()) == {"done": 1}


@pytest.mark.usefixtures("doer")
def test_requests_are_split_at_line_ends(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(5)
        sock.connect(str(path))
        for byte in b'{"do": "describe"}\n{"do": "dr':
            sock.send(bytes((byte,)))
        sock.send(b'aw"}\n{"do": "retract"}\n')
        with sock.makefile("rb") as file:
            done = [json.loads(file.readline())["answer"]["done"] for _ in range(3)]
    assert done == [1, 2, 3]


def test_a_server_that_closes_the_connection_is_lost(tmp_path: Path) -> None:
    def served(listener: socket.socket) -> None:
        one, _ = listener.accept()
        one.recv(1)
        one.close()  # with the rest of the line unread: the client's end is reset

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "control"))
        listener.listen()
        server = threading.Thread(target=served, args=(listener,))
        server.start()
        with (
            ControlClient(tmp_path / "control") as control,
            pytest.raises(ControlLost, match="has stopped; its own output says why"),
        ):
            control.do(Describe())
        server.join(5)


def test_clients_that_stay_do_not_hold_the_end_up(path: Path) -> None:
    with served(path):
        left = ControlClient(path)
        left.do(Describe())
    with pytest.raises(ControlLost):
        left.do(Describe())
    left.close()
    with pytest.raises(ControlLost, match="No such file"):
        ControlClient(path)


@pytest.mark.parametrize("turns", range(6))
@asynchronous
async def test_a_client_that_has_just_connected_is_disconnected_at_the_end(
    path: Path, turns: int
) -> None:
    server = ControlServer(path, SHOE, _Doer())
    await server.start()
    with socket.socket(socket.AF_UNIX) as client:
        client.setblocking(False)
        client.connect(str(path))  # done at once; the server accepts in its next turns
        for _ in range(turns):
            await asyncio.sleep(0)
        await server.close()
        with suppress(ConnectionResetError):
            async with asyncio.timeout(5):
                assert await asyncio.get_running_loop().sock_recv(client, 1) == b""


@pytest.mark.usefixtures("doer")
def test_a_path_in_use_is_not_replaced(path: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(PathTaken, match="a process listens"):
        ControlServer(path, SHOE, _Doer())
    with ControlClient(path) as control:  # answered after the attempt to connect
        assert control.do(Describe()) == {"done": 1}
    with pytest.raises(PathTaken, match="is no socket"):
        ControlServer(tmp_path / "file", SHOE, _Doer())
    assert (tmp_path / "file").read_text() == "mine"


def test_a_dead_socket_is_replaced_and_a_long_path_works(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 50)
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "dead"))
    (tmp_path / "dead").rename(folder / "control")
    with served(folder / "control"), ControlClient(folder / "control") as control:
        assert control.do(Load()) == {"done": 1}


# --- words ----------------------------------------------------------------------------------------


def test_every_request_is_parsed_and_described() -> None:
    assert set(ALL) == {verb for verbs in BY_CLASS.values() for verb in verbs}
    words = {(verb, word.name): word for verb in ALL for word in request_fields(ALL[verb])}
    assert [name for name, word in words.items() if not word.allowed] == []
    chord = parse_request(b'{"do": "chord", "seat": 3, "buttons": ["hit", "stand"]}', ALL)
    assert chord == Chord(seat=3, buttons=("hit", "stand"))
    with pytest.raises(
        InvalidRequest, match="seat: is missing; allowed: a whole number from 1 to 15"
    ):
        parse_request(b'{"do": "chord", "buttons": []}', ALL)


def test_the_page_is_that_of_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert page.main(["--check"]) == 0
    assert [verb for verb in ALL if f"### {verb}\n" not in page.page()] == []
    stale = tmp_path / "CONTROL.md"
    monkeypatch.setattr(page, "PAGE", stale)
    assert (page.main(["--check"]), stale.exists()) == (1, False)
    assert [page.main([option]) for option in ("--write", "--check")] == [0, 0]


OUTLETS: Final = {"port", "usb_address"}
"""What a stand knows only once it is plugged in somewhere."""


def texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


IS: Final[dict[str, Callable[[Any], bool]]] = {
    FLAG: lambda value: isinstance(value, bool),
    NUMBER: number,
    TEXT: lambda value: isinstance(value, str),
    TEXTS: texts,
    NUMBERS: lambda value: isinstance(value, list) and all(map(number, value)),
    CARDS: texts,
    OBJECT: lambda value: isinstance(value, dict),
}
EVERYWHERE: Final[tuple[ControlRequest, ...]] = (
    ServiceSwitch(on=True),
    ServiceSwitch(on=False),
    Break("nak-ignored"),
    Break("nak-ignored", on=False),
    TamperWith("case"),
    InjectDefect("clock", arg=7),
    InjectDefect("clock", on=False),
    LineNoise(flip=0.1),
    LineNoise(),
    Plug(connected=False),
    Plug(connected=True, other_port=True),
    Freeze(on=True),
    Freeze(on=False),
    RingMemory("save"),
    RingMemory("restore"),
    RingMemory("replace"),
    Firmware("2.0"),
)
LAST: Final[tuple[ControlRequest, ...]] = (
    CutPower(at="in_commit"),
    RingMemory("fill"),
    CutPower(),
)
OWN: Final[dict[Profile, tuple[ControlRequest, ...]]] = {
    "shoe": (
        Load(cards=("Ac", "2c", "cut"), decks=1),
        Draw(force=True),
        Retract(),
        MoveCover(open=True),
        MoveCover(open=True),
        MoveCover(open=False),
        SetJam("stuck"),
        SetJam(None),
    ),
    "shuffler": (
        Put(decks=1),
        MoveDoor(open=True),
        MoveDoor(open=False),
        ShufflePace(shuffle_ms=10),
        SetJam("motor"),
        SetJam(None),
    ),
    "station": (
        Press(1, "hit", held_ms=None),
        LetGo(1, "hit"),
        Chord(1, ("yes", "no")),
        SetLamp(1),
    ),
}


def check(answer: dict[str, Any], told: tuple[ReplyField, ...]) -> None:
    kinds = {one.name: one.kind for one in told}
    assert set(kinds) - set(answer) <= OUTLETS
    for name, value in answer.items():
        null = value is None and kinds[name].endswith(OR_NULL)
        assert null or IS[kinds[name].removesuffix(OR_NULL)](value), name


@pytest.mark.parametrize("profile", PROFILES)
def test_each_verb_answers_as_the_page_describes(profile: Profile, tmp_path: Path) -> None:
    rig = Rig(tmp_path, profile)
    for request in (*EVERYWHERE, *OWN[profile], *LAST):
        answer = rig.request(request)
        if type(request) is RingMemory and request.what == "fill":  # it ran into the cut before it
            assert answer == {"power": "cut", "at": "in_commit"}
        else:
            check(answer, ANSWERS[type(request)])
        asyncio.run(rig.wire.sleep(rig.wire.now() + 1_000_000))
        looked = rig.request(Describe())
        check(looked, ANSWERS[Describe])
        check(looked["mechanism"], MECHANISM[profile])
        for seat in looked["mechanism"].get("seats", {}).values():
            check(seat, SEAT)
            check(seat["lamps"], LAMPS)


def test_every_verb_has_its_answer() -> None:
    tried = {type(request) for many in (EVERYWHERE, LAST, *OWN.values()) for request in many}
    assert set(ANSWERS) == set(ALL.values()) == tried | {Describe}
    told = [one for many in (*ANSWERS.values(), *MECHANISM.values(), SEAT, LAMPS) for one in many]
    assert {one.kind.removesuffix(OR_NULL) for one in told} == set(KINDS) == set(IS)
    read = {word for path in READ_BY_CONFORM for word in path.split(".")}
    assert read - {"N"} <= {one.name for one in told}
