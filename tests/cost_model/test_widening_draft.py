"""The draft of products whose operands are widened before they are multiplied."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from definitions import HARDWARE, workload
from sampling import sample

from ansor.config import SketchConfig
from ansor.cost_model.scorer import seconds
from ansor.dag.from_tir.read import read_dag
from ansor.features.profile import profile
from ansor.program.nest import build_nest
from ansor.targets.cpu.draft.constants import DEFAULTS
from ansor.targets.cpu.draft.draft import draft
from ansor.targets.cpu.draft.register_tile import register_tiles
from ansor.targets.cpu.machine import DotUnit
from ansor.targets.cpu.search import CPU_SEARCH

PLAIN = DotUnit("vpmaddwd", 0.75, 2.0)
WIDENED = replace(PLAIN, widening=2.5)
AVX2 = replace(HARDWARE, vector_bytes=32, vector_registers=16, dot_units=(PLAIN,))


def test_widened_operands_take_instructions_and_registers() -> None:
    dag = read_dag(workload("int8_conv2d").func, (1,))
    sketch = CPU_SEARCH.sketches(dag, AVX2, SketchConfig())[0]
    nest = build_nest(sample(sketch, 512, np.random.default_rng(0)))
    found = []
    for unit in (PLAIN, WIDENED):
        hardware = replace(AVX2, dot_units=(unit,))
        profiles = profile(nest)
        tile = register_tiles(profiles, hardware, DEFAULTS)["conv"]
        found.append((tile, seconds(draft(profiles, hardware))))
    (plain, plain_s), (widened, widened_s) = found
    assert (widened.stores >= plain.stores).all()  # spills
    assert (widened.stores > plain.stores).any()
    assert (widened_s >= plain_s).all()
    assert (widened_s > plain_s).mean() > 0.5
