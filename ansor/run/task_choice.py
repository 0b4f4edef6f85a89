"""The choice of the functions to tune: by name, by operator, or by a predicate."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ansor.errors import ArgumentError
from ansor.task import Task

Choice = str | Callable[[Task], bool]

# Names that other frameworks give to a product of matrices.
SYNONYMS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("dense", "linear", "batch_matmul"), "matmul")
)


def listed_choices(choices: object) -> tuple[Choice, ...] | None:
    """One choice or several as a tuple; None for all functions.

    Raises:
        ArgumentError: a choice is neither a text nor a predicate, or there is none.
    """
    if choices is None:
        return None
    several = isinstance(choices, Sequence) and not isinstance(choices, str)
    found: tuple[Any, ...] = tuple(choices) if several else (choices,)  # type: ignore[arg-type]
    if not found or not all(isinstance(one, str) or callable(one) for one in found):
        remedy = "give names of functions, operators such as conv2d, or predicates of a task"
        raise ArgumentError("tasks", choices, remedy)
    return found


def check_choices(tasks: Sequence[Task], choices: tuple[Choice, ...] | None) -> None:
    """Checks that each choice fits a function.

    Raises:
        ArgumentError: a choice fits none; the names are listed. Or a predicate fails.
    """
    names = [task.name for task in tasks if task.original is None]
    for choice in choices or ():
        if not chosen_functions(tasks, (choice,)):
            raise ArgumentError(
                "tasks", choice, f"fits no function; name some of {', '.join(names)}"
            )


def chosen_functions(tasks: Sequence[Task], choices: tuple[Choice, ...] | None) -> frozenset[str]:
    """Names of the functions to tune. The variants of a function follow its definition.

    Args:
        tasks: of one or several networks.
        choices: None for all functions.

    Raises:
        ArgumentError: a predicate fails.
    """
    if choices is None:
        return frozenset(task.group for task in tasks)
    direct = [task for task in tasks if task.original is None]
    return frozenset(
        task.group for task in direct if any(_fits(choice, task) for choice in choices)
    )


def new_functions(
    tasks: Sequence[Task], choices: tuple[Choice, ...] | None, known: Callable[[Task], bool]
) -> tuple[Choice, ...]:
    """The choice of those functions to tune without any known variant.

    Args:
        tasks: of one or several networks.
        choices: None for all functions.
        known: whether a task is known.

    Returns:
        one choice that fits these functions in other precisions, too; none if all are known.
    """
    chosen = chosen_functions(tasks, choices)
    done = {task.group for task in tasks if known(task)}
    keys = {task.key for task in tasks if task.group in done or task.group not in chosen}
    return (lambda task: task.key not in keys,) if chosen - done else ()


def _fits(choice: Choice, task: Task) -> bool:
    if isinstance(choice, str):
        return _is_named(choice, task)
    try:
        return bool(choice(task))
    except Exception as error:
        remedy = f"must be a predicate of a task; it fails for {task.name}: {error!r}"
        raise ArgumentError("tasks", choice, remedy) from error


def _is_named(choice: str, task: Task) -> bool:
    """Whether a text is the name of a function, or of an operator that the function contains.

    The name of a function, and those of its stages, contain its operators as words with a number:
    fused_conv2d3_add1_relu.
    """
    if choice in (task.name, task.name.rpartition("/")[2]):
        return True
    operator = re.escape(SYNONYMS.get(choice, choice))
    word = re.compile(rf"(?:^|[_/]){operator}\d*(?:$|_)")
    return any(word.search(name) for name in (task.name, *task.dag.stages))
