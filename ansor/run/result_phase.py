"""The last phase of a run: winners, compiled networks, and their comparison with the originals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from ansor.callbacks import Finish
from ansor.frontend.deploy.foreign import ForeignModel
from ansor.run.candidates import (
    Candidate,
    compiling,
    fastest_first,
    were_compared,
    winners_of,
)
from ansor.run.prepare import Network, merged
from ansor.run.remarks import NOT_CHECKED
from ansor.run.search.budget import INTERRUPTED, NOTHING, Budget
from ansor.run.search.tuner import Tuner
from ansor.run.session import Session
from ansor.run.tuned.search_history import SearchHistory, trials_by_function
from ansor.run.tuned.tuned_model import TunedModel
from ansor.targets.target import runs_here

K = TypeVar("K")


def finished(session: Session, tuner: Tuner, finish: Finish) -> dict[str, TunedModel]:
    """Chooses the winners of a search, compiles the networks with them and compares these.

    Of a network in several precisions, the fastest one is the result.
    """
    candidates = {
        name: session.candidates.get(name) or [Candidate(network, tuner)]
        for name, network in session.networks.items()
    }
    numbered = {(n, i): each for n, own in candidates.items() for i, each in enumerate(own)}
    known = were_compared(numbered.values(), session.records, session.journal.ended_s)
    leaders = session.plan.leaders if _is_long(session, finish) and not known else 1
    tuned = _compiled(session, numbered, finish, leaders)
    found = {}
    for name, own in candidates.items():
        models = [tuned[name, number] for number in range(len(own))]
        ranked = fastest_first(models)
        pairs = [(own[number].network, models[number]) for number in ranked]
        found[name] = _compared(session, name, pairs, finish)
    if finish.is_complete:
        session.journal.finish()
    return found


def _compiled(
    session: Session, candidates: Mapping[K, Candidate], finish: Finish, leaders: int
) -> dict[K, TunedModel]:
    """Networks with their winners, compiled.

    Args:
        candidates: the networks.
        finish: outcome of the run's search.
        leaders: programs of a function that are timed again.
    """
    is_checked = session.remote is not None or runs_here(session.target)
    session.note("checking the winners" if is_checked else NOT_CHECKED)
    given = session.settings
    measure, keeps = given.config.measure, bool(session.precision.allowed)
    with compiling(session.target, session.threads, candidates) as finishers:
        winners = {
            key: winners_of(each, session.device, session.records, measure, leaders, finishers[key])
            for key, each in candidates.items()
        }
        if not keeps:
            session.device.close()  # workers free the cores for compilation
        session.note("compiling")
        return {
            key: finishers[key].tuned(
                winners[key],
                _finish_of(each, finish),
                given.seed,
                _history(session, each.network),
            )
            for key, each in candidates.items()
        }


def _history(session: Session, network: Network) -> SearchHistory:
    """The search of a network in this run, with the earlier records of its tasks."""
    trials = trials_by_function(network.tasks, session.records)
    given = session.settings
    functions = {task.key: task.group for task in network.tasks}
    measured = tuple(trial for trial in session.measured if trial.task in functions)
    space = session.machine, given.config.sketch, given.rules
    return SearchHistory(*space, trials, measured, functions)


def _compared(
    session: Session,
    name: str,
    tuned: Sequence[tuple[Network, TunedModel]],
    finish: Finish,
) -> TunedModel:
    """The first of tuned networks that computes the right result, with its comparison.

    Args:
        name: of the network.
        tuned: in several precisions, the fastest first.
        finish: outcome of their search.
    """
    allowed, comparison = session.precision.allowed.get(name), session.comparisons.get(name)
    if allowed is not None:
        compiled = partial(_compiled_again, session, finish)
        return allowed.within_budget(tuned, compiled, session.note)
    _, model = tuned[0]
    if comparison is None:
        return model
    if isinstance(model.compiled, ForeignModel):
        if session.remote is not None:
            session.note(f"{name} is for another machine: its functions were checked there alone")
        return replace(model, checks=tuple(comparison.checks))
    comparison.check_tuned(model.compiled)
    return replace(model, checks=tuple(comparison.checks))


def _compiled_again(session: Session, finish: Finish, network: Network) -> TunedModel:
    """A network with the best known programs.

    New functions are searched in the remaining time. If there is none, the draft chooses.
    """
    tuner = session.tuner(*merged({"": network}))
    tuner.seed_unknown()
    left_s = session.plan.left_s or 0.0
    limits = session.settings.limits
    tuner.run(Budget(seconds=left_s, per_task=limits) if left_s > 0 else NOTHING)
    return _compiled(session, {"": Candidate(network, tuner)}, finish, leaders=1)[""]


def _is_long(session: Session, finish: Finish) -> bool:
    """Whether there was a search that was not interrupted."""
    return session.settings.searches and finish.reason != INTERRUPTED


def _finish_of(candidate: Candidate, finish: Finish) -> Finish:
    """The outcome of a network's search: the last search of the run, or one for its rivals."""
    statuses = candidate.tuner.statuses
    return finish if finish.tasks == statuses else replace(finish, tasks=statuses)
