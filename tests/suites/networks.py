"""Networks with random weights: each imported, compiled and compared with PyTorch on two inputs.

`python -m tests.suites.networks [--schedule] [NAME …]` prints a line per network and a table;
with `--schedule` each goes through `ansor.auto_schedule` instead of being compiled as it is.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

import ansor
from ansor.errors import AnsorError
from ansor.frontend.deploy.runtime import compile_model
from ansor.frontend.importers.from_torch.capture import array_of
from ansor.frontend.importers.importer import import_model
from ansor.frontend.optimization import optimize
from ansor.run.check.compare import NETWORK_TOLERANCE, difference
from ansor.targets.target import resolve_target
from tests.suites.architectures import CASES
from tests.suites.in_children import print_outcomes
from tests.suites.outcome import Outcome

LIMIT_S = 240.0  # of one network
INPUTS = 2  # the example, and another
Compiled = Callable[..., Any]


def cases() -> list[str]:
    """Names of all networks."""
    return list(CASES)


def run_case(name: str) -> Outcome:
    """The verdict on a network that is compiled as it is imported."""
    return _verdict(name, _compiled)


def run_scheduled_case(name: str) -> Outcome:
    """The verdict on a network that goes all the way, without a measurement."""
    return _verdict(name, _scheduled)


def _verdict(name: str, compile_: Callable[[Any, Any], Compiled]) -> Outcome:
    torch.manual_seed(0)
    module, inputs = CASES[name]()
    module.eval()
    examples = [inputs() for _ in range(INPUTS)]
    try:
        compiled = compile_(module, examples[0])
        found = [_differing(module, compiled, given) for given in examples]
    except AnsorError as error:
        return _refused(name, str(error))
    except Exception as error:  # the verdict on it is the purpose of the suite
        line = (str(error).strip().splitlines() or [""])[-1]
        return Outcome(name, "crashed", f"{type(error).__name__}: {line[:200]}")
    differences = [text for text in found if text]
    return Outcome(name, "wrong" if differences else "passed", "; ".join(differences))


def _compiled(module: Any, inputs: Any) -> Compiled:
    target = resolve_target("native")
    return compile_model(optimize(import_model(module, inputs).mod, target), target)


def _scheduled(module: Any, inputs: Any) -> Compiled:
    tuned = ansor.auto_schedule(module, example_inputs=inputs, trials=0)
    return tuned.compiled


def _differing(module: Any, compiled: Compiled, inputs: Any) -> str:
    """How a run differs from PyTorch's; "" if it does not."""
    with torch.no_grad():
        expected = list(_arrays(module(*inputs)))
    found = compiled(*(array_of(tensor) for tensor in inputs))
    row = list(found) if isinstance(found, tuple) else [found]
    result = difference(row, expected, NETWORK_TOLERANCE)
    return result.text if result.excess > 1 else ""


def _arrays(result: Any) -> Iterator[Any]:
    return (array_of(leaf) for leaf in pytree.tree_leaves(result) if torch.is_tensor(leaf))


def _refused(name: str, message: str) -> Outcome:
    one_line = "\n" not in message.strip()
    return Outcome(name, "refused" if one_line else "crashed", message.splitlines()[0][:300])


def main(arguments: Sequence[str]) -> None:
    """Runs the networks and prints each verdict and how many there are of each."""
    names = [name for name in arguments if not name.startswith("--")]
    run = run_scheduled_case if "--schedule" in arguments else run_case
    print_outcomes(run, names or cases(), LIMIT_S)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:])
