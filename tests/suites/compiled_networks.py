"""Ten networks of torchvision and transformers through `torch.compile`, without a measurement.

Each is compared with PyTorch on two inputs. A network with a graph that stays in PyTorch counts as
refused. `python -m tests.suites.compiled_networks [NAME …]` prints a line per network and a table.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

import torch

from ansor.errors import GraphWarning
from ansor.frontend.importers.from_torch.capture import array_of
from ansor.run.check.compare import NETWORK_TOLERANCE, difference
from ansor.torch_compile.backend import compile_graph
from tests.suites.architectures import CASES
from tests.suites.in_children import print_outcomes
from tests.suites.outcome import Outcome

LIMIT_S = 240.0  # of one network
INPUTS = 2
VISION = ("ResNet", "MobileNet-V3", "EfficientNet", "DenseNet", "ShuffleNet", "ViT")
LANGUAGE = ("BERT", "GPT-2", "Llama", "T5 encoder")


def cases() -> list[str]:
    """Names of the networks."""
    return [*VISION, *LANGUAGE]


def run_case(name: str) -> Outcome:
    """The verdict on a network."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    module, inputs = CASES[name]()
    fast = torch.compile(module.eval(), backend=compile_graph, options={"trials": 0})
    wrong = []
    try:
        with warnings.catch_warnings(record=True) as found, torch.no_grad():
            warnings.simplefilter("always", GraphWarning)
            for _ in range(INPUTS):
                given = inputs()
                result = difference(
                    _arrays(fast(*given)), _arrays(module(*given)), NETWORK_TOLERANCE
                )
                wrong += [result.text] if result.excess > 1 else []
    except Exception as error:  # the verdict on it is the purpose of the suite
        line = (str(error).strip().splitlines() or [""])[-1]
        return Outcome(name, "crashed", f"{type(error).__name__}: {line[:200]}")
    if wrong:
        return Outcome(name, "wrong", "; ".join(wrong))
    texts = [str(one.message) for one in found if one.category is GraphWarning]
    return Outcome(name, "refused" if texts else "passed", "; ".join(texts)[:300])


def _arrays(result: object) -> list[object]:
    leaves = torch.utils._pytree.tree_leaves(result)
    return [array_of(leaf) for leaf in leaves if torch.is_tensor(leaf)]


def main(names: Sequence[str]) -> None:
    """Runs the networks and prints each verdict and how many there are of each."""
    print_outcomes(run_case, names or cases(), LIMIT_S)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:])
