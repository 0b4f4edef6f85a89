"""The constants of the draft stand on one page, and the draft uses each of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest

from ansor.targets.cpu.draft import constants as cpu
from ansor.targets.cuda.draft import constants as cuda

GROUPS = {  # by the name of the variable that holds the group
    "core": (cpu, cpu.DEFAULTS.core),
    "compiler": (cpu, cpu.DEFAULTS.compiler),
    "overlap": (cpu, cpu.DEFAULTS.overlap),
    "GPU": (cuda, cuda.GPU),
}


def modules(page: ModuleType) -> list[Path]:
    """The files of a draft beside its page of constants."""
    assert page.__file__ is not None
    return [
        file for file in sorted(Path(page.__file__).parent.glob("*.py")) if file.stem != "constants"
    ]


MODULES = [*modules(cpu), *modules(cuda)]


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


@pytest.mark.parametrize("variable", GROUPS)
def test_every_constant_is_used(variable: str) -> None:
    page, group = GROUPS[variable]
    used = {
        node.attr
        for file in modules(page)
        for node in nodes(file)
        if isinstance(node, ast.Attribute)
        and ast.unparse(node.value).rpartition(".")[2] == variable
    }
    assert used == {field.name for field in fields(group)}


@pytest.mark.parametrize("file", MODULES, ids=lambda file: f"{file.parent.parent.name}-{file.stem}")
def test_numbers_stand_on_the_page_of_constants(file: Path) -> None:
    assert [ast.unparse(value) for value in module_values(file) if is_numeric(value)] == []


@pytest.mark.parametrize("text", ["8", "-0.5", "64 << 10", "(1, 2)", "np.float32(2)"])
def test_a_numeric_constant_is_noticed(text: str) -> None:
    assert is_numeric(ast.parse(text, mode="eval").body)
