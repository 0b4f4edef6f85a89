"""What a template's calls of `cfg` record and read."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
import pytest
from hand_schedules import matmul_tensors, sampled_matmul, tiled_conv2d, tiled_matmul
from tvm import te

import ansor
from ansor.annotate.sample import sample
from ansor.dag.from_tir.read import read_dag
from ansor.errors import ArgumentError, LoweringError, TemplateMismatchError, UnsupportedError
from ansor.lowering.lower import lower
from ansor.lowering.trace import traced
from ansor.measure.pickled_schedule import pickled, unpickled
from ansor.program.codec import decode, encode
from ansor.templates.choices import Choices
from ansor.templates.config import Config
from ansor.templates.template import TemplateCall, offers


def of_template(body: Callable[[Any, Any], None]) -> TemplateCall:
    """A template of a small product, scheduled by `body(cfg, sch)`."""

    @ansor.template("small")
    def small(cfg: Any) -> Any:
        sch = cfg.schedule(matmul_tensors(8, 16, 4))
        body(cfg, sch)
        return sch

    return small()


def test_knobs_are_decisions_in_the_order_of_the_first_run() -> None:
    decisions = tiled_matmul(32, 48, 24).schedule.decisions
    names = [decision.name for decision in decisions]
    assert names == ["tile_y", "tile_x", "tile_r", "order", "parallel", "inner"]
    assert [decision.size for decision in decisions] == [6, 6, 4, 2, 2, 2]


def test_a_program_is_a_row_of_integers_that_a_record_holds() -> None:
    call = tiled_matmul(32, 48, 24)
    sketch = call.schedule.sketch(read_dag(call.definition))
    for row in range(8):
        program = sample(sketch, 8, np.random.default_rng(0)).program(row)
        assert decode(encode(program)) == program
        assert sketch.row_of(decode(encode(program))) is not None
    assert len(encode(program)) < 400


@pytest.mark.parametrize("call", [tiled_matmul(32, 48, 24), tiled_conv2d(8, 8, 32)])
def test_equal_values_give_equal_functions_in_another_process(call: TemplateCall) -> None:
    sent = unpickled(pickled(call.schedule))
    sketch = call.schedule.sketch(read_dag(call.definition))
    population = sample(sketch, 4, np.random.default_rng(1))
    scripts = set()
    for row in range(4):
        program = population.program(row)
        here = lower(call.definition, program, call.schedule)
        there = lower(call.definition, program, sent)
        assert here.script() == there.script()
        scripts.add(here.script())
    assert len(scripts) > 1


def test_a_program_of_a_schedule_that_is_missing_is_refused() -> None:
    call = tiled_matmul(32, 48, 24)
    program = sample(call.schedule.sketch(read_dag(call.definition)), 1, np.random.default_rng(0))
    with pytest.raises(LoweringError, match="templates="):
        lower(call.definition, program.program(0))
    with pytest.raises(UnsupportedError, match="final functions"):
        traced(call.definition, program.program(0))


@pytest.mark.parametrize("extent", [8, te.reduce_axis((0, 8), name="r")])
def test_a_loop_may_be_a_number_or_an_axis(extent: Any) -> None:
    assert Config(Choices()).split("tile", extent, 2).size == (8, 1)


def test_a_knob_may_be_read_by_its_name() -> None:
    config = Config(Choices({"tile": (2, 4), "unroll": (16,), "way": (1,)}))
    assert config.split("tile", 8).size == config["tile"].size == (2, 4)
    assert config.knob("unroll", [0, 16, 64]) == config["unroll"].val == 16
    assert config.knob("way", ["a", "b"]) == "b"
    with pytest.raises(ArgumentError, match="tile, unroll, way"):
        config["tiles"]


BAD = {
    "no candidates": (lambda cfg, sch: cfg.knob("k", []), "no candidates"),
    "no tile": (lambda cfg, sch: cfg.split("k", 8, filter=lambda tile: False), "no candidates"),
    "two of one name": (lambda cfg, sch: [cfg.knob("k", [1]), cfg.knob("k", [2])], "two knobs"),
    "no such loop": (
        lambda cfg, sch: cfg.split("k", sch.get_loops(sch.get_sblock("C"))[3]),
        "IndexError",
    ),
    "no loop": (lambda cfg, sch: cfg.split("k", "y"), "constant extent"),
    "no such block": (
        lambda cfg, sch: sch.get_sblock("D"),
        "no block 'D'; name one of the blocks: C",
    ),
    "an error of Python": (lambda cfg, sch: cfg.nothing, "AttributeError"),
    "never legal": (lambda cfg, sch: sch.vectorize(sch.get_loops("C")[2]), "no legal schedule"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_named(case: str) -> None:
    body, message = BAD[case]
    with pytest.raises((ArgumentError, TemplateMismatchError), match=message):
        _ = of_template(body).schedule


def test_a_result_that_is_no_schedule_is_refused() -> None:
    nothing = ansor.template("nothing")(lambda cfg: 3)
    with pytest.raises(ArgumentError, match="return a schedule"):
        _ = nothing().schedule


def test_names_are_identifiers_and_differ() -> None:
    with pytest.raises(ArgumentError, match="identifier"):
        ansor.template("my matmul")
    with pytest.raises(ArgumentError, match="identifier"):
        offers([lambda sch: None])
    with pytest.raises(ArgumentError, match="two have this name"):
        offers([sampled_matmul, sampled_matmul])
    with pytest.raises(ArgumentError, match="give templates"):
        offers([3])


def test_first_values_that_are_illegal_are_left() -> None:
    """The reduction cannot be a vector: the first run has to take another candidate."""

    def body(cfg: Any, sch: Any) -> None:
        loops = sch.get_loops(sch.get_sblock("C"))
        sch.vectorize(loops[cfg.knob("vector", [2, 1])])
        cfg.split("after", loops[0])

    assert [d.name for d in of_template(body).schedule.decisions] == ["vector", "after"]


def test_a_knob_that_appears_for_some_values_is_named_with_the_remedy() -> None:
    def body(cfg: Any, sch: Any) -> None:
        if cfg.knob("more", [0, 1]):
            cfg.knob("hidden", [1, 2])

    call = of_template(body)
    with pytest.raises(LoweringError, match="'hidden' appears only for some values"):
        call.schedule.apply(call.definition, {"more": (1,)})


def test_what_cannot_be_sent_to_a_worker_is_refused() -> None:
    lock = Lock()

    @ansor.template("locked")
    def locked(cfg: Any) -> Any:
        with lock:
            return cfg.schedule(matmul_tensors(4, 4, 4))

    with pytest.raises(ArgumentError, match="worker process"):
        pickled(locked().schedule)
