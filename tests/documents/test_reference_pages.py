"""Public names: each has a complete docstring and a place in the reference."""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import click
import pytest
from markdown_page import ROOT

import ansor
from ansor import _HOME
from ansor.cli.main import main
from ansor.run.settings import Settings

REFERENCE = {path.stem: path.read_text("utf-8") for path in (ROOT / "docs/reference").glob("*.md")}
REFERRED = re.findall(r"^::: ([\w.]+)$", "\n".join(REFERENCE.values()), re.MULTILINE)
NAMES = sorted(set(ansor.__all__) | set(_HOME))
# Sections of a docstring, with indented lines.
SECTION = re.compile(
    r"^(Args|Attributes|Returns|Raises|Yields):\n((?:[ ]{4}.*\n|\n)+)", re.MULTILINE
)


TAKE_SETTINGS = (ansor.auto_schedule, ansor.auto_schedule_many, ansor.tune)


def sections(owner: Any) -> dict[str, str]:
    return dict(SECTION.findall(f"{inspect.getdoc(owner)}\n"))


def parameters(function: Any) -> set[str]:
    """All but the settings, which `Settings` describes."""
    settings = {field.name for field in fields(Settings)} if function in TAKE_SETTINGS else set()
    return set(inspect.signature(function).parameters) - {"self"} - settings


def callables(name: str) -> Iterator[tuple[str, Any]]:
    """A public function; or the public methods that a public class defines itself."""
    value = getattr(ansor, name)
    if inspect.isfunction(value):
        yield name, value
    elif inspect.isclass(value):
        for key, member in vars(value).items():
            if inspect.isfunction(member) and not key.startswith("_"):
                yield f"{name}.{key}", member


def commands_of(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        for each in command.list_commands(click.Context(command)):
            yield from commands_of(
                command.get_command(click.Context(command), each), f"{name} {each}"
            )


FUNCTIONS = [pair for name in NAMES for pair in callables(name)]


def test_every_lazy_name_is_public() -> None:
    assert set(_HOME) <= set(ansor.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_in_the_reference(name: str) -> None:
    assert REFERRED.count(f"ansor.{name}") == 1


@pytest.mark.parametrize("path", REFERRED)
def test_the_reference_names_what_is_documented(path: str) -> None:
    assert inspect.getdoc(pkgutil.resolve_name(path))


@pytest.mark.parametrize("function", [f for _, f in FUNCTIONS], ids=[name for name, _ in FUNCTIONS])
def test_a_function_is_documented(function: Any) -> None:
    text = inspect.getdoc(function)
    assert text
    purpose = " ".join(text.split("\n\n")[0].split())
    assert purpose.endswith((".", ":")), "the docstring begins with the purpose"
    if purpose.startswith("See `"):  # it does what the method of its base promises
        return
    described = sections(function)
    listed = re.findall(r"^    (\w+):", described.get("Args", ""), re.MULTILINE)
    missing = [p for p in parameters(function) if p not in listed and f"`{p}`" not in text]
    assert not missing, "parameters without a description"
    raised = set(re.findall(r"raise (\w+)\(", inspect.getsource(function)))
    assert {kind for kind in raised if kind not in described.get("Raises", "")} == set()


COMMANDS = list(commands_of(main, "ansor"))


@pytest.mark.parametrize("command", [c for _, c in COMMANDS], ids=[name for name, _ in COMMANDS])
def test_a_command_is_documented(command: click.Command) -> None:
    assert command.help
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, option.name
