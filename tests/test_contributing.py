"""The worked examples of CONTRIBUTING.md, each made in a copy of the repository."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from firmware_protocol.messages import SCHEMA_HASHES
from tests.support.paths import ROOT

PAGE: Final = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
_BLOCK: Final = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A fenced block: a diff, a new file, or commands."""

    kind: str
    file: str
    text: str


def section(title: str) -> list[Block]:
    """Returns the blocks below a heading, up to the next heading."""
    _, _, rest = PAGE.partition(f"\n{title}\n")
    assert rest, title
    return [
        Block(*found) for found in _BLOCK.findall(re.split(r"^##+ ", rest, flags=re.MULTILINE)[0])
    ]


def applied(text: str, changes: list[str]) -> str:
    """Returns the text with the changes of one file. Raises ValueError if a line is not there."""
    lines, at = text.splitlines(), 0
    for change in changes:
        sign, line = change[:1], change[1:]
        if sign == "+":
            lines.insert(at, line)
            at += 1
            continue
        at = lines.index(line, at)
        if sign == "-":
            del lines[at]
        else:
            at += 1
    return "\n".join(lines) + "\n"


def apply_diff(diff: str, root: Path) -> list[str]:
    """Apply a diff of the page. Returns the names of the changed files."""
    _, *files = re.split(r"^\+\+\+ ", diff, flags=re.MULTILINE)
    names = []
    for file in files:
        name, *changes = file.splitlines()
        path = root / name
        path.write_text(applied(path.read_text("utf-8"), changes), "utf-8")
        names.append(name)
    return names


class Copy:
    """A copy of the tracked files, in which commands run with the code of the copy."""

    def __init__(self, root: Path) -> None:
        self.root = root
        tracked = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        # With times and bytecode, so that only what an example changes is compiled again.
        files = [ROOT / name for name in filter(None, tracked.stdout.split("\0"))]
        folders = {file.parent / "__pycache__" for file in files if file.suffix == ".py"}
        for file in [*files, *(code for folder in folders for code in folder.glob("*.pyc"))]:
            if file.is_file():
                copy = root / file.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, copy)

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        program, *words = shlex.split(line)
        start = {"holecard": ["-m", "controller.cli"], "python": []}[program]
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        return subprocess.run(
            [sys.executable, *start, *words],
            cwd=self.root,
            env={**env, "PYTHONPATH": str(self.root)},
            capture_output=True,
            text=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    def succeeds(self, line: str) -> str:
        ran = self.run(line)
        assert ran.returncode == 0, (line, ran.stdout, ran.stderr)
        return ran.stdout

    def follow(self, title: str) -> None:
        """Carry out the blocks below a heading; the changed modules pass the linter."""
        blocks = section(title)
        assert {"sh"} < {block.kind for block in blocks}, title
        changed: list[str] = []
        for kind, file, text in blocks:
            if file:
                (self.root / file).write_text(text, "utf-8")
            elif kind == "diff":
                changed += apply_diff(text, self.root)
            else:
                assert kind == "sh"
                for line in text.splitlines():
                    self.succeeds(line)
        modules = " ".join(name for name in changed if name.endswith(".py"))
        if modules:
            self.succeeds(f"python -m ruff check {modules}")
            self.succeeds(f"python -m ruff format --check {modules}")


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path)


def test_a_game(copy: Copy) -> None:
    copy.follow("### Add a game")
    shown = copy.succeeds("holecard config show two.toml")
    assert re.search(r"^dealer\.soft_17 +stand .*two\.2$", shown, re.MULTILINE)


def test_a_message(copy: Copy) -> None:
    copy.follow("### Add a message to the wire")
    code = (
        "from firmware_protocol.messages import COMMANDS, SCHEMA_HASHES as hashes;"
        "kind = COMMANDS[0x63]; assert kind.decode(kind(True).encode()) == kind(True);"
        f"same = hashes[1].hex() == '{SCHEMA_HASHES[1].hex()}';"
        "print(kind.__name__, kind.SINCE, 'same' if same else 'changed')"
    )
    assert copy.succeeds(f'python -c "{code}"').split() == ["Light", "1", "changed"]
    vectors = "firmware_protocol/vectors/v1"
    # The schema hash is in HELLO, so that what contains a HELLO changes with it.
    for name in ("crc.json", "cobs.json", "chain.json"):
        assert (copy.root / vectors / name).read_bytes() == (ROOT / vectors / name).read_bytes()
    assert '"LIGHT_REPLY"' in (copy.root / vectors / "messages.json").read_text()
    assert "**LIGHT** (command 0x63" in (copy.root / "firmware_protocol/PROTOCOL.md").read_text()


def test_an_irregularity(copy: Copy) -> None:
    copy.follow("### Add an irregularity")
    published = (copy.root / "configs/procedures/classic.md").read_text("utf-8")
    assert "`wager_touched`" in published
    assert "A player handled chips that were locked." in published
    copy.succeeds("holecard procedure --check")


def test_a_prompt(copy: Copy) -> None:
    copy.follow("### Add a prompt")
    texts = copy.succeeds("python -m controller.screens.common.texts")
    assert 'then_shuffle = "then all cards are shuffled"' in texts


def test_a_doctor_check(copy: Copy) -> None:
    copy.follow("### Add a doctor check")
    checked = copy.run("holecard doctor blackjack-1 --json")
    assert "memory" in [check["name"] for check in json.loads(checked.stdout)["checks"]]


def test_every_example_is_made_here() -> None:
    examples = re.findall(r"^### (.*)$", PAGE, re.MULTILINE)
    made = re.findall(r'follow\("### (.*)"\)', Path(__file__).read_text("utf-8"))
    assert examples == made


def test_a_diff_that_does_not_fit_fails() -> None:
    assert applied("a\nb\nc\n", [" a", "+x", "-c", "+d"]) == "a\nx\nb\nd\n"
    for change in (" d", "-d"):
        with pytest.raises(ValueError, match="not in list"):
            applied("a\nb\n", [" a", change, "+x"])


def test_commands_of_the_set_up_are_targets() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    lines = [line for block in section("## Set up, test, lint") for line in block.text.splitlines()]
    inline = re.findall(r"`(make [\w-]+)`", PAGE)
    assert "make setup" in {line.split("  #")[0].strip() for line in lines}
    for line in (*lines, *inline):
        program, target, *words = shlex.split(line, comments=True)
        assert program == "make"
        assert re.search(rf"^{target}:.*## ", makefile, re.MULTILINE), target
        for path in (word.partition("=")[2] for word in words):
            assert (ROOT / path).exists(), path
