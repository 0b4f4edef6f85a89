"""The final program of a task: it always runs and is right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest
from definitions import HARDWARE
from fake_world import CONFIG, TARGET, WEIGHTS, World, latency_of, make_task, noise

from ansor.config import FULL, MeasureConfig
from ansor.database.journal import Journal
from ansor.errors import DatabaseError
from ansor.measure.call_plan import CallPlan, PlannedCall
from ansor.measure.device import TaskProgram
from ansor.measure.fake import FakeDevice
from ansor.measure.result import ErrorKind, Measurement
from ansor.program.program import Program, shared_axes
from ansor.run.search.budget import Budget
from ansor.run.search.task_search import TaskSearch
from ansor.run.search.tuner import Tuner
from ansor.run.winners.choose import Winner, choose_winners, finish_seconds, num_leaders
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.task import Converted, Original, Task

NAME = "matmul_relu"
MEASURE = CONFIG.measure
ALONE = CallPlan((PlannedCall(NAME, (0, 1, 2)),), (4, 4, 4))
Fail = Callable[[Task, Program], ErrorKind | None]


def tuned(trials: int = 48) -> World:
    world = World(NAME)
    world.run(trials)
    return world


def functions_of(world: World) -> dict[str, list[TaskSearch]]:
    return world.tuner.functions([search.task for search in world.tuner.searches])


def choose(
    world: World,
    device: FakeDevice | None = None,
    leaders: int = 1,
    config: MeasureConfig = MEASURE,
) -> Winner:
    functions, used = functions_of(world), device or world.device
    return choose_winners(functions, ALONE, used, world.database, config, leaders)[NAME]


def ranking(world: World) -> list[Program]:
    """Everything measured, fastest first."""
    key = world.tuner.searches[0].task.key
    return [r.program for r in world.database.best(key, TARGET, 10_000)]


def leading(world: World) -> list[Program]:
    """The two fastest, and the fastest that shares the work among the cores in another way."""
    ranked = ranking(world)
    ways = [shared_axes(program) for program in ranked]
    fresh = [p for i, p in enumerate(ranked) if i > 1 and ways[i] not in ways[:i]]
    assert fresh, "the search has tried several ways"
    return [*ranked[:2], fresh[0]]


def faulty(kind: ErrorKind, *bad: Program) -> FakeDevice:
    return FakeDevice(latency_of, lambda _, program: kind if program in bad else None)


def test_the_fastest_wins() -> None:
    world = tuned()
    first = ranking(world)[0]
    winner = choose(world)
    assert winner.program == first
    assert winner.latency_s == latency_of(world.tuner.searches[0].task, first)
    assert winner.difference == 0.0
    assert winner.note == ""
    assert len(world.device.verified) == 1, "no more is checked than needed"


def test_what_is_checked_next_is_told_before() -> None:
    world = tuned()
    first, second = ranking(world)[:2]
    (task,) = (search.task for search in world.tuner.searches)
    told: list[dict[str, TaskProgram]] = []
    bad = faulty(ErrorKind.WRONG, first)
    functions = functions_of(world)
    winners = choose_winners(
        functions, ALONE, bad, world.database, MEASURE, 1, lambda chosen: told.append(dict(chosen))
    )
    assert told == [{NAME: (task, first)}, {NAME: (task, second)}]
    assert winners[NAME].program == second


def test_what_was_found_right_is_not_checked_again() -> None:
    world = tuned()
    first, again = choose(world), choose(world)
    assert (again.program, again.difference) == (first.program, first.difference)
    assert len(world.device.verified) == 1
    strict = replace(MEASURE, verify_rtol=-1.0)  # nothing on record is as exact
    assert choose(world, config=strict).program == first.program
    assert len(world.device.verified) == 2


def test_what_was_found_wrong_is_not_noted_as_right() -> None:
    world = tuned()
    first = ranking(world)[0]
    winner = choose(world, faulty(ErrorKind.WRONG, first))
    task = world.tuner.searches[0].task
    assert world.database.checked(task, first) is None
    assert world.database.checked(task, winner.program) == 0.0


class Close(FakeDevice):
    """A device whose second look differs from the first."""

    def __init__(self, again: Callable[[Program], float | None]) -> None:
        super().__init__(latency_of)
        self.compared: list[Program] = []
        self.rounds = 0
        self._again = again

    def compare(self, task: Task, programs: Sequence[Program], rounds: int) -> list[float | None]:
        if not all(program.steps for program in programs):
            return [1e3] * len(programs)  # the untuned program never wins here
        self.rounds = rounds
        self.compared = list(programs)
        return [self._again(program) for program in programs]


def test_noise_is_settled_by_timing_the_leaders_in_turns() -> None:
    world = tuned()
    first, second, third = leading(world)
    wide = replace(MEASURE, leader_margin=10.0)
    device = Close(lambda program: {repr(second): 1.0}.get(repr(program), 2.0))
    winner = choose(world, device, leaders=3, config=wide)
    assert device.compared == [first, second, third]
    assert (winner.program, winner.latency_s) == (second, 1.0)


def test_what_the_draft_preferred_is_timed_again() -> None:
    """However slow it seemed to be: that may have been the machine."""
    world = tuned(64)
    preferred = world.tuner.searches[0].policy.preferred
    assert preferred is not None
    assert preferred.program not in leading(world)
    device = Close(lambda program: 1.0 if program == preferred.program else 2.0)
    winner = choose(world, device, leaders=4, config=replace(MEASURE, leader_margin=0.0))
    assert device.compared == [ranking(world)[0], preferred.program]
    assert winner.program == preferred.program
    choose(world, device, leaders=4, config=replace(MEASURE, leader_margin=10.0))
    assert device.compared == [*leading(world), preferred.program]


@pytest.mark.parametrize(
    ("runs", "rounds"), [(1000, MEASURE.compare_rounds), (13, 6), (12, 6), (1, 3)]
)
def test_slow_leaders_have_fewer_turns(runs: int, rounds: int) -> None:
    """Of which each has two runs; `runs` of all leaders fit into the time."""
    world = tuned()
    leaders = leading(world)
    task, device = world.tuner.searches[0].task, Close(lambda _: 1.0)
    once_s = sum(latency_of(task, program) for program in leaders)
    config = replace(MEASURE, leader_margin=10.0, compare_s=runs * once_s * 1.001)
    choose(world, device, leaders=3, config=config)
    assert device.rounds == rounds


def test_what_cannot_be_noted_costs_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    world = tuned()

    def full(*_: object) -> None:
        raise DatabaseError("database='r.db': disk is full", "free some space")

    monkeypatch.setattr(world.database, "elect", full)
    monkeypatch.setattr(world.database, "add_check", full)
    device = Close(lambda _: 1.0)
    with pytest.warns(RuntimeWarning, match="disk is full"):
        winner = choose(world, device, leaders=3, config=replace(MEASURE, leader_margin=10.0))
    assert winner.program in leading(world)
    assert winner.difference == 0.0


def test_a_wrong_leader_that_cannot_be_noted_costs_no_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = tuned()
    first, second = ranking(world)[:2]

    def full(*_: object) -> None:
        raise DatabaseError("database='r.db': disk is full", "free some space")

    monkeypatch.setattr(world.database, "add", full)
    with pytest.warns(RuntimeWarning, match="disk is full"):
        winner = choose(world, faulty(ErrorKind.WRONG, first))
    assert winner.program == second


def elected_second(world: World) -> Program:
    """What wins when leaders are compared, though another was measured to be faster."""
    _, second, _ = leading(world)
    device = Close(lambda program: {repr(second): 1.0}.get(repr(program), 2.0))
    return choose(world, device, leaders=3, config=replace(MEASURE, leader_margin=10.0)).program


def test_the_winner_of_the_last_comparison_wins_where_there_is_none() -> None:
    world = tuned()
    second = elected_second(world)
    assert second != ranking(world)[0]
    assert choose(world).program == second
    assert not world.device.verified, "it has been found right"


def test_what_was_measured_since_may_win() -> None:
    world = tuned()
    second = elected_second(world)
    search, slow = world.tuner.searches[0], ranking(world)[-1]
    world.database.add(search.task, slow, Measurement((1.01 * search.least_s,)))
    assert choose(world).program == slow != second


def test_a_leader_that_fails_the_comparison_keeps_its_first_time() -> None:
    world = tuned()
    first, *_ = ranking(world)
    wide = replace(MEASURE, leader_margin=10.0)
    winner = choose(world, Close(lambda _: None), leaders=3, config=wide)
    assert winner.program == first
    assert winner.latency_s == latency_of(world.tuner.searches[0].task, first)


def test_fewer_leaders_are_timed_where_time_is_short() -> None:
    counts = [num_leaders(minutes, 20, FULL) for minutes in (0.5, 1, 4, 8, 60)]
    assert counts == sorted(counts)
    assert counts[0] == FULL.least_leaders
    assert counts[-1] == FULL.measure.leaders == num_leaders(None, 20, FULL)
    for minutes, count in zip((4, 8, 60), counts[2:], strict=True):
        beyond = finish_seconds(count, 20, FULL) - finish_seconds(0, 20, FULL)
        assert beyond <= FULL.finish_share * minutes * 60


def test_what_is_far_behind_is_not_timed_again() -> None:
    world = tuned()
    device = Close(lambda _: 1.0)
    choose(world, device, leaders=3, config=replace(MEASURE, leader_margin=0.0))
    assert device.compared == []


def test_a_disturbed_program_is_compared_though_it_seemed_slow() -> None:
    """It has a place beside the leaders if it may be the fastest on a quiet machine."""
    world = tuned()
    task, ranked = world.tuner.searches[0].task, ranking(world)
    best_s = latency_of(task, ranked[0])
    names = {"fine": 1.9, "far": 2.1}
    for name, factor in names.items():
        marked = replace(ranked[0], sketch=name)
        world.database.add(task, marked, Measurement((factor * best_s,), disturbed=True))
    device = Close(lambda program: 1.0 if program.sketch == "fine" else 2.0)
    narrow = replace(MEASURE, leader_margin=0.0)
    winner = choose(world, device, leaders=4, config=narrow)
    assert "far" not in {program.sketch for program in device.compared}
    assert winner.program.sketch == "fine"


@pytest.mark.parametrize("count", [1, 2, 4])
def test_wrong_programs_are_passed_over_and_remembered(count: int) -> None:
    world = tuned()
    task, order = world.tuner.searches[0].task, ranking(world)
    wrong = order[:count]
    winner = choose(world, faulty(ErrorKind.WRONG, *wrong))
    assert winner.program == order[count], "the next best measured"
    assert winner.latency_s == latency_of(task, order[count])
    assert winner.note.count("wrong: injected fault") == count
    marked = [r for r in world.database.records(task.key, TARGET) if r.measurement.error]
    assert [r.program for r in marked] == wrong
    assert all(r.measurement.error is ErrorKind.WRONG for r in marked)


def test_a_wrong_program_is_not_the_best_of_the_next_run() -> None:
    world = tuned()
    task, order = world.tuner.searches[0].task, ranking(world)
    choose(world, faulty(ErrorKind.WRONG, order[0]))
    again = World(NAME, database=world.database, seed=1)
    assert again.best_s(NAME) == latency_of(task, order[1])
    again.run(16)
    assert repr(order[0]) not in {repr(program) for _, program in again.device.trace}
    assert choose(again).program != order[0]


@pytest.mark.parametrize("kind", [ErrorKind.CRASH, ErrorKind.TIMEOUT, ErrorKind.BUILD])
def test_what_fails_once_is_not_called_wrong(kind: ErrorKind) -> None:
    world = tuned()
    task, order = world.tuner.searches[0].task, ranking(world)
    winner = choose(world, faulty(kind, order[0]))
    assert winner.program == order[1]
    assert winner.note == f"{kind.value}: injected fault"
    errors = [r.measurement.error for r in world.database.records(task.key, TARGET)]
    assert [e for e in errors if e is not None] == [kind]


def test_without_a_measurement_the_draft_decides() -> None:
    world = World(NAME)
    winner = choose(world)
    again = World(NAME).tuner.searches[0]
    drafted = again.policy.draft_best()
    assert drafted is not None
    assert winner.program.steps
    assert winner.program == drafted.program
    assert winner.latency_s is None
    assert winner.difference == 0.0


def test_when_all_trials_failed_the_draft_decides() -> None:
    world = World(NAME, fail=lambda *_: ErrorKind.BUILD)
    world.run(16)
    winner = choose(world, FakeDevice(latency_of))
    assert winner.program.steps
    assert repr(winner.program) not in {repr(program) for _, program in world.device.trace}
    assert winner.latency_s is None


def test_when_nothing_works_the_definition_as_it_was_written() -> None:
    world = World(NAME, fail=lambda *_: ErrorKind.CRASH)
    world.run(16)
    winner = choose(world)
    assert winner.program == Program()
    assert winner.latency_s is None
    assert winner.difference is None
    assert "crash: injected fault" in winner.note


def test_when_everything_is_wrong_it_gives_up_in_time() -> None:
    world = tuned(64)
    device = FakeDevice(latency_of, lambda *_: ErrorKind.WRONG)
    winner = choose(world, device)
    assert winner.program == Program()
    assert len(device.verified) <= 16


# --- several definitions of one function --------------------------------------------------------


def related(factor: float) -> tuple[World, FakeDevice]:
    """A function with a variant that takes `factor` times as long, and the device that says so."""
    plain = make_task(NAME)
    original = Original(NAME, "other", plain.func, Converted(1, lambda array: array))
    other = replace(make_task("matmul"), name="variant", original=original)
    device = FakeDevice(
        lambda task, p: noise(p) * (factor if task is other else 1.0) * (1e-3 if p.steps else 1.0)
    )
    world = World(NAME)
    whatever_is_promised = replace(CONFIG.scheduler, promise_margin=1e9, begin_margin=1e9)
    config = replace(CONFIG, scheduler=whatever_is_promised)
    tuner = Tuner([plain, other], HARDWARE, CPU_SEARCH, device, Journal(world.database), config)
    tuner.run(Budget(64))
    world.tuner = tuner
    return world, device


def test_variants_of_a_lone_function_are_not_compared_as_one_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of eight leaders some are of each."""
    world, device = related(1.0)
    compared: list[Program] = []

    def refuse(task: Task, programs: Sequence[Program], rounds: int) -> list[float | None]:
        compared.extend(programs)
        return [None] * len(programs)

    monkeypatch.setattr(device, "compare", refuse)
    winner = choose(world, device, leaders=8, config=replace(MEASURE, leader_margin=10.0))
    best_s = {search.task.kind: search.best_s for search in world.tuner.searches}
    assert winner.latency_s == min(best for best in best_s.values() if best)
    assert best_s[winner.task.kind] == winner.latency_s
    assert compared == [Program()]


