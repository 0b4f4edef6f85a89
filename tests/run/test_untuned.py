"""The winner against the runner-up and the untuned program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from fake_world import CONFIG, World, latency_of, make_task

from ansor.measure.call_plan import CallPlan, PlannedCall
from ansor.measure.fake import FakeDevice
from ansor.measure.result import ErrorKind, InTurns, Measurement
from ansor.program.program import Program
from ansor.run.finish import _result
from ansor.run.winners.choose import Winner, choose_winners
from ansor.run.winners.untuned import expected_s
from ansor.task import Task

NAME = "matmul_relu"
ALONE = CallPlan((PlannedCall(NAME, (0, 1, 2)),), (4, 4, 4))
TWICE = CallPlan((PlannedCall(NAME, (0, 1, 2)), PlannedCall(NAME, (2, 1, 0))), (4, 4, 4))
MEASURE = replace(CONFIG.measure, leader_margin=10.0)
SPREAD = 0.02


class Turns(FakeDevice):
    """Leaders take 1, 1.1, 1.2 ms and so on in turns; what the untuned program takes is told."""

    def __init__(self, untuned_s: float | None) -> None:
        super().__init__(latency_of)
        self.untuned_s = untuned_s
        self.asked: list[tuple[int, bool]] = []

    def compare_turns(
        self, task: Task, programs: Sequence[Program], rounds: int
    ) -> list[InTurns | None]:
        self.asked.append((len(programs), not programs[-1].steps))
        return [self._turns(place, program) for place, program in enumerate(programs)]

    def _turns(self, place: int, program: Program) -> InTurns | None:
        if program.steps:
            return InTurns(1e-3 + 1e-4 * place, SPREAD)
        return None if self.untuned_s is None else InTurns(self.untuned_s, SPREAD)


def tuned() -> World:
    world = World(NAME)
    world.run(24)
    return world


def choose(
    world: World,
    device: FakeDevice,
    plan: CallPlan = ALONE,
    leaders: int = 4,
    config: object = None,
) -> Winner:
    functions = world.tuner.functions([search.task for search in world.tuner.searches])
    measure = config or MEASURE
    return choose_winners(functions, plan, device, world.database, measure, leaders)[NAME]  # type: ignore[arg-type]


def test_the_result_says_how_far_ahead_the_winner_is() -> None:
    world, device = tuned(), Turns(0.5)
    winner = choose(world, device)
    assert winner.latency_s == 1e-3
    assert (winner.runner_up_s, winner.untuned_s) == (1.1e-3, 0.5)
    assert winner.spread == SPREAD
    result = _result(winner, [winner.task], world.events.finishes[-1])
    assert result.speedup == pytest.approx(500)
    assert result.margin == pytest.approx(0.1)
    assert result.spread == SPREAD
    assert device.asked == [(4, False), (1, True)], "what is far behind needs no turns"


def test_an_untuned_program_near_the_best_is_compared_in_turns() -> None:
    device = Turns(1.5e-3)
    winner = choose(tuned(), device)
    assert device.asked == [(4, False), (1, True), (2, True)]
    assert winner.program.steps
    assert winner.untuned_s == pytest.approx(1.5e-3)
    assert winner.runner_up_s == 1.1e-3


def test_an_untuned_program_that_is_faster_is_used() -> None:
    world, device = tuned(), Turns(0.8e-3)
    winner = choose(world, device)
    assert winner.program == Program()
    assert winner.latency_s == winner.untuned_s == pytest.approx(0.8e-3)
    assert winner.runner_up_s == 1e-3
    assert winner.note == "no program is faster than the untuned one"
    assert device.verified[-1] == (winner.task.key, Program()), "it is checked as any winner is"
    result = _result(winner, [winner.task], world.events.finishes[-1])
    assert (result.sketch, result.speedup) == ("untuned", 1.0)
    again = choose(world, Turns(None), leaders=1)
    assert again.program == Program(), "the election holds for later compilations"


def test_what_is_measured_after_the_election_may_win() -> None:
    world = tuned()
    choose(world, Turns(0.8e-3))
    search = world.tuner.searches[0]
    program = world.database.best(search.task.key, search.task.target)[0].program
    world.database.add(search.task, program, Measurement((1.0,)))
    assert not choose(world, Turns(None), leaders=1).program.steps, "a slow program wins nothing"
    world.database.add(search.task, program, Measurement((1.01 * search.least_s,)))
    assert choose(world, Turns(None), leaders=1).program == program


def test_an_untuned_program_that_cannot_run_changes_nothing() -> None:
    winner = choose(tuned(), Turns(None))
    assert winner.program.steps
    assert winner.untuned_s is None
    assert winner.latency_s == 1e-3


def test_a_long_untuned_program_is_not_run() -> None:
    task = make_task(NAME)
    device = Turns(0.5)
    config = replace(MEASURE, untuned_s=0.99 * expected_s(task, MEASURE))
    winner = choose(tuned(), device, config=config)
    assert winner.untuned_s is None
    assert device.asked == [(4, False)]
    steps = 32 * 40 * 36 + 32 * 40
    assert expected_s(task, MEASURE) == MEASURE.untuned_runs * MEASURE.iteration_s * steps


def test_a_function_of_a_network_has_the_latency_of_its_rehearsal() -> None:
    world, device = tuned(), Turns(0.8e-3)
    winner = choose(world, device, TWICE)
    best_s = world.best_s(NAME)
    assert best_s is not None
    assert device.asked == [(1, True)]
    assert winner.untuned_s == 0.8e-3
    assert winner.spread is None
    assert (winner.latency_s, winner.program.steps != ()) == (min(best_s, 0.8e-3), best_s < 0.8e-3)


def test_a_winner_after_a_wrong_one_is_compared_with_what_is_left() -> None:
    world = tuned()
    task = world.tuner.searches[0].task
    device = Turns(0.5)
    first = world.database.best(task.key, task.target)[0].program
    device._fail = lambda _, program: ErrorKind.WRONG if program == first else None
    winner = choose(world, device)
    assert winner.latency_s == pytest.approx(1.1e-3)
    assert winner.runner_up_s == pytest.approx(1.2e-3)
