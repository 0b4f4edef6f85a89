"""Faults that a run must survive, one module for each scenario; `benchmarks.faults` runs them.

A scenario is a module with a function ``run(scale: Scale) -> list[Row]`` and an entry of
`SCENARIOS`. Read `row` first.
"""

from __future__ import annotations

# Names of the modules, in the order of the runs.
SCENARIOS: tuple[str, ...] = (
    "bad_candidates",
    "run_killed",
    "disk_and_locks",
    "shared_database",
    "busy_machine",
    "mutated_files",
    "ray_cluster",
    "rpc_farm",
)
