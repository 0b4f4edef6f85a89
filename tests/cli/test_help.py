"""Help is shown without TVM and other large packages, so that it is quick on every machine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import ansor
from ansor.cli import choices
from ansor.cli.main import main
from ansor.compare.systems import PEERS
from ansor.frontend.precision.stages import WIDE
from ansor.policy.registry import DEFAULT, POLICIES
from ansor.quantization.quantize import METHODS
from ansor.report.write import FORMATS
from ansor.run.arguments import PRECISIONS

LARGE = (
    *("tvm", "tvm_ffi", "xgboost", "torch", "rich", "numpy", "scipy", "networkx", "onnx", "ray"),
    *("altair", "jinja2", "msgspec", "vl_convert"),
)
# Shows the help of each command that standard input names, and tells which large packages are
# imported after each.
SHOW_HELP = """
import contextlib, io, json, sys
from ansor.cli.main import main
commands, large = json.load(sys.stdin)
found = []
for command in commands:
    with contextlib.redirect_stdout(io.StringIO()) as output:
        main([*command, "--help"], standalone_mode=False)
    found.append([output.getvalue()[:6], [name for name in large if name in sys.modules]])
print(json.dumps(found))
"""


def all_commands(
    group: click.Group = main, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """The words of every command and every group."""
    yield path
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from all_commands(command, (*path, name))
        else:
            yield (*path, name)


def python(code: str, given: str = "") -> str:
    """What a process of Python that sees this package prints."""
    root = str(Path(ansor.__file__).parents[1])
    command = [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {root!r})\n{code}"]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    return done.stdout


def test_importing_the_package_imports_no_large_package() -> None:
    code = f"import ansor, sys; print([n for n in {LARGE} if n in sys.modules])"
    assert python(code).strip() == "[]"


def test_the_help_of_every_command_imports_no_large_package() -> None:
    commands = list(all_commands())
    assert ("tune",) in commands
    assert ("show", "records") in commands
    found = json.loads(python(SHOW_HELP, json.dumps((commands, LARGE))))
    assert dict(zip(commands, found, strict=True)) == {
        command: ["Usage:", []] for command in commands
    }


@pytest.mark.parametrize(
    ("listed", "registered"),
    [
        (choices.POLICIES, tuple(POLICIES)),
        (choices.DEFAULT_POLICY, DEFAULT),
        (choices.PRECISIONS, PRECISIONS),
        (choices.DEFAULT_PRECISION, WIDE),
        (choices.METHODS, METHODS),
        (choices.REPORT_FORMATS, FORMATS),
        (choices.PEERS, tuple(PEERS["float32"])),
    ],
)
def test_listed_names_are_those_of_the_registries(listed: object, registered: object) -> None:
    assert listed == registered
