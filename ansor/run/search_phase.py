"""The second phase of a run: the search of the tasks, until the budget ends."""

from __future__ import annotations

from ansor.callbacks import Finish
from ansor.database.journal import open_journal
from ansor.run.arguments import check_records
from ansor.run.candidates import Candidate, near_fastest
from ansor.run.identity import resumption, run_request
from ansor.run.prepare import merged
from ansor.run.remarks import choice_remarks, machine_remarks, transfer_remarks
from ansor.run.search.budget import Budget, together
from ansor.run.search.tuner import Tuner
from ansor.run.session import Session
from ansor.run.task_choice import check_choices
from ansor.targets.registry import backend_of


def search(session: Session) -> tuple[Tuner, Finish]:
    """Searches until the budget ends; returns the tuner and the outcome.

    If latencies choose the precision, the first part of the budget is for the functions in both
    precisions, and the rest for the functions of the fastest mixture.
    """
    given, (tasks, calls) = session.settings, merged(session.networks)
    check_choices(tasks, given.choices)
    if given.searches:
        request = run_request(given, session.text, tasks, calls)
        session.journal = open_journal(session.records, session.clock, request, given.resume)
        session.settings = given = given.on_new(tasks, session.journal.records)
    elif given.trials is None:
        check_records(session.records, tasks, session.text)
    if (interrupted := session.journal.interrupted) is not None:
        session.note(resumption(interrupted, session.journal.recovered, given))
    remarks = choice_remarks(tasks, given.choices, session.records)
    for remark in remarks + transfer_remarks(tasks, session.earlier):
        session.note(remark)
    machine = session.machine  # measured first, because this takes time
    whole = Budget(given.trials, session.plan.search_s, given.limits)
    if not session.precision.mixtures:
        return _searched(session, whole)
    both, first = _searched(session, whole.share(given.config.forms_share))
    session.networks |= session.precision.mixed(both, machine)
    tuner, last = _searched(session, whole.after(first))
    _add_rivals(session)
    return tuner, together(first, last)


def _add_rivals(session: Session) -> None:
    """Finds the networks in one precision that may be faster than the mixtures."""
    all_rivals = session.precision.rivals(session.networks)
    named = {f"{n}/{i}": each for n, own in all_rivals.items() for i, each in enumerate(own)}
    tuner = session.tuner(*merged(named))
    most = session.plan.affordable
    for name, (mixture, *pure) in all_rivals.items():
        found = near_fastest(mixture, pure, tuner, most)
        session.candidates[name] = [Candidate(network, tuner) for network in found]


def _searched(session: Session, budget: Budget) -> tuple[Tuner, Finish]:
    """Searches the tasks of the networks without a change of precision."""
    tasks, calls = merged(session.networks)
    for remark in machine_remarks(tasks, backend_of(session.target), session.machine):
        session.note(remark)
    unknown = {task.group for task in tasks if not session.records.count(task.key, session.text)}
    session.device.start(len(unknown) if budget.is_empty else None)
    tuner = session.tuner(tasks, calls)
    return tuner, tuner.run(budget)
