"""The `holecard` command: finding subcommands, refusing mistakes, leaving quietly."""

import importlib.metadata
import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from controller import cli
from controller.errors import UsageProblem
from tests.support.paths import ROOT
from tests.support.system.every_command import GOOD, every_command

Install = Callable[..., None]

MODULE = '''\
"""Say hello.

More words.
"""

from controller.errors import UsageProblem


def register(subparsers):
    parser = subparsers.add_parser("hello")
    parser.add_argument("--name", default="table")
    parser.set_defaults(func=run)


def run(args):
    if args.name == "nobody":
        raise UsageProblem("--name", "nobody is there", "a name")
    if args.name == "interrupt":
        raise KeyboardInterrupt
    if args.name == "bug":
        raise ValueError("a bug")
    if args.name == "many":
        for number in range(100_000):
            print(number)
    print("hello", args.name)
    return 1 if args.name == "no" else 0


def register_nothing(subparsers):
    pass


def register_bare(subparsers):
    subparsers.add_parser("hello")
'''


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Announces commands as an installed package would: install(name="module:function")."""
    (tmp_path / "hello_command.py").write_text(MODULE)
    (tmp_path / "broken_command.py").write_text("raise RuntimeError('half written')\n")
    monkeypatch.syspath_prepend(tmp_path)
    points: list[EntryPoint] = []
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda group: [p for p in points if p.group == group]
    )

    def announce(*announced: tuple[str, str]) -> None:
        points.extend(EntryPoint(name, target, cli.GROUP) for name, target in announced)

    yield announce
    sys.modules.pop("hello_command", None)


@pytest.fixture
def _hello(install: Install) -> None:
    install(("hello", "hello_command:register"))


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("dealer", 0, ("hello dealer\n", "")),
        ("no", 1, ("hello no\n", "")),
        ("nobody", 2, ("", "holecard: --name: nobody is there; allowed: a name\n")),
        ("interrupt", 130, ("", "")),
    ],
)
@pytest.mark.usefixtures("_hello")
def test_a_command_of_an_installed_package_runs(
    capsys: pytest.CaptureFixture[str], name: str, code: int, said: tuple[str, str]
) -> None:
    """A user's mistake is one line and exit 2; an interrupt is told by the exit code alone."""
    assert cli.main(["hello", "--name", name]) == code
    assert capsys.readouterr() == said


