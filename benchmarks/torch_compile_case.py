"""What `benchmarks.torch_compile` compares, and its end in the process of a system.

``python -m benchmarks.torch_compile_case CASE``, a `CompileCase` as JSON.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from ansor.compare.child import timed
from ansor.compare.turns import LATENCY, Answer, answer_turns
from ansor.errors import GraphWarning
from ansor.run.tuned.saved import load
from ansor.torch_compile.backend import compile_graph
from benchmarks.torch_networks import network

EAGER, INDUCTOR, SCHEDULED, OWN = "eager", "inductor", "auto_schedule", "ansor"
FROZEN = "ansor frozen"  # neither PyTorch nor ansor looks for changes of the module
GRAPHS = "ansor graphs alone"  # without TorchDynamo, which adds its guards to any backend
SYSTEMS = (EAGER, INDUCTOR, SCHEDULED, GRAPHS, OWN, FROZEN)
ERROR, COMPILE, IN_PYTORCH = "max_rel_err", "compile_s", "graphs_in_pytorch"
_WARM_UP_S = 0.1
_FILTER = torch.compiler.skip_guard_on_all_nn_modules_unsafe


@dataclass(frozen=True)
class CompileCase:
    """One network in one system.

    Attributes:
        model: of `benchmarks.torch_networks`.
        file: the network that `auto_schedule` tuned, saved.
        database: its records.
        threads: that the system uses.
        system: of `SYSTEMS`.
        seconds: of timed runs, each turn.
    """

    model: str
    file: str
    database: str
    threads: int
    system: str
    seconds: float

    def arguments(self) -> list[str]:
        """Of the interpreter that runs the system."""
        return ["-m", "benchmarks.torch_compile_case", json.dumps(asdict(self))]


class GraphsAlone:
    """The compiled graphs of a network, without TorchDynamo.

    The first call is one of the compiled network. Later calls run its graphs with the arguments
    that TorchDynamo gave them in the first call.

    Args:
        module: the network.
        options: of the backend.
    """

    def __init__(self, module: torch.nn.Module, options: Mapping[str, Any]) -> None:
        self._options = options
        self._calls: list[tuple[Callable[..., Any], Sequence[Any]]] = []
        self._compiled: Callable[..., Any] = torch.compile(module, backend=self._backend)

    def __call__(self, *inputs: torch.Tensor) -> Any:
        """The result of the network at the first call, and of its last graph at a later one."""
        if not self._calls:
            return self._compiled(*inputs)
        return [run(*args) for run, args in self._calls][-1]

    def _backend(self, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        run = compile_graph(graph, inputs, options=self._options)

        def recorded(*args: Any) -> Any:
            self._calls.append((run, args))
            return run(*args)

        return recorded


def _ready(case: CompileCase, module: torch.nn.Module) -> Callable[..., Any]:
    if case.system == SCHEDULED:
        return load(case.file, case.threads)
    options = {"database": case.database, "threads": case.threads}
    frozen = {**options, "guard_filter_fn": _FILTER, "freezing": True}
    systems: Mapping[str, Callable[[], Callable[..., Any]]] = {
        EAGER: lambda: module,
        INDUCTOR: lambda: torch.compile(module),
        GRAPHS: lambda: GraphsAlone(module, options),
        OWN: lambda: torch.compile(module, backend=compile_graph, options=options),
        FROZEN: lambda: torch.compile(module, backend=compile_graph, options=frozen),
    }
    return systems[case.system]()


def _loaded(case: CompileCase) -> tuple[Answer, Callable[[], Answer]]:
    """A system's network, after a first run that is compared with eager PyTorch."""
    torch.set_num_threads(case.threads)
    module, inputs = network(case.model)

    def call() -> Any:
        with torch.no_grad():
            return system(*inputs)

    with torch.no_grad():
        expected = _first(module(*inputs))
    began = time.perf_counter()
    system = _ready(case, module)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", GraphWarning)
        first = _first(call())
    compile_s = time.perf_counter() - began
    difference = float((first - expected).abs().max() / expected.abs().max())
    count = sum(one.category is GraphWarning for one in found)

    def turn() -> Answer:
        return {LATENCY: timed(call, _WARM_UP_S, case.seconds)}

    return {ERROR: difference, COMPILE: compile_s, IN_PYTORCH: count}, turn


def _first(result: Any) -> torch.Tensor:
    """The first tensor of a result."""
    if isinstance(result, torch.Tensor):
        return result
    found: torch.Tensor = result[0]
    return found


if __name__ == "__main__":
    given = CompileCase(**json.loads(sys.argv[1]))
    answer_turns(lambda: _loaded(given))
