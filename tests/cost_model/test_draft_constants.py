"""The constants of the draft stand on one page, and the draft uses each of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from ansor import cost_model
from ansor.cost_model import constants

FILES = sorted(Path(cost_model.__path__[0]).glob("*.py"))
MODULES = [file for file in FILES if file.stem != "constants"]
INSTANCES = ("CORE", "COMPILER", "OVERLAP", "GPU")


def nodes(file: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(file.read_text()))


def module_values(file: Path) -> Iterator[ast.expr]:
    """The values of the module's assignments, outside functions and classes."""
    for statement in ast.parse(file.read_text()).body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            yield statement.value


def is_numeric(value: ast.expr) -> bool:
    """Whether an expression contains a number."""
    return any(
        isinstance(node, ast.Constant) and isinstance(node.value, int | float | complex)
        for node in ast.walk(value)
    )


@pytest.mark.parametrize("instance", INSTANCES)
def test_every_constant_is_used(instance: str) -> None:
    used = {
        node.attr
        for file in MODULES
        for node in nodes(file)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == instance
    }
    assert used == {field.name for field in fields(getattr(constants, instance))}


@pytest.mark.parametrize("file", MODULES, ids=lambda file: file.stem)
def test_numbers_stand_on_the_page_of_constants(file: Path) -> None:
    assert [ast.unparse(value) for value in module_values(file) if is_numeric(value)] == []


@pytest.mark.parametrize("text", ["8", "-0.5", "64 << 10", "(1, 2)", "np.float32(2)"])
def test_a_numeric_constant_is_noticed(text: str) -> None:
    assert is_numeric(ast.parse(text, mode="eval").body)
