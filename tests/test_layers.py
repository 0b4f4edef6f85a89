"""The layers of the package: imports only go down, and TVM stands behind few doors."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

import ansor

ROOT = Path(ansor.__file__).parent

# Lowest first. Members of one layer do not see each other, but for the pairs in NAMED. A module
# belongs to the longest name that fits: parameters of machines lie below the rules that read them,
# and backends above.
LAYERS = (
    ("errors", "version", "config", "callbacks", "closing", "executor", "parent_death"),
    ("dag", "targets.machine", "targets.cpu.machine", "targets.cpu.vectors"),
    ("targets.host", "targets.cuda.machine"),
    ("program", "linking"),
    ("sketch", "annotate", "features", "lowering", "task", "templates"),
    ("targets",),
    ("workloads", "models", "results"),
    ("evolve", "cost_model", "measure"),
    ("database", "cluster"),
    ("policy", "frontend"),
    ("report", "task_scheduler", "quantization"),
    ("explain",),
    ("run.check", "run.search"),
    ("run.winners",),
    ("run.tuned",),
    ("run", "diagnosis"),
    ("calls",),
    ("torch_compile",),
    ("compare",),
    ("cli",),
)
NAMED = {("annotate", "sketch")}
WIRING = ("__init__", "__main__")  # the package itself: may see everything

WITHOUT_TVM = (
    *("sketch", "annotate", "evolve", "task_scheduler"),
    *("features", "cost_model", "policy", "program"),
    *("targets.machine", "targets.search", "targets.cpu.search", "targets.cuda.search"),
    *("targets.cpu.draft", "targets.cuda.draft", "targets.cuda.rules"),
)
OPTIONAL = (
    "torch",
    "onnx",
    "onnxruntime",
    "openvino",
    "ray",
    *("altair", "jinja2", "msgspec", "vl_convert"),
)  # may be imported where they are needed
# Takes 0.3 s, and is not always needed.
LATE = {"cost_model/gbdt.py": {"xgboost"}, "cost_model/rank_trees.py": {"xgboost"}}
# Who may touch TVM's schedule API.
SCHEDULES = {
    "lowering/replay.py",
    "lowering/reference.py",
    "lowering/trace.py",
    "targets/cpu/probe/benchmark_kernels.py",
    "templates/imported_trace.py",
    "templates/config.py",  # schedules that users write
    "targets/cuda/compiler.py",  # TVM's default for functions without a program
}

LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}
FILES = sorted(ROOT.rglob("*.py"))


def relative(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def module_of(file: Path) -> str:
    """Name of a file's module within the package."""
    return relative(file).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def longest_fit(module: str, names: Iterable[str]) -> str:
    """The longest of the names that is a module or a package around it; "" if none is."""
    return max((n for n in names if f"{module}.".startswith(f"{n}.")), key=len, default="")


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def imported(nodes: Iterator[ast.AST]) -> Iterator[str]:
    """Full names that import statements among `nodes` bind or look in."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def run_time_imports(file: Path) -> set[str]:
    """Imports but those for type checkers alone."""
    typing_only = {
        id(inner)
        for node in ast.walk(tree(file))
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    return set(imported(n for n in ast.walk(tree(file)) if id(n) not in typing_only))


@pytest.mark.parametrize("file", FILES, ids=relative)
def test_imports_only_go_down(file: Path) -> None:
    if module_of(file) in WIRING:
        return
    own = longest_fit(module_of(file), LEVEL)
    assert own, f"{relative(file)} is in no layer"
    for name in imported(ast.walk(tree(file))):
        top, _, module = name.partition(".")
        if top != "ansor":
            continue
        other = longest_fit(module, LEVEL)
        assert other, f"{relative(file)} imports the package itself: {name}"
        down = other == own or LEVEL[other] < LEVEL[own]
        assert down or (own, other) in NAMED, f"{relative(file)} must not import {name}"


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports for type checkers count. The package itself only hands out what it imports."""
    graph = nx.DiGraph()
    for file in FILES:
        for name in imported(ast.walk(tree(file))):
            if module_of(file) not in WIRING and (own := module_files(name)):
                graph.add_edge(file, own[-1])
    circles = [each for each in nx.strongly_connected_components(graph) if len(each) > 1]
    assert [sorted(map(relative, each)) for each in circles] == []


@pytest.mark.parametrize("file", FILES, ids=relative)
def test_imports_stand_at_the_top(file: Path) -> None:
    if longest_fit(module_of(file), LEVEL) == "cli":
        return  # a command imports what it needs when it runs, see tests/cli/test_help.py
    functions = [n for n in ast.walk(tree(file)) if isinstance(n, ast.FunctionDef)]
    inside = {name for f in functions for name in imported(ast.walk(f))}
    late = LATE.get(relative(file), set())
    assert {name for name in inside if not is_optional(name)} == late


def is_optional(name: str) -> bool:
    """Whether a name is of an optional package, or of a module of ours that needs one."""
    ours = [other for file in module_files(name) for other in run_time_imports(file)]
    return any(found.split(".")[0] in OPTIONAL for found in [name, *ours])


def module_files(name: str) -> list[Path]:
    """The files that importing ``ansor.x.y`` runs, the package's own top left out."""
    top, *parts = name.split(".")
    if top != "ansor":
        return []
    found = [ROOT.joinpath(*parts[: i + 1], "__init__.py") for i in range(len(parts))]
    found += [ROOT.joinpath(*parts[: i + 1]).with_suffix(".py") for i in range(len(parts))]
    return [file for file in found if file.is_file()]


def everything_imported(file: Path) -> set[str]:
    """Names that importing a file imports, directly or not."""
    names: set[str] = set()
    queue, seen = [file], {file}
    while queue:
        for name in run_time_imports(queue.pop()):
            names.add(name)
            queue += [f for f in module_files(name) if f not in seen]
            seen.update(module_files(name))
    return names


@pytest.mark.parametrize(
    "file", [file for file in FILES if longest_fit(module_of(file), WITHOUT_TVM)], ids=relative
)
def test_the_search_never_sees_tvm(file: Path) -> None:
    found = {name for name in everything_imported(file) if name.split(".")[0] == "tvm"}
    assert found == set()


def makes_schedule(call: ast.Call) -> bool:
    """Whether a class of TVM's schedule, or one derived from it, is called."""
    name = ast.unparse(call.func)
    return name.endswith("Schedule") and name != "HandSchedule"  # which is no schedule of TVM


def test_schedules_are_made_in_few_places() -> None:
    users = {
        relative(file)
        for file in FILES
        for node in ast.walk(tree(file))
        if isinstance(node, ast.Call) and makes_schedule(node)
    }
    assert users <= SCHEDULES
