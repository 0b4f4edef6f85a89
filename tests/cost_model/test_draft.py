"""The draft: results that can be computed by hand, and its preference between two programs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from definitions import HARDWARE, NAMES, sketches, square_matmul
from hypothesis import given
from hypothesis import strategies as st
from rows import Values, population_of

from ansor.annotate.complete import complete
from ansor.annotate.sample import sample
from ansor.config import SketchConfig
from ansor.cost_model.scorer import seconds
from ansor.dag.from_tir.read import read_dag
from ansor.features.profile import StageProfile, profile
from ansor.program.nest import build_nest
from ansor.program.sketch import Sketch
from ansor.sketch.generate import generate
from ansor.sketch.rules import CPU_RULES
from ansor.targets.cpu.draft.constants import DEFAULTS
from ansor.targets.cpu.draft.draft import draft, parallel_speedup
from ansor.targets.cpu.draft.register_tile import TileCost, register_tiles
from ansor.targets.cpu.machine import Hardware
from ansor.workloads import build

# A tile that keeps the units of a common core busy: 8 x 32 floats are 16 registers.
GOOD = {
    "C.i": (2, 8, 2, 8),
    "C.j": (4, 1, 2, 32),
    "C.k": (4, 64),
    "C.parallel": (2,),
    "C.unroll": (16,),
}


@pytest.fixture(scope="module")
def matmul() -> Sketch:
    """256 x 256 x 256: large enough that loops cost more than starting threads."""
    return square_matmul(256)


def profiles_of(sketch: Sketch, *programs: Values) -> dict[str, StageProfile]:
    return profile(build_nest(population_of(sketch, programs)))


def drafted(sketch: Sketch, *programs: Values, hardware: Hardware = HARDWARE) -> np.ndarray:
    """Seconds of each program, by the draft."""
    return seconds(draft(profiles_of(sketch, *programs), hardware))


def tile_of(sketch: Sketch, *programs: Values) -> TileCost:
    return register_tiles(profiles_of(sketch, *programs), HARDWARE, DEFAULTS)["C"]


@pytest.mark.parametrize(
    ("iterations", "cores", "speedup"),
    [(1, 4, 1), (2, 4, 2), (4, 4, 4), (5, 4, 2.5), (6, 4, 3), (8, 4, 4), (9, 2, 1.8), (7, 1, 1)],
)
def test_parallel_speedup(iterations: int, cores: int, speedup: float) -> None:
    found = parallel_speedup(np.float32([iterations]), cores)
    assert found.tolist() == pytest.approx([speedup])


@given(st.integers(1, 10**6), st.integers(1, 256))
def test_parallel_speedup_obeys_its_laws(iterations: int, cores: int) -> None:
    (found,) = parallel_speedup(np.float32([iterations]), cores).tolist()
    assert 0.5 * min(iterations, cores) <= found * (1 + 1e-6)
    assert found <= min(iterations, cores) * (1 + 1e-6)


def test_register_tile_of_a_good_program(matmul: Sketch) -> None:
    tile = tile_of(matmul, GOOD)
    assert tile.elements.tolist() == [8 * 32]
    assert tile.accumulators.tolist() == [8 * 2]  # 32 floats are two registers of 16
    assert tile.steps.tolist() == [256**3 / (8 * 32)]


@pytest.mark.parametrize(
    ("rows", "columns", "accumulators"),
    [(1, 16, 1), (4, 16, 4), (4, 64, 16), (16, 32, 32), (2, 8, 2), (2, 1, 2)],
)
def test_accumulators(matmul: Sketch, rows: int, columns: int, accumulators: int) -> None:
    tiles = {"C.i": (256 // rows, 1, 1, rows), "C.j": (256 // columns, 1, 1, columns)}
    tile = tile_of(matmul, GOOD | tiles)
    assert tile.accumulators.tolist() == [accumulators]
    assert (tile.steps * tile.elements * tile.depth).tolist() == [256**3]


def test_a_long_inner_reduction_loses_less_between_tiles(matmul: Sketch) -> None:
    drain = tile_of(matmul, *[GOOD | {"C.k": (256 // n, n)} for n in (1, 4, 16, 64)]).drain
    assert (np.diff(drain) < 0).all()


def test_few_accumulators_wait_where_few_additions_can(matmul: Sketch) -> None:
    """Two accumulators, 64 additions to each, before the next point's. With room for half
    a point, one and a quarter at a time: 64 x 4 / 1.25 cycles; with more 128 steps, 3 loads for 2
    of them, two a cycle: 96."""
    chained = GOOD | {"C.i": (2, 8, 16, 1)}
    narrow, wide = (replace(HARDWARE, scheduler_window=size) for size in (64.0, 1024.0))
    profiles = profiles_of(matmul, chained)
    slow, fast = (draft(profiles, hardware)["C"] for hardware in (narrow, wide))
    assert slow.arithmetic / fast.needs.ports == pytest.approx(256 / 1.25 / 96, rel=0.05)
    assert fast.needs.ports > fast.arithmetic
    assert slow.seconds > 1.2 * fast.seconds


def test_a_tile_that_spills_loads_and_stores_more(matmul: Sketch) -> None:
    fits, spills = GOOD, GOOD | {"C.i": (2, 1, 2, 64)}
    tile = tile_of(matmul, fits, spills)
    per_element = tile.loads / tile.elements
    assert tile.accumulators[1] > HARDWARE.vector_registers
    assert per_element[1] > tile.accumulators[0] / tile.elements[0] / 4
    assert tile.stores[1] > tile.stores[0]


# pairs of (better, worse): each worse program differs in one idea
PREFERENCES = {
    "vectorised": ({}, {"C.j": (4, 64, 1, 1)}),
    "a whole vector": ({}, {"C.j": (4, 8, 2, 4)}),
    "parallel": ({}, {"C.parallel": (0,)}),
    "a register tile": ({}, {"C.i": (2, 64, 2, 1)}),
    "no spills": ({}, {"C.i": (2, 1, 2, 64)}),
    "accumulators stay": ({}, {"C.k": (256, 1)}),
}


@pytest.mark.parametrize("idea", PREFERENCES)
def test_it_prefers(matmul: Sketch, idea: str) -> None:
    better, worse = PREFERENCES[idea]
    times = drafted(matmul, GOOD | better, GOOD | worse)
    assert times[0] < times[1] * 0.95


# One unit for two of half the width, at twice the clock: the same peak.
NARROW = replace(
    HARDWARE,
    slots=2,
    fma_per_cycle=HARDWARE.fma_per_cycle / 2,
    frequency_hz=HARDWARE.frequency_hz * 2,
)


@pytest.mark.parametrize(("lanes", "fill"), [(4, 0.5), (8, 0.5), (16, 1), (24, 0.75), (32, 1)])
def test_narrow_units_take_half_a_register_in_one_turn(lanes: int, fill: float) -> None:
    """By hand: of two turns for 16 lanes, 8 lanes need one, and 24 three of four."""
    values = {"C.i": (48, 1, 1, 4), "C.j": (192 // lanes, 1, 1, lanes), "C.k": (48, 4)}
    made = profiles_of(square_matmul(192), GOOD | values)
    assert register_tiles(made, HARDWARE, DEFAULTS)["C"].fill.tolist() == [1]
    assert register_tiles(made, NARROW, DEFAULTS)["C"].fill.tolist() == [fill]


def test_narrow_vectors_lose_nothing_on_narrow_units(matmul: Sketch) -> None:
    wide, half = GOOD, GOOD | {"C.i": (2, 4, 2, 16), "C.j": (4, 4, 2, 8)}
    plain = drafted(matmul, wide, half)
    narrow = drafted(matmul, wide, half, hardware=NARROW)
    assert plain[1] > 1.5 * plain[0]
    assert narrow[1] < 1.2 * narrow[0]


def test_a_good_program_comes_near_the_peak_and_none_exceeds_it(matmul: Sketch) -> None:
    fastest = 2 * 256**3 / HARDWARE.peak_flops
    assert fastest <= drafted(matmul, GOOD)[0] < 1.5 * fastest
    population = sample(matmul, 4096, np.random.default_rng(0))
    times = seconds(draft(profile(build_nest(population)), HARDWARE))
    assert (times >= fastest * (1 - 1e-6)).all()


def test_numbers_loaded_for_one_vector_each_cost_issue(matmul: Sketch) -> None:
    """Sixteen registers of results: a row of 16 numbers with one vector asks for 33 operations, 4
    with 4 vectors for 24."""
    slow = replace(HARDWARE, vector_issue=1.7 * HARDWARE.fma_per_cycle)
    tall = GOOD | {"C.i": (4, 2, 2, 16), "C.j": (1, 16, 1, 16)}
    square = GOOD | {"C.i": (4, 4, 4, 4), "C.j": (1, 4, 1, 64)}
    many, few = drafted(matmul, tall, square, hardware=slow) / drafted(matmul, tall, square)
    assert many > 1.1
    assert few == pytest.approx(1, abs=0.04)


LIMITED = replace(HARDWARE, vector_issue=4.0)
BETTER_MACHINES = {
    "frequency_hz": replace(LIMITED, frequency_hz=2 * HARDWARE.frequency_hz),
    "fma_per_cycle": replace(LIMITED, fma_per_cycle=4.0),
    "memory_bandwidth": replace(LIMITED, memory_bandwidth=4 * HARDWARE.memory_bandwidth),
    "cache_bandwidth": replace(LIMITED, cache_bandwidth=(96.0, 32.0, 10.0)),
    "loads_per_cycle": replace(LIMITED, loads_per_cycle=4.0),
    "scheduler_window": replace(LIMITED, scheduler_window=4 * HARDWARE.scheduler_window),
    "issue_width": replace(LIMITED, issue_width=12.0),
    "vector_issue": replace(LIMITED, vector_issue=8.0),
    "parallel_overhead_s": replace(LIMITED, parallel_overhead_s=0.0),
}


@pytest.mark.parametrize("name", ["matmul_relu", "conv2d", "softmax", "row_sum", "max_pool2d"])
@pytest.mark.parametrize("better", BETTER_MACHINES)
def test_a_better_machine_is_never_slower(name: str, better: str) -> None:
    rng = np.random.default_rng(0)
    for sketch in sketches(name):
        made = profile(build_nest(sample(sketch, 64, rng)))
        before = seconds(draft(made, LIMITED))
        after = seconds(draft(made, BETTER_MACHINES[better]))
        assert (after <= before * (1 + 1e-4)).all()


@pytest.mark.parametrize("name", NAMES)
def test_every_program_takes_a_positive_finite_time(name: str) -> None:
    rng = np.random.default_rng(0)
    for sketch in sketches(name):
        made = profile(build_nest(sample(sketch, 256, rng)))
        parts = draft(made, HARDWARE)
        assert list(parts) == list(made)
        for stage in parts.values():
            found = stage.parts()
            for part, value in {**found.resources, **found.further, **found.included}.items():
                assert np.isfinite(value).all(), part
                assert (value >= 0).all(), part
            assert (stage.speedup > 0).all()
            assert (stage.code >= 0).all()
            assert (stage.seconds > 0).all()
        whole = seconds(parts)
        np.testing.assert_allclose(whole, sum(p.seconds for p in parts.values()), rtol=1e-5)


def test_twice_the_work_takes_longer() -> None:
    times = []
    for depth in (128, 256, 512):
        dag = read_dag(build("matmul", rows=128, columns=128, depth=depth).func)
        config = SketchConfig()
        sketch = complete(generate(dag, HARDWARE, CPU_RULES, config)[0], HARDWARE, config)
        tiles = {"C.i": (4, 2, 2, 8), "C.j": (2, 1, 2, 32), "C.k": (depth // 64, 64)}
        times.append(drafted(sketch, tiles | {"C.parallel": (0,)})[0])
    assert times[0] * 1.5 < times[1] < times[2] / 1.5


def test_conditions_cost_arithmetic_only_where_copies_do_not_know_their_answers() -> None:
    """A depthwise convolution with its padding inlined: a multiply-add, or that and a selection."""
    (sketch, *_) = (s for s in sketches("depthwise_conv2d") if s.dag.stages["conv"].has_branch)
    found = profile(build_nest(sample(sketch, 400, np.random.default_rng(0))))
    tile = register_tiles(found, HARDWARE, DEFAULTS)["conv"]
    busy = draft(found, HARDWARE)["conv"].arithmetic
    least = tile.steps * tile.statements * tile.fill / HARDWARE.fma_per_cycle
    bound = busy > 1.001 * least  # by a selection, or by additions that wait
    assert bound[~tile.spelled].all()
    assert not bound[tile.spelled].all()


def test_many_short_iterations_of_a_parallel_loop_find_their_indices() -> None:
    """Three loops of 6, 5 and 6 are one, if all are fused: two divisions for each of 180. The first
    two, 1 and 6, take none."""
    (sketch, *_) = sketches("phases_relu")
    short = {"padded.vector": (6, 1)}
    programs = [{**short, "padded.parallel": (fused,)} for fused in (2, 4)]
    breakdown = draft(profiles_of(sketch, *programs), HARDWARE)["padded"]
    few, all_of_them = breakdown.needs.issue
    assert all_of_them - few == pytest.approx(180 * 2 * 2)
    assert breakdown.seconds[1] > breakdown.seconds[0]


def test_what_other_threads_wrote_is_fetched() -> None:
    """The last stage of a softmax of 16 x 60 reads the exponentials and their sums: of its own
    iteration, if it computes them there, else of other cores."""
    (sketch, *_) = sketches("softmax")
    producers = [f"T_softmax_{name}.location" for name in ("maxelem", "exp", "expsum")]
    own, shared = dict.fromkeys(producers, (1,)), dict.fromkeys(producers, (0,))
    programs = [own | {"T_softmax_norm.parallel": (1,)}, shared | {"T_softmax_norm.parallel": (1,)}]

    def last(hardware: Hardware) -> np.ndarray:
        return draft(profiles_of(sketch, *programs), hardware)["T_softmax_norm"].seconds

    overhead_s = 1e-3
    starts = last(replace(HARDWARE, parallel_overhead_s=overhead_s))
    assert starts[1] == pytest.approx(2 * starts[0], rel=0.01)
    work = last(replace(HARDWARE, parallel_overhead_s=0.0))
    cycles = (work[1] - work[0]) * HARDWARE.frequency_hz * HARDWARE.cores
    fetched = 0.09 * 4 * (16 * 60 + 16)
    assert fetched < cycles < 1.1 * fetched  # a little traffic is added: the buffers are larger
    alone = replace(HARDWARE, parallel_overhead_s=0.0, cores=1)
    assert last(alone)[1] == pytest.approx(last(alone)[0], rel=0.05)


def test_what_a_consumer_moves_comes_in_while_its_host_reduces() -> None:
    """Lines of a fused consumer are prefetched for tiles up to 16 KB. The consumer never costs more
    than in a separate nest. Host and consumer never cost less than their work in the core."""
    product = read_dag(build("matmul", rows=512, columns=512, depth=64).func)
    states = generate(product, HARDWARE, CPU_RULES, SketchConfig())
    made = [complete(state, HARDWARE, SketchConfig()) for state in states]
    fused = [sketch for sketch in made if sketch.roles.fused]
    assert fused
    hidden = 0
    for sketch in fused:
        population = sample(sketch, 64, np.random.default_rng(0))
        profiles = profile(build_nest(population))
        apart = {
            n: replace(p, nest=replace(p.nest, prefetched_tile_bytes=0))
            for n, p in profiles.items()
        }
        beside, alone = draft(profiles, HARDWARE), draft(apart, HARDWARE)
        for name, step in sketch.roles.fused.items():
            np.testing.assert_array_equal(beside[step.stage].seconds, alone[step.stage].seconds)
            assert (beside[name].seconds <= alone[name].seconds * (1 + 1e-5)).all()
            own = np.asarray(profiles[name].active) >= profiles[name].nest.num_host
            tile = 4 * np.where(own[:, None], profiles[name].extents, 1).prod(axis=0)
            large = tile > SketchConfig().consumer_tile_share * HARDWARE.cache_bytes[0]
            np.testing.assert_array_equal(beside[name].seconds[large], alone[name].seconds[large])
            hidden += int((beside[name].seconds < 0.99 * alone[name].seconds).sum())
    assert hidden
