"""The function that `torch.compile(model, backend="ansor")` calls for each captured graph."""

from __future__ import annotations

import shutil
import tempfile
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from ansor.calls import auto_schedule
from ansor.errors import ArgumentError, GraphWarning
from ansor.run.settings import Settings
from ansor.torch_compile.captured import CapturedGraph
from ansor.torch_compile.weights import is_weight

NOTHING: Mapping[str, Any] = MappingProxyType({})


def compile_graph(
    graph: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] = NOTHING,
    mode: str | None = None,
) -> Callable[..., Any]:
    """A function with the results of the graph.

    The graph is compiled at its first call, once for each size of its inputs.

    Args:
        graph: of TorchDynamo.
        example_inputs: in the order of the graph's inputs; sizes may be symbolic.
        options: `target`, and the settings of `ansor.auto_schedule`, such as `minutes`, `trials`,
            `database` and `precision`. Functions that the database knows are not searched again.
            With `freezing`, a call does not check whether parameters and buffers have changed in
            place.
        mode: none is supported.

    Raises:
        ArgumentError: a mode, or a wrong option.
    """
    if mode is not None:
        raise ArgumentError("mode", mode, 'backend="ansor" has no modes; give options instead')
    given = dict(options)
    target, freezing = given.pop("target", "native"), given.pop("freezing", False)
    if not isinstance(freezing, bool):
        raise ArgumentError("freezing", freezing, "give True or False")
    Settings.of(given, networks=1)
    if _needs_gradients(graph):
        text = "its results require gradients; call it under torch.no_grad() for inference"
        warnings.warn(f"ansor runs a graph in PyTorch: {text}", GraphWarning, stacklevel=2)
        return graph.forward  # type: ignore[no-any-return]
    nodes = graph.graph.find_nodes(op="placeholder")
    pairs = zip(nodes, example_inputs, strict=True)
    weights = [place for place, (node, value) in enumerate(pairs) if is_weight(node, value)]
    return CapturedGraph(graph, weights, Tuning(target, given), freezing).run


class Tuning:
    """Tuning of networks, like `auto_schedule`, except for known functions.

    Without a database one in a temporary folder is kept, so that new weights need no new search.
    """

    def __init__(self, target: Any, settings: Mapping[str, Any]) -> None:
        self.target, self.settings = target, dict(settings)
        if Settings(**settings).searches and settings.get("database") is None:
            folder = tempfile.mkdtemp(prefix="ansor-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            self.settings["database"] = Path(folder) / "records.sqlite"

    def __call__(self, network: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> Any:
        """The tuned network."""
        return auto_schedule(
            network, self.target, example_inputs=tuple(inputs), only_new=True, **self.settings
        )


def _needs_gradients(graph: torch.fx.GraphModule) -> bool:
    """Whether a result of the graph requires gradients."""
    found: list[torch.fx.Node] = []
    torch.fx.map_arg(graph.graph.output_node().args, found.append)
    values = [node.meta.get("example_value") for node in found]
    return any(isinstance(x, torch.Tensor) and x.requires_grad for x in values)
