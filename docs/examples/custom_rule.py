"""Adds a derivation rule: small operators get fewer levels of tiles.

Several levels of tiles keep data in several caches. If all arrays fit in the second cache, two
levels suffice. The space of programs is then much smaller. Both spaces are shown.
"""

from dataclasses import replace

import numpy as np
from tvm import te

import ansor
from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.program.pseudo_code import show_sketch
from ansor.program.sketch import Sketch
from ansor.sketch.rule import Derivation, Rule, RuleContext
from ansor.sketch.rules import multi_level_tile
from ansor.sketch.state import State
from ansor.targets.cpu.machine import Hardware
from ansor.targets.cpu.search import CPU_SEARCH

SIZE = 128  # rows, columns and depth of a product
TRIALS = 24  # programs to measure
STRUCTURE = "SSRS"  # levels of loops, outermost first: S of all spatial axes, R of the reduction


def two_level_tile(state: State, context: RuleContext[Hardware]) -> Derivation:
    """Tiles the current stage as `STRUCTURE`, if all arrays fit in the second cache."""
    if state.dag.num_bytes > context.machine.cache_bytes[1]:
        return Derivation()  # the rule does not apply, and the built-in rules follow
    # The built-in rule tiles stages with data reuse. It is exclusive: no later rule sees the stage.
    config = replace(context.config, tile_structure=STRUCTURE)
    return multi_level_tile(state, replace(context, config=config))


a = te.placeholder((SIZE, SIZE), name="a")
b = te.placeholder((SIZE, SIZE), name="b")
k = te.reduce_axis((0, SIZE), name="k")
c = te.compute((SIZE, SIZE), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")


def sketches(*rules: Rule[Hardware]) -> list[Sketch]:
    """The sketches that these rules and the built-in ones derive for a CPU."""
    dag = read_dag(te.create_prim_func([a, b, c]))
    return CPU_SEARCH.sketches(dag, Hardware(), SketchConfig(), rules)


built_in, with_rule = sketches(), sketches(two_level_tile)
for title, found in (("built-in rules", built_in), ("with the rule", with_rule)):
    programs = sum(sketch.space_size for sketch in found)
    print(f"{title}: {len(found)} sketches, {programs} programs; the first sketch:")
    print(f"{show_sketch(found[0])}\n")

tuned = ansor.tune([a, b, c], trials=TRIALS, rules=[two_level_tile])
x, y = np.random.default_rng(0).standard_normal((2, SIZE, SIZE), np.float32)
np.testing.assert_allclose(tuned(x, y), x @ y, rtol=1e-4, atol=1e-4)
print(tuned.report())
