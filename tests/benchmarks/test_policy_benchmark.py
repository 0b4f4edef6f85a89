"""The benchmark of search policies: summaries by hand, its files, and a whole small run."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from definitions import HARDWARE

from ansor.config import QUICK
from ansor.errors import ArgumentError
from ansor.executor import in_turns
from ansor.measure.fake import FakeDevice
from ansor.measure.result import ErrorKind
from ansor.program.program import Program
from benchmarks import policies, surrogate
from benchmarks.policies import curve, jobs_of, overall_table, table
from benchmarks.policy_plot import panel, plot
from benchmarks.policy_search import Job, Search, Step, searched, steps_of
from benchmarks.policy_state import State, StateError
from benchmarks.policy_summary import BEST_OF_OTHERS, Overall, geometric_mean, overall, rows_of
from benchmarks.replay import Trial

OP = "matmul:rows=32;columns=32;depth=16"


def search(op: str, policy: str, seed: int, *best_us: float) -> Search:
    """A search whose trials have these latencies, infinite where they failed; a second each."""
    steps = [
        Step(trial, float(trial), us, f"{policy}{seed}.{trial}")
        for trial, us in enumerate(best_us, 1)
        if us < min([math.inf, *best_us[: trial - 1]])
    ]
    batches = tuple((trial, float(trial)) for trial in range(1, len(best_us) + 1))
    return Search(Job(op, policy, seed), batches, tuple(steps))


def test_steps_are_the_gains() -> None:
    latencies = (None, 3e-6, 4e-6, 2e-6)
    trials = [Trial(Program(), t, 10.0 + i) for i, t in enumerate(latencies, 1)]
    assert steps_of(trials, 10.0, keeps_programs=False) == (
        Step(2, 2.0, 3.0),
        Step(4, 4.0, 2.0),
    )


def test_a_search_knows_its_best_at_any_time() -> None:
    found = search("A", "p", 0, math.inf, 5, 7, 4)
    assert [found.best_us(n) for n in (1, 2, 3, 4, 9)] == [math.inf, 5, 5, 4, 4]
    assert [found.trials_to(us) for us in (6, 4.5, 1)] == [2, 4, math.inf]
    assert (found.trials, found.seconds(3), found.seconds(9)) == (4, 3.0, 4.0)


def test_rows_are_medians_and_quartiles_by_hand() -> None:
    ours = [search("A", "ours", s, 30, 20 + 2 * s) for s in range(5)]  # 20, 22, 24, 26, 28
    rival = [search("A", "rival", s, 48, 36) for s in range(5)]
    rows = rows_of([*ours, *rival], [1, 2], {})
    assert [(r.policy, r.trials) for r in rows] == [
        ("ours", 1), ("rival", 1), ("ours", 2), ("rival", 2)
    ]  # fmt: skip
    first, _, last, slow = rows
    assert (first.median_us, first.ratio, first.spread) == (30, 1, 0)
    assert (last.lower_us, last.median_us, last.upper_us) == (22, 24, 26)
    assert last.spread == pytest.approx(4 / 24)
    assert (last.seconds, slow.ratio) == (2.0, 1.5)
    assert last.trials_to_near is None  # only 20 is within 5 % of 20
    assert rows_of([ours[0]], [2], {})[0].trials_to_near == 2


def test_times_taken_again_replace_those_of_a_search() -> None:
    ours, rival = search("A", "ours", 0, 10), search("A", "rival", 0, 8, 7)
    rows = rows_of([ours, rival], [1, 2], {"A": {"ours0.1": 12.0, "rival0.1": 18.0}})
    assert [row.median_us for row in rows] == [12, 18, 12, 7]
    assert rows[1].ratio == 1.5


def test_searches_without_a_success_have_no_ratio() -> None:
    ours, broken = search("A", "ours", 0, 10), search("A", "broken", 0, math.inf)
    _, row = rows_of([ours, broken], [1], {})
    assert (row.median_us, row.ratio, row.spread) == (None, None, None)
    assert overall([row], [broken])[0].ratio is None
    assert "-" in table([row])


def test_overall_is_a_geometric_mean_and_knows_the_best_of_the_others() -> None:
    searches = [
        search(op, policy, 0, us)
        for op, times in {"A": (10, 20, 40), "B": (10, 80, 5)}.items()
        for policy, us in zip(("ours", "x", "y"), times, strict=True)
    ]
    found = overall(rows_of(searches, [1], {}), searches)
    assert {row.policy: row.ratio for row in found} == pytest.approx(
        {"ours": 1.0, "x": 4.0, "y": math.sqrt(2), BEST_OF_OTHERS: 1.0}
    )
    ours, x, y, _ = found
    assert (ours.reached, ours.trials_to_near) == (0.5, None)  # not in the median
    assert (x.reached, x.trials_to_near, y.reached) == (0.0, None, 0.5)
    assert BEST_OF_OTHERS in overall_table(found)
    assert overall(rows_of(searches[:1], [1], {}), searches[:1]) == [
        Overall("ours", 1, 1.0, 0.0, 1.0, 1)
    ]


def test_geometric_means() -> None:
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)
    assert geometric_mean([2.0, None]) is None
    assert geometric_mean([]) is None


def test_a_state_is_continued(tmp_path: Path) -> None:
    file, setting = tmp_path / "deep" / "state.jsonl", {"device": "local", "trials": 4}
    state = State(file, setting)
    done = search("A", "ours", 0, 3, 2)
    state.add(done)
    state.add_times("A", {"ours0.2": 2.5})
    again = State(file, setting)
    assert again.searches == {done.job: done}
    assert again.retimed_us == {"A": {"ours0.2": 2.5}}
    with pytest.raises(StateError, match="give another --state"):
        State(file, {"device": "surrogate", "trials": 4})
    assert State(None, setting).searches == {}


def test_all_trials_are_spent_even_without_gains() -> None:
    device = FakeDevice(lambda task, program: 1e-3)
    clock = itertools.count()
    found = searched(
        Job(OP, "evolutionary", 1), device, lambda: float(next(clock)), 136, 1, True, QUICK
    )
    assert found.trials == device.count == 136  # after 17 rounds
    assert not device.closed
    assert all(step.program for step in found.steps)
    assert len(found.steps) == 1  # every program takes as long


def test_a_small_run_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = FakeDevice(
        lambda task, program: 1e-3 + 1e-5 * sum(map(sum, program.values.values())),
        lambda task, program: None if program.steps else ErrorKind.RUN,
    )
    monkeypatch.setattr(
        policies,
        "on_surrogate",
        lambda job, folder, trials, threads: searched(
            job, device, lambda: float(device.count), trials, threads, keeps_programs=False
        ),
    )
    monkeypatch.setattr(policies, "_quality", lambda op, folder: {"op": op})
    state, file, drawing = (tmp_path / name for name in ("s.jsonl", "p.json", "p.svg"))
    options = ["--ops", OP, "--trials", "8,16", "--seeds", "2", "--policies", "evolutionary,random"]
    options += ["--threads", "1", "--processes", "1", "--state", str(state)]
    written = ["--json", str(file), "--plot", str(drawing)]
    first = CliRunner().invoke(policies.main, [*options, "--minutes", "0"])
    assert "0 of 4 searches are done" in first.output
    done = CliRunner().invoke(policies.main, [*options, *written])
    assert done.exception is None, done.output
    assert "4 of 4 searches are done" in done.output
    assert device.count == 4 * 16
    document = json.loads(file.read_text())
    assert set(document) == {"environment", "results", "overall", "curves"}
    assert document["environment"]["device"] == "surrogate"
    assert [row["trials"] for row in document["results"]] == [8, 8, 16, 16]
    assert [c["trials"] for c in document["curves"]] == 4 * [16]
    assert ElementTree.fromstring(drawing.read_text()).tag.endswith("svg")
    again = CliRunner().invoke(policies.main, [*options, *written])
    assert again.exception is None
    assert device.count == 4 * 16
    assert json.loads(file.read_text())["results"] == document["results"]


def test_an_enumeration_has_one_search() -> None:
    jobs = jobs_of(["a", "b"], ["opevo", "grid"], 2)
    assert jobs[:3] == [Job("a", "opevo", 0), Job("a", "grid", 0), Job("a", "opevo", 1)]
    assert [job.op for job in jobs] == ["a"] * 3 + ["b"] * 3


def test_unknown_policies_are_refused() -> None:
    found = CliRunner().invoke(policies.main, ["--ops", OP, "--policies", "magic"])
    assert isinstance(found.exception, ArgumentError)
    assert "policy='magic'" in str(found.exception)


def test_panels_have_medians_over_the_best() -> None:
    curves = [curve(search("A", "ours", s, 20 + 10 * s, 10)) for s in range(3)]
    (line,) = panel("A", "trials", curves).lines
    assert line.quartiles[:, 0].tolist() == [2.5, 3.0, 3.5]
    assert line.quartiles[:, -1].tolist() == [1, 1, 1]
    (line,) = panel("A", "seconds", curves).lines
    assert line.quartiles[1, -1] == 1
    texts = [node.text for node in ElementTree.fromstring(plot({"curves": curves})).iter()]
    assert "ours" in texts
    assert "A: latency over the best, by seconds" in texts


class Pretend(FakeDevice):
    """What `benchmarks.surrogate` opens in place of this machine."""

    share = staticmethod(in_turns)

    def __init__(self, *_: object) -> None:
        super().__init__(
            lambda task, program: 1e-3 + 1e-5 * sum(map(sum, program.values.values())),
            lambda task, program: None if program.steps else ErrorKind.RUN,
        )


def test_a_surrogate_is_fitted_and_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (surrogate, policies):
        monkeypatch.setattr(module, "detect", lambda *_: HARDWARE)
    monkeypatch.setattr(surrogate, "LocalDevice", Pretend)
    options = ["--ops", OP, "--threads", "1"]
    store = ["--programs", "80", "--database", str(tmp_path / "r.sqlite"), "--out", str(tmp_path)]
    fit = CliRunner().invoke(surrogate.main, [*options, *store])
    assert fit.exception is None, fit.output
    assert f"{OP}: 80 of 80 programs" in fit.output
    file = tmp_path / "p.json"
    names = ["--policies", "random,opevo", "--processes", "1", "--surrogates", str(tmp_path)]
    search_options = ["--trials", "8", "--seeds", "1", "--json", str(file)]
    done = CliRunner().invoke(policies.main, [*options, *names, *search_options])
    assert done.exception is None, done.output
    document = json.loads(file.read_text())
    (quality,) = document["environment"]["surrogates"]
    assert (quality["op"], quality["programs"]) == (OP, 80)
    assert [row["policy"] for row in document["results"]] == ["random", "opevo"]
    assert all(row["median_us"] > 1000 and row["seconds"] > 0 for row in document["results"])