@pytest.mark.parametrize(("factor", "kind"), [(0.5, "other"), (2.0, "direct")])
def test_the_fastest_variant_wins(factor: float, kind: str) -> None:
    world, device = related(factor)
    assert list(functions_of(world)) == [NAME]
    latencies = [s.best_s for s in world.tuner.searches]
    assert world.tuner.latency_s == [WEIGHTS[NAME] * min(x for x in latencies if x)]
    winner = choose(world, device, leaders=4)
    assert winner.task.kind == kind
    assert winner.task.group == NAME
    assert winner.latency_s == min(x for x in latencies if x)


def test_a_variant_that_is_wrong_leaves_the_function_to_the_other() -> None:
    world, device = related(0.5)
    wrong = FakeDevice(
        device._latency_of, lambda task, _: ErrorKind.WRONG if task.original else None
    )
    winner = choose(world, wrong)
    assert winner.task.kind == "direct"
    assert winner.latency_s == world.tuner.searches[0].best_s
    assert 1 <= winner.note.count("wrong") <= 8


def test_without_measurements_the_draft_chooses_the_variant() -> None:
    world = World(NAME)
    plain = make_task(NAME)
    original = Original(NAME, "other", plain.func, Converted(1, lambda array: array))
    tasks = [plain, replace(make_task("row_sum"), name="variant", original=original)]
    world.tuner = Tuner(tasks, HARDWARE, CPU_SEARCH, world.device, world.journal, CONFIG)
    promised = [search.promised_s for search in world.tuner.searches]
    winner = choose(world)
    assert winner.task is tasks[promised.index(min(promised))]
    assert winner.latency_s is None


class InPlace(FakeDevice):
    """A device on which the second leader is the fastest inside the network."""

    def rehearse(
        self, plan: CallPlan, candidates: Mapping[str, Sequence[TaskProgram]], seconds: float
    ) -> dict[str, list[float | None]]:
        assert seconds == MEASURE.rehearsal_s
        self.seen = {name: [program for _, program in own] for name, own in candidates.items()}
        return {name: [3.0, 1.0, None][: len(own)] for name, own in candidates.items()}


def test_leaders_of_a_network_are_compared_in_its_run() -> None:
    world = tuned()
    first, second, third = leading(world)
    plan = CallPlan((PlannedCall(NAME, (0, 1, 2)), PlannedCall(NAME, (2, 1, 0))), (4, 4, 4))
    wide = replace(MEASURE, leader_margin=10.0)
    device, functions = InPlace(latency_of), functions_of(world)
    winner = choose_winners(functions, plan, device, world.database, wide, 3)[NAME]
    assert device.seen == {NAME: [first, second, third]}
    assert (winner.program, winner.latency_s) == (second, 0.5), "for one of the two calls"
