"""The C side compiles without a warning and is held to the same golden bytes."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firmware_protocol import vectors
from firmware_protocol.generate import Field
from firmware_protocol.messages import FrameKind
from firmware_protocol.tablelink import Deframer, Frame, FrameDamage, cobs_encode, crc32c
from tests.conftest import require
from tests.support.firmware_protocol.framing import PIECES
from tests.support.firmware_protocol.strategies import catalogue

FLAGS = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wpedantic", "-Wconversion", "-Wshadow"]
Ask = Callable[[list[str]], list[str]]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require(shutil.which("gcc"), "gcc, to compile the C side")
    made = tmp_path_factory.mktemp("c") / "tablelink_check"
    with resources.as_file(resources.files("firmware_protocol").joinpath("c")) as folder:
        sources = [str(folder / f"{name}.c") for name in ("tablelink_frame", "tablelink_check")]
        done = subprocess.run(
            ["gcc", *FLAGS, *sources, "-o", str(made)],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture(scope="module")
def ask(program: Path) -> Ask:
    """Lines in, lines out, as tablelink_check.c has them."""

    def run(lines: list[str]) -> list[str]:
        done = subprocess.run(
            [program],
            input="".join(f"{line}\n" for line in lines),
            capture_output=True,
            text=True,
            timeout=100,
            check=True,
        )
        return done.stdout.splitlines()

    return run


def h(data: bytes | str) -> str:
    return (data.hex() if isinstance(data, bytes) else data) or "-"


def test_crc_and_cobs(ask: Ask) -> None:
    cobs = vectors.load("cobs")
    answers = {
        **{f"crc {h(one['bytes'])}": one["crc32c"] for one in vectors.load("crc")},
        **{f"cobs {h(one['decoded'])}": one["encoded"] for one in cobs["good"]},
        **{f"uncobs {h(one['encoded'])}": h(one["decoded"]) for one in cobs["good"]},
        **{f"uncobs {one}": "no" for one in cobs["bad"]},
        f"cobs {'11' * 255}": "no",
    }
    assert ask(list(answers)) == list(answers.values())


def test_frames(ask: Ask) -> None:
    frames = vectors.load("frames")
    lines = [
        f"frame {one['version']} {int(FrameKind[one['kind']])} {one['session']} "
        f"{one['counter']} {one['payload']}"
        for one in frames
    ]
    assert ask(lines) == [one["wire"] for one in frames]
    assert ask([f"frame 1 2 1 0 {'00' * 47}", f"frame 1 2 0 0 {'00' * 48}"]) == ["no", "no"]


def heard(stream: bytes) -> str:
    words = [
        f"damage:{one.cause.value}"
        if isinstance(one, FrameDamage)
        else f"frame:{one.version}:{int(one.kind)}:{one.session}:{one.counter}:{h(one.payload)}"
        for one in Deframer().feed(stream)
    ]
    return " ".join([*words, "."])


def test_damage(ask: Ask) -> None:
    streams = [bytes.fromhex(one["stream"]) for one in vectors.load("damage")]
    assert ask([f"feed {h(stream)}" for stream in streams]) == [heard(one) for one in streams]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(streams=st.lists(st.lists(PIECES, max_size=6).map(b"".join), min_size=1, max_size=10))
def test_c_and_python_decode_the_same(ask: Ask, streams: list[bytes]) -> None:
    assert ask([f"feed {h(stream)}" for stream in streams]) == [heard(one) for one in streams]


def test_wrong_headers_are_decoded_alike(ask: Ask) -> None:
    """Every first byte and a few lengths, with a right CRC."""
    streams = []
    for first in range(256):
        for size in (8, 48, 96, 200):
            for said in (size, size ^ 1):
                raw = bytes([first, said]) + bytes(6 + size)
                streams.append(cobs_encode(raw + crc32c(raw).to_bytes(4, "little")) + b"\0")
    assert ask([f"feed {h(stream)}" for stream in streams]) == [heard(one) for one in streams]


def laid_out(name: str, fields: tuple[Field, ...], data: bytes) -> tuple[str, str]:
    """The question for tablelink_check, and its answer as the catalogue has the offsets."""
    words = [
        f"{place.field.name}={h(data[place.offset : place.offset + place.size])}"
        for place in catalogue().placed(fields)
    ]
    return f"fields {name} {h(data)}", " ".join([*words, "."])


def test_structs_match_the_golden_bytes(ask: Ask) -> None:
    kinds = {one.name: one for one in catalogue().messages}
    layouts = {one.name.lower(): one for one in catalogue().layouts}
    pairs: list[tuple[str, str]] = []
    for one in vectors.load("messages"):
        kind = kinds[one["message"]]
        if kind.fields:
            pairs.append(laid_out(kind.name.lower(), kind.fields, bytes.fromhex(one["body"])))
        whole: Any = bytes.fromhex(one["plaintext"])
        if len(whole) == 56:
            pairs.append(laid_out(f"{kind.kind}_plaintext", layouts[kind.kind].fields, whole))
    frames = {one.kind: one for one in catalogue().frames}
    for one in vectors.load("frames"):
        fields = frames[one["kind"]].fields
        if fields:
            pairs.append(laid_out(one["kind"].lower(), fields, bytes.fromhex(one["payload"])))
    assert ask([question for question, _ in pairs]) == [answer for _, answer in pairs]
    header = Frame(FrameKind.DATA, 0x1234, 5, bytes(72)).header()
    assert ask([f"fields header {header.hex()}"]) == [
        "version_kind=18 n=48 session=3412 counter=05000000 ."
    ]


def test_the_header_compiles_alone(tmp_path: Path) -> None:
    """Every size and offset in it is asserted at compile time; C++ takes it too."""
    with resources.as_file(resources.files("firmware_protocol").joinpath("c")) as folder:
        for compiler, suffix, standard in (("gcc", "c", "c11"), ("g++", "cpp", "c++17")):
            require(shutil.which(compiler), f"{compiler}, to compile the C header")
            source = tmp_path / f"alone.{suffix}"
            source.write_text('#include "tablelink_messages.h"\n#include "tablelink_frame.h"\n')
            done = subprocess.run(
                [compiler, f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                 "-I", str(folder), str(source)],
                capture_output=True,
                text=True,
                timeout=100,
                check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
