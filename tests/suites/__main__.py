"""`python -m tests.suites [SUITE …]`: all suites, a table of their verdicts, and what is not right.

Exit status: 1 if a case is wrong or has crashed.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from typing import get_args

from ansor.targets.host.threads import available_cores
from tests.suites.in_children import run_in_children
from tests.suites.outcome import Outcome, Verdict

SUITES = ("onnx_nodes", "torch_operators", "networks", "compiled_networks", "quantised_networks")
LIMIT_S = 240.0  # of one case
REASONS = 25  # that are listed for a suite
_REASON = 110  # characters of a reason in the table


@dataclass(frozen=True)
class Suite:
    """Cases by name, and what runs one of them."""

    name: str
    cases: Sequence[str]
    run_case: Callable[[str], Outcome]


def read_suite(name: str) -> Suite:
    """A suite of this folder."""
    module = import_module(f"tests.suites.{name}")
    return Suite(name, list(module.cases()), module.run_case)


def run_suite(suite: Suite, jobs: int) -> list[Outcome]:
    """The outcomes of all cases, which `jobs` children run."""
    parts = [suite.cases[first::jobs] for first in range(jobs)]
    with ThreadPoolExecutor(jobs) as pool:
        found = list(pool.map(lambda part: _run_part(suite, part), parts))
    return [outcome for part in found for outcome in part]


def _run_part(suite: Suite, cases: Sequence[str]) -> list[Outcome]:
    """The outcomes of some cases; each that is wrong or has crashed is printed at once."""
    outcomes = []
    for outcome in run_in_children(suite.run_case, cases, LIMIT_S):
        outcomes.append(outcome)
        if outcome.verdict in ("wrong", "crashed"):
            print(f"{outcome.verdict}: {suite.name}: {outcome.case}: {outcome.detail}", flush=True)
    return outcomes


def table(suite: str, outcomes: Sequence[Outcome], elapsed_s: float) -> list[str]:
    """Lines: how many cases have each verdict, and why some are refused."""
    counts = Counter(outcome.verdict for outcome in outcomes)
    share = counts["passed"] / max(1, len(outcomes))
    numbers = ", ".join(f"{counts[verdict]} {verdict}" for verdict in get_args(Verdict))
    reasons = Counter(_reason(o) for o in outcomes if o.verdict == "refused")
    listed = [f"  {count:4d} × {reason}" for reason, count in reasons.most_common(REASONS)]
    head = f"{suite}: {len(outcomes)} cases, {numbers}; {share:.1%} passed ({elapsed_s:.0f} s)"
    return [head, *listed]


def _reason(outcome: Outcome) -> str:
    return outcome.detail[:_REASON]


def main(names: Sequence[str]) -> int:
    """Runs suites and prints their tables."""
    warnings.simplefilter("ignore")
    unknown = sorted(set(names) - set(SUITES))
    if unknown:
        print(f"no suite {', '.join(unknown)}; there are {', '.join(SUITES)}")
        return 2
    failures, lines = 0, []
    for name in names or SUITES:
        began = time.monotonic()
        outcomes = run_suite(read_suite(name), available_cores())
        lines += table(name, outcomes, time.monotonic() - began)
        failures += sum(outcome.verdict in ("wrong", "crashed") for outcome in outcomes)
    print("\n".join(lines))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
