"""Runs code blocks of a page, in order, in one module and one folder.

- `python`: the code of a script. A block whose first line is ``# NAME.py`` is a file of that name.
  The last line of a statement may end with a comment such as ``# ArgumentError: trials=0``. The
  statement must raise an exception of this class, or of a subclass, with this text.
- `sh`: commands. `ansor` runs in this process, and a short list of programs in others. `make` and
  the benchmarks are not run: their targets, options and values are checked.
"""

from __future__ import annotations

import ast
import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import click
from click.testing import CliRunner
from markdown_page import ROOT, Block

from ansor.cli.main import main

FILE = re.compile(r"# (\w+\.py)\n")
RAISES = re.compile(r"#\s*(\w+(?:Error|Warning)): (.+)$")
PROGRAMS = {"cmake": "cmake", "build/run": "build/run", "python": sys.executable}


def run_block(block: Block, folder: Path, module: ModuleType) -> None:
    """Runs a block; its names are those of the module.

    Raises:
        AssertionError: a command failed, cannot be run, or an expected exception did not come.
    """
    if block.language == "sh":
        for command in commands(block.code):
            run_command(command)
        return
    assert block.language == "python", f"blocks are python, sh, text or c, not {block.language!r}"
    if (named := FILE.match(block.code)) is not None:
        (folder / named[1]).write_text(block.code, encoding="utf-8")
        return
    # Decorators such as TVMScript's read the source of their functions.
    file = folder / f"line_{block.line}.py"
    file.write_text(block.code, encoding="utf-8")
    run_python(block.code, str(file), module.__dict__)


def run_python(code: str, file: str, names: dict[str, Any]) -> None:
    """Runs code statement by statement, and checks the exceptions that comments announce."""
    lines = code.splitlines()
    for statement in ast.parse(code, file).body:
        part = compile(ast.Module([statement], []), file, "exec", dont_inherit=True)
        announced = RAISES.search(lines[(statement.end_lineno or 1) - 1])
        if announced is None:
            exec(part, names)
        else:
            _check_raised(part, names, *announced.groups())


def _check_raised(part: Any, names: dict[str, Any], kind: str, text: str) -> None:
    try:
        exec(part, names)
    except Exception as error:
        message = " ".join(str(error).split())
        kinds = {base.__name__ for base in type(error).__mro__}
        if kind in kinds and text in message:
            return
        raise AssertionError(f"{kind}: {text!r} expected") from error
    raise AssertionError(f"{kind}: {text!r} expected, nothing raised")


def commands(code: str) -> list[list[str]]:
    """The words of each command."""
    found = []
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while words:
            end = words.index("&&") if "&&" in words else len(words)
            found.append(words[:end])
            words = words[end + 1 :]
    return found


def run_command(words: list[str]) -> None:
    """Runs or checks one command."""
    program, *arguments = words
    shown = shlex.join(words)
    if program == "ansor":
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, f"{shown}\n{result.output}"
    elif program == "make":
        run_program(["make", "--dry-run", "--directory", str(ROOT), *arguments])
    elif words[:2] == ["python", "-m"] and words[2].startswith("benchmarks."):
        check_options(words[2], arguments[2:])
    else:
        assert program in PROGRAMS, f"no way to run {shown}"
        run_program([PROGRAMS[program], *arguments])


def run_program(words: list[str]) -> None:
    """Runs a program in another process."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(words)}\n{done.stdout}{done.stderr}"


def check_options(module: str, arguments: list[str]) -> None:
    """Reads the arguments of a benchmark with its parser, and does not run it."""
    command = importlib.import_module(module).main
    try:
        command.make_context(module, arguments)
    except click.ClickException as error:
        raise AssertionError(f"{shlex.join(arguments)}: {error.format_message()}") from error