@pytest.mark.usefixtures("_hello")
def test_a_wrong_argument_is_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["hello", "--seats", "7"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("usage: holecard hello ")
    assert "unrecognized arguments: --seats 7" in err


@pytest.mark.usefixtures("_hello")
def test_a_bug_is_one_line_and_a_report(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not taken for a user's mistake, and its traceback is in a file."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert cli.main(["hello", "--name", "bug"]) == 70
    out, err = capsys.readouterr()
    (report,) = tmp_path.glob("holecard-*.txt")
    line = "internal error: ValueError: a bug"
    assert re.fullmatch(rf"holecard: {line} \(.*/hello_command.py:\d+\); .*: {report}\n", err)
    assert (out, report.stat().st_mode & 0o777) == ("", 0o600)
    assert "Traceback (most recent call last)" in report.read_text()


@pytest.mark.usefixtures("_hello")
def test_a_bug_whose_report_cannot_be_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    assert cli.main(["hello", "--name", "bug"]) == 70
    err = capsys.readouterr().err
    assert "no report can be written (no such file or directory)" in err
    assert err.endswith("; HOLECARD_TRACEBACK=1 prints the traceback\n")
    assert err.count("\n") == 1


@pytest.mark.usefixtures("_hello")
def test_a_bug_can_be_printed_with_its_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLECARD_TRACEBACK", "1")
    assert cli.main(["hello", "--name", "bug"]) == 70
    err = capsys.readouterr().err
    assert err.startswith("holecard: internal error: ValueError: a bug (")
    assert "Traceback (most recent call last)" in err


@pytest.mark.parametrize(
    ("target", "cause"),
    [
        ("broken_command:register", "cannot load broken_command:register (RuntimeError: half writ"),
        ("no_such_module:register", "cannot load no_such_module:register (ModuleNotFoundError: "),
        ("hello_command:registre", "cannot load hello_command:registre (AttributeError: "),
        ("hello_command:register_nothing", "register_nothing adds no parser of that name"),
    ],
)
def test_a_broken_command_is_named(
    install: Install, capsys: pytest.CaptureFixture[str], target: str, cause: str
) -> None:
    install(("hello", target))
    assert cli.main(["hello"]) == 70
    err = capsys.readouterr().err
    assert err.startswith("holecard: hello: ")
    assert cause in err
    assert err.count("\n") == 1


def test_a_name_announced_twice_is_refused(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(("hello", "hello_command:register"), ("hello", "broken_command:register"))
    assert cli.main(["hello"]) == 70
    assert "broken_command:register and hello_command:register" in capsys.readouterr().err


def test_a_name_of_our_own_stays_ours(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install(("config", "hello_command:register"))
    cli.main(["--help"])
    out = capsys.readouterr().out
    assert out.count("\n  config ") == 1
    assert "Say hello." not in out


def test_a_command_without_func_shows_its_help(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(("hello", "hello_command:register_bare"))
    assert cli.main(["hello"]) == 2
    assert "usage: holecard hello" in capsys.readouterr().err


def test_help_lists_all_commands_and_loads_none(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(("hello", "hello_command:register"), ("crash", "broken_command:register"))
    assert cli.main(["--help"]) == 0
    out = capsys.readouterr().out
    for command in cli.COMMANDS:
        assert f"\n  {command.name:<12}{command.summary}\n" in out
    assert "\n  hello       Say hello.\n" in out
    assert "\n  crash " in out
    assert "examples:" in out
    assert "hello_command" not in sys.modules


def test_help_names_a_command_that_cannot_be_read(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(("lost", "no_such_package.module:register"))
    assert cli.main(["--help"]) == 0
    assert "\n  lost        (cannot be read)\n" in capsys.readouterr().out


def test_no_arguments_print_help_to_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "commands:" in err


@pytest.mark.usefixtures("_hello")
def test_an_unknown_command_names_the_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["helo"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("holecard: command: there is no helo; allowed: config, ")
    assert err.endswith(", hello\n")


def test_an_unknown_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--colour"]) == 2
    assert "--colour" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("holecard ")


@pytest.mark.parametrize("command", cli.COMMANDS, ids=lambda command: str(command.name))
def test_each_command_of_ours_explains_itself(
    command: cli.Subcommand, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([command.name, "--help"]) == 0
    assert f"usage: holecard {command.name}" in capsys.readouterr().out


def test_every_command_is_tried_with_wrong_files_and_streams() -> None:
    """By `make campaign`; the commands are found from the parsers."""
    assert set(GOOD) == {one.name for one in every_command()}


@pytest.mark.parametrize("arguments", ['"hello", "--name", "many"', '"--help"'])
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path, arguments: str) -> None:
    (tmp_path / "hello_command.py").write_text(MODULE)
    program = (
        "import sys\n"
        "from controller import cli\n"
        "cli.COMMANDS = (cli.Subcommand('hello', 'hello_command:register', ''),)\n"
        f"sys.exit(cli.main([{arguments}]))\n"
    )
    path = [str(ROOT), str(tmp_path)]
    # Buffered, as at a shell: what is left in the buffer must not complain at the end either.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "PYTHONUNBUFFERED": ""}
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [sys.executable, "-W", "error", "-c", program],
            stdout=writing,
            stderr=subprocess.PIPE,
            env=environment,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writing)
    assert (ended.stderr, ended.returncode) == (b"", 141)


def test_a_problem_says_where_what_and_what_is_allowed() -> None:
    assert str(UsageProblem("a.toml: decks", "5 is not a number of decks", "1, 2")) == (
        "a.toml: decks: 5 is not a number of decks; allowed: 1, 2"
    )
    assert str(UsageProblem("a.toml", "not found")) == "a.toml: not found"


def test_a_problem_is_read_only_and_travels_between_processes() -> None:
    problem = UsageProblem("a.toml", "not found", "a game sheet")
    with pytest.raises(AttributeError):
        problem.where = "b.toml"  # type: ignore[misc]
    arrived = pickle.loads(pickle.dumps(problem))
    assert (arrived.where, arrived.what, arrived.allowed) == ("a.toml", "not found", "a game sheet")
