"""The steps after the search: insert the winners, compile the network, collect the outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future
from typing import Any

import tvm

from ansor.callbacks import Finish
from ansor.frontend.deploy.assembly import apply_programs
from ansor.frontend.deploy.built import DeployableNetwork, built
from ansor.frontend.deploy.runtime import ready
from ansor.frontend.variants import with_variants
from ansor.lowering.lower import lower
from ansor.measure.device import TaskProgram
from ansor.program.layout import PackedLayout, packings
from ansor.program.program import Program
from ansor.results import TaskResult
from ansor.run.prepare import Network
from ansor.run.tuned.chosen_programs import ChosenPrograms
from ansor.run.tuned.search_history import SearchHistory
from ansor.run.tuned.tuned_model import TunedModel
from ansor.run.winners.choose import Winner
from ansor.targets.build import pass_context
from ansor.task import Task


class Finisher:
    """Compiles a network with the winners in the background, while they are checked.

    Args:
        threads: that the network runs on.
        background: executor with one thread.
    """

    def __init__(
        self, network: Network, target: tvm.target.Target, threads: int, background: Executor
    ) -> None:
        self._network, self._target, self._threads = network, target, threads
        self._background = background
        self._chosen: Mapping[str, TaskProgram] = {}
        self._built: Future[DeployableNetwork] | None = None

    def begin(self, chosen: Mapping[str, TaskProgram]) -> None:
        """Starts to compile with these programs and returns at once.

        Args:
            chosen: of each function.
        """
        self._chosen = chosen
        self._built = self._background.submit(
            _built, self._network, self._target, self._threads, chosen
        )

    def tuned(
        self, winners: Mapping[str, Winner], finish: Finish, seed: int, history: SearchHistory
    ) -> TunedModel:
        """The compiled network and its outcome. Waits for the running compilation if all of its
        programs have won."""
        chosen = {name: (winner.task, winner.program) for name, winner in winners.items()}
        if self._built is None or chosen != self._chosen:
            self.begin(chosen)
        assert self._built is not None
        compiled = ready(self._built.result(), self._threads)
        network = self._network
        results = _results(network, winners, finish)
        calling, state = network.calling, network.state
        return TunedModel(
            compiled,
            results,
            finish,
            seed,
            network.mod,
            calling,
            state,
            precision=network.precision,
            programs=ChosenPrograms(_with_chosen_variants(network, chosen), chosen),
            history=history,
        )


def _with_chosen_variants(network: Network, chosen: Mapping[str, TaskProgram]) -> tvm.IRModule:
    """The network that calls the chosen variants of its functions."""
    variants = {
        name: network.variants[task.name]
        for name, (task, _) in chosen.items()
        if task.original is not None
    }
    return with_variants(network.mod, variants)


def _built(
    network: Network,
    target: tvm.target.Target,
    threads: int,
    chosen: Mapping[str, TaskProgram],
) -> DeployableNetwork:
    """Inserts programs and compiles."""
    scheduled: dict[str, Any] = {}
    layouts: dict[str, dict[int, PackedLayout]] = {}
    for task, program in chosen.values():
        if program.steps:
            scheduled[task.name] = lower(task.func, program, task.by_hand)
            names = list(task.dag.buffers)
            packed = packings(program)
            layouts[task.name] = {names.index(b): layout for b, layout in packed.items()}
    with pass_context(scheduled.values()):
        applied = apply_programs(_with_chosen_variants(network, chosen), scheduled, layouts)
        return built(applied, target, threads)


def _results(
    network: Network, winners: Mapping[str, Winner], finish: Finish
) -> tuple[TaskResult, ...]:
    """The outcomes of the network's functions."""
    tuned = [
        _result(winner, [task for task in network.tasks if task.group == name], finish)
        for name, winner in winners.items()
    ]
    unscheduled = [
        TaskResult(name, 1, 0, None, 0, Program().sketch, None, note=f"runs unscheduled: {reason}")
        for name, reason in network.unscheduled.items()
    ]
    return (*tuned, *unscheduled)


def _result(winner: Winner, variants: Sequence[Task], finish: Finish) -> TaskResult:
    keys = {task.key for task in variants}
    own = [status for status in finish.tasks if status.key in keys]
    task = winner.task
    return TaskResult(
        name=task.group,
        weight=task.weight,
        flops=variants[0].dag.flops,
        latency_s=winner.latency_s,
        trials=sum(status.trials for status in own),
        sketch=winner.program.sketch,
        difference=winner.difference,
        variant=task.kind,
        note=winner.note,
        runner_up_s=winner.runner_up_s,
        untuned_s=winner.untuned_s,
        spread=winner.spread,
        errors=sum((Counter(status.errors) for status in own), Counter[str]()),
    )
