"""The commands of the page on farms, with other addresses."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

import ansor
from ansor.cli.hardware import as_lines
from ansor.cli.main import main
from ansor.errors import MeasureError
from ansor.measure.rpc.tracker import Tracker
from ansor.targets.host.threads import module_path
from ansor.targets.registry import backend_of
from ansor.targets.target import resolve_target, target_text
from benchmarks.rpc_farm import LIMITS, Farm, free_port, until

PAGE = Path(ansor.__file__).parent.parent / "docs" / "farm.md"
COMMANDS = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
KEY = "board"


def commands(tracker: int, server: int, trials: int) -> list[list[str]]:
    """The commands with other ports and fewer trials."""
    text = COMMANDS.replace("9190", str(tracker)).replace("9191", str(tracker + 1))
    text = text.replace("9091", str(server)).replace("9092", str(server + 1))
    text = re.sub(r"--trials \d+", f"--trials {trials}", text)
    return [shlex.split(line) for line in text.splitlines()]


def run(arguments: list[str]) -> str:
    """What a command of this package prints."""
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def default_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """No micro-benchmark, which takes some ten seconds."""
    monkeypatch.setattr("ansor.targets.cpu.elsewhere.measured", lambda *_, **__: None)


@pytest.mark.usefixtures("default_figures")
def test_commands_of_this_package(tmp_path: Path) -> None:
    with Farm(tmp_path) as farm:
        farm.serve(KEY)
        *_, hardware, tune = commands(farm.port, free_port(), trials=4)
        assert (hardware[0], tune[0]) == ("ansor", "ansor")
        target = resolve_target("native")
        reader = backend_of(target).machine
        read_here = as_lines(reader.describe(reader.read(target, 1)))
        assert run(hardware[1:]) == f"target          {target_text(target, 1)}\n{read_here}\n"
        report = run([*tune[1:], "--out", str(tmp_path / "out")])
        assert "search: 4 programs measured" in report
        assert (tmp_path / "out" / "model.ansor").is_file()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rpc", "nowhere"], "give the --key"),
        (["--rpc", "nowhere", "--key", KEY], "HOST:PORT"),
        (["--rpc", "a:0", "--key", KEY], "HOST:PORT"),
        (["--key", KEY], "give --rpc"),
        (["--linker", "g++"], "give --rpc"),
    ],
)
@pytest.mark.parametrize("command", [["hardware"], ["tune", "matmul", "--trials", "1"]])
def test_wrong_options(command: list[str], options: list[str], message: str) -> None:
    result = CliRunner().invoke(main, [*command, *options])
    assert result.exit_code == 2
    assert message in result.output


@contextmanager
def started(command: list[str], log: Path) -> Iterator[None]:
    """A process in the background; it and its children end with the block."""
    with log.open("wb") as output:
        process = psutil.Popen(
            [sys.executable, *command], stdout=output, stderr=output, env=environment()
        )
    try:
        yield
    finally:
        for each in [*process.children(recursive=True), process]:
            each.kill()
        process.wait()


def environment() -> dict[str, str]:
    """Of a process that finds the modules of this one."""
    return {**os.environ, **module_path()}


def python(command: list[str]) -> list[str]:
    """The arguments of Python for a command of the page."""
    name, *rest = [part for part in command if part != "&"]
    return rest if name == "python" else ["-m", "ansor.cli", *rest]


@pytest.mark.slow
def test_commands_in_processes(tmp_path: Path) -> None:
    port = free_port()
    tracker, server, query, hardware, tune = map(python, commands(port, free_port(), trials=8))
    with ExitStack() as stack:
        stack.enter_context(started(tracker, tmp_path / "tracker.log"))
        until(lambda: servers(port) is not None)
        stack.enter_context(started(server, tmp_path / "server.log"))
        until(lambda: servers(port) == 1)
        outputs = [
            subprocess.run(
                [sys.executable, *command],
                capture_output=True,
                text=True,
                check=True,
                cwd=tmp_path,
                env=environment(),
            ).stdout
            for command in (query, hardware, tune)
        ]
    assert f"server:{KEY}" in outputs[0]
    assert '"num-cores":1' in outputs[1]
    assert "search: 8 programs measured" in outputs[2]


def servers(port: int) -> int | None:
    """Servers that a tracker knows; None as long as there is no tracker."""
    try:
        return len(Tracker("127.0.0.1", port, LIMITS).servers(KEY))
    except MeasureError:
        return None
