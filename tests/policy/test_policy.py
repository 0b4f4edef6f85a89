"""One task's search: its proposals, its learning, and its end."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from definitions import HARDWARE, dag, sketches, square_matmul

from ansor.annotate.sample import everything, sample
from ansor.config import CostModelConfig, EvolutionConfig, SketchConfig
from ansor.cost_model.model import CostModel
from ansor.evolve.descend import neighbourhood
from ansor.evolve.evolution import evolve
from ansor.executor import in_turns
from ansor.policy.candidate import Candidate, best_of, distinct
from ansor.policy.generation import Generation
from ansor.policy.policy import SearchPolicy
from ansor.program.program import Program
from ansor.program.sketch import Population, Sketch
from ansor.targets.cpu.search import CPU_SEARCH

CONFIG = EvolutionConfig(initial=256, population=64, promise=128, generations=2, batch=8)


def policy(
    name: str = "matmul_relu",
    config: EvolutionConfig = CONFIG,
    seed: int = 0,
    chosen: Sequence[Sketch] | None = None,
) -> SearchPolicy:
    model = CostModel(HARDWARE, CPU_SEARCH, CostModelConfig(), SketchConfig())
    spaces = sketches(name) if chosen is None else chosen
    return SearchPolicy(dag(name).key, spaces, model, config, np.random.default_rng(seed))


def signatures(batch: Sequence[Candidate]) -> list[bytes]:
    return [candidate.signature for candidate in batch]


def drafted(batch: Sequence[Candidate]) -> list[float | None]:
    """Latencies as the score predicts them."""
    return [float(np.exp(-candidate.score)) for candidate in batch]


def rounds(search: SearchPolicy, count: int, size: int) -> list[list[Candidate]]:
    """Proposes and learns, `count` times."""
    batches = []
    for _ in range(count):
        batches.append(search.propose(size))
        search.learn(batches[-1], drafted(batches[-1]))
    return batches


# --- candidates -----------------------------------------------------------------------------


def candidate(signature: bytes, latency_s: float | None = None) -> Candidate:
    sketch = sketches("matmul")[0]
    return Candidate(sketch, np.zeros(5, dtype=np.int32), 0.0, signature, latency_s)


def test_distinct_keeps_the_first_of_each() -> None:
    a, b, again, seen = (candidate(s) for s in (b"a", b"b", b"a", b"c"))
    assert distinct([a, b, again, seen], {b"c": None}) == [a, b]


def test_best_of_ignores_failures() -> None:
    slow, fast, failed = candidate(b"a", 2.0), candidate(b"b", 1.0), candidate(b"c")
    assert best_of([failed, slow, fast]) is fast
    assert best_of([]) is None


def test_a_candidate_is_the_program_of_its_row() -> None:
    sketch = sketches("matmul")[0]
    (first,) = policy("matmul", chosen=[sketch]).propose(1)
    assert first.sketch is sketch
    found = sketch.row_of(first.program)
    assert found is not None
    assert found.tolist() == first.row.tolist()


# --- proposing ------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 5, 8, 16])
def test_the_size_of_a_batch(size: int) -> None:
    for batch in rounds(policy(), 4, size):
        assert len(batch) == size
        assert len(set(signatures(batch))) == size


def test_nothing_is_proposed_twice() -> None:
    search = policy()
    batches = rounds(search, 12, 8)
    proposed = [s for batch in batches for s in signatures(batch)]
    assert len(set(proposed)) == len(proposed) == search.trials


def test_only_legal_programs_are_proposed() -> None:
    for batch in rounds(policy("conv2d"), 4, 16):
        assert all(np.isfinite(c.score) for c in batch)


def test_the_first_batch_holds_the_best_of_each_sketch() -> None:
    everyone = replace(CONFIG, sketch_margin=1e9, bred_margin=1e9)  # all are bred
    search = policy("conv2d", everyone)
    batch = search.propose(16)
    assert {c.sketch.name for c in batch} == {s.name for s in search.sketches}
    for sketch in search.sketches:
        alone = policy("conv2d", everyone, chosen=[sketch]).propose(1)[0]
        best = max(c.score for c in batch if c.sketch is sketch)
        assert best > alone.score - 0.3  # two short evolutions


@pytest.mark.parametrize(("count", "sketches_in"), [(2, 2), (4, 2), (16, 3)])
def test_a_small_first_batch_does_not_rely_on_one_sketch(count: int, sketches_in: int) -> None:
    found = {c.sketch.name for c in policy("conv2d").propose(count)}
    assert len(found) >= sketches_in


def generations_of(monkeypatch: pytest.MonkeyPatch, gain: float) -> Counter[str]:
    """The generations of each sketch, if every evolution raises every score by `gain`."""
    seen: Counter[str] = Counter()

    def noted(
        start: Population, _: Any, rng: Any, config: EvolutionConfig, known: Any, mutators: Any
    ) -> Any:
        seen[start.sketch.name] += config.generations
        return start, known + gain

    monkeypatch.setattr("ansor.policy.breeding.evolve", noted)
    return seen


@pytest.mark.parametrize(("count", "most"), [(1, 3), (4, 3), (8, 6), (16, 12), (99, 12)])
def test_a_small_batch_is_not_worth_a_long_evolution(
    count: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = generations_of(monkeypatch, gain=1.0)
    config = replace(CONFIG, batch=16, generations=12, bred_margin=CONFIG.sketch_margin)
    policy("conv2d", config).propose(count)
    assert set(seen.values()) == {most}


@pytest.mark.parametrize(("gain", "generations"), [(0.1, 7), (0.0, 3)])
def test_where_the_first_generations_bring_nothing_the_evolution_ends(
    gain: float, generations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = generations_of(monkeypatch, gain)
    config = EvolutionConfig(generations=7, bred_margin=CONFIG.sketch_margin)
    policy("conv2d", config).propose(config.batch)
    assert set(seen.values()) == {generations}


def backwards(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
    """An `Executor` of copies, as another process gets them, that begins with the last."""
    sent = pickle.loads(pickle.dumps(list(arguments)))
    return pickle.loads(pickle.dumps([function(*own) for own in reversed(sent)]))[::-1]


def test_who_does_what_with_a_sketch_and_when_makes_no_difference() -> None:
    config, found = replace(CONFIG, sketch_margin=1e9, bred_margin=1e9), []
    for share in (in_turns, backwards):
        model = CostModel(HARDWARE, CPU_SEARCH, CostModelConfig(), SketchConfig())
        rng = np.random.default_rng(3)
        search = SearchPolicy("task", sketches("conv2d"), model, config, rng, share)
        promised = search.promise_s
        batches = rounds(search, 3, 8)
        assert all(c.sketch in search.sketches for batch in batches for c in batch)
        found.append((promised, [signatures(batch) for batch in batches]))
    assert found[0] == found[1]


def test_only_sketches_near_the_best_get_a_large_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: Counter[str] = Counter()

    def counted(sketch: Sketch, count: int, rng: Any) -> Population:
        drawn[sketch.name] += count
        return sample(sketch, count, rng)

    monkeypatch.setattr("ansor.policy.breeding.sample", counted)
    config = EvolutionConfig(sketch_margin=1.05)
    search = policy("conv2d", config)
    batch = search.propose(config.batch)
    assert set(drawn.values()) == {config.promise, config.initial}
    assert drawn[max(batch, key=lambda c: c.score).sketch.name] == config.initial


def test_a_space_of_repetitions_is_searched_to_its_end() -> None:
    """Many rows of one signature at the head of a ranking hide none of the other programs."""
    search = policy("row_sum", EvolutionConfig())
    found: set[bytes] = set()
    while batch := search.propose(64):
        search.learn(batch, [1.0] * len(batch))
        found |= {c.signature for c in batch}
    estimates = [search.model.estimate(everything(s)) for s in search.sketches]
    legal = sum(len(np.unique(e.signature[e.legal], axis=0)) for e in estimates)
    assert len(found) == legal


def test_sketches_that_stay_behind_are_bred_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Counter[str] = Counter()
    names = [sketch.name for sketch in policy("conv2d").sketches]

    def noted(
        start: Population, _: Any, rng: Any, config: EvolutionConfig, known: Any, mutators: Any
    ) -> Any:
        seen[start.sketch.name] += config.generations
        return start, np.full(len(start), 30.0 if start.sketch.name == names[0] else 29.9)

    monkeypatch.setattr("ansor.policy.breeding.evolve", noted)
    config = replace(CONFIG, generations=12, first_generations=4, bred_margin=1.05)
    policy("conv2d", replace(config, sketch_margin=1e9, initial=2)).draft_best()
    assert dict(seen) == {name: 12 if name == names[0] else 4 for name in names}


def test_the_first_batch_is_the_drafts_choice() -> None:
    batch = policy("matmul").propose(8)
    random = [c for seed in range(4) for c in policy("matmul", seed=seed)._random(8)]
    assert min(c.score for c in batch) > float(np.median([c.score for c in random]))
    assert batch[0].score == max(c.score for c in batch)


@pytest.mark.parametrize(("rate", "size"), [(0.25, 16), (0.25, 1), (0.5, 3), (1.0, 4)])
def test_the_share_of_random_programs(rate: float, size: int) -> None:
    """Ranked programs come first and score well; random ones mostly score far worse."""
    search = policy("matmul", replace(CONFIG, eps_greedy=rate, patience=99))
    first = rounds(search, 1, 8)[0]
    good = min(c.score for c in first) - 0.5
    later = [c for batch in rounds(search, 96 // size, size) for c in batch]
    random = sum(c.score < good for c in later) / len(later)
    assert 0.5 * rate < random < rate + 0.1


def test_without_epsilon_all_come_from_the_ranking() -> None:
    search = policy("matmul", replace(CONFIG, eps_greedy=0.0, patience=99))
    for batch in rounds(search, 4, 8)[1:]:
        scores = [c.score for c in batch]
        assert scores == sorted(scores, reverse=True)


def test_small_batches_follow_the_ranking_too() -> None:
    """A batch of one is not always random."""
    search = policy("matmul", replace(CONFIG, patience=99))
    first = rounds(search, 1, 8)[0]
    lone = [batch[0].score for batch in rounds(search, 20, 1)]
    assert float(np.median(lone)) > min(c.score for c in first) - 1.0


def test_the_same_seed_gives_the_same_batches() -> None:
    def run(seed: int) -> list[bytes]:
        return [s for batch in rounds(policy(seed=seed), 4, 8) for s in signatures(batch)]

    assert run(0) == run(0)
    assert run(0) != run(1)


def test_the_best_unmeasured_by_the_draft() -> None:
    search = policy("matmul")
    first = search.draft_best()
    assert first is not None
    search.learn([first], [1e-3])
    second = search.draft_best()
    assert second is not None
    assert second.signature != first.signature


# --- learning -------------------------------------------------------------------------------


def test_the_best_is_kept() -> None:
    search = policy()
    batch = search.propose(4)
    search.learn(batch, [3e-3, 1e-3, None, 2e-3])
    assert search.best is not None
    assert search.best.signature == batch[1].signature
    assert search.best.latency_s == 1e-3
    more = search.propose(2)
    search.learn(more, [5e-3, None])
    assert search.best.signature == batch[1].signature
    assert search.trials == 6


def test_what_the_draft_preferred_is_remembered() -> None:
    """The first of the first batch, or the next where that fails; measurements change nothing."""
    search = policy()
    first = search.propose(4)
    search.learn(first, [None, 3e-3, 1e-3, 2e-3])
    assert search.preferred is not None
    expected = max(first[1:], key=lambda candidate: candidate.score)
    assert search.preferred.signature == expected.signature
    assert search.preferred.latency_s is not None
    search.learn(search.propose(4), [1e-4] * 4)
    assert search.preferred.signature == expected.signature


def test_failures_only() -> None:
    search = policy()
    for _ in range(5):
        batch = search.propose(8)
        assert len(batch) == 8
        search.learn(batch, [None] * 8)
    assert search.best is None
    assert search.preferred is None
    assert search.trials == 40
    assert not search.exhausted
    assert search.draft_best() is not None


def test_measurements_move_the_search() -> None:
    """Programs of one sketch are made fast: later batches are mostly of that sketch."""
    search = policy("conv2d", replace(CONFIG, eps_greedy=0.0))
    favourite = search.sketches[1]
    for _ in range(8):
        batch = search.propose(16)
        factors = [0.1 if c.sketch is favourite else 10.0 for c in batch]
        search.learn(batch, [f * np.exp(-c.score) for c, f in zip(batch, factors, strict=True)])
        search.model.fit()
    assert Counter(c.sketch.name for c in batch)[favourite.name] >= 12
    assert search.best is not None
    assert search.best.sketch is favourite


def test_a_stalled_search_tries_the_neighbours_of_its_best() -> None:
    search = policy("matmul", replace(CONFIG, patience=2, eps_greedy=0.0))
    batch = search.propose(8)
    search.learn(batch, [1e-3, *[2e-3] * 7])
    assert search.best is not None
    near = {row.tobytes() for row in neighbourhood(search.best.sketch, search.best.row).choices}
    for _ in range(2):
        batch = search.propose(8)
        search.learn(batch, [2e-3] * 8)
    assert all(
        c.row.tobytes() in near and c.sketch is search.best.sketch for c in search.propose(4)
    )


def test_progress_ends_the_descent() -> None:
    search = policy("matmul", replace(CONFIG, patience=1, eps_greedy=0.0))
    for time_s in (1e-3, 2e-3, 2e-3, 0.5e-3):
        batch = search.propose(4)
        search.learn(batch, [time_s] * 4)
    best = search.best
    assert best is not None
    near = {row.tobytes() for row in neighbourhood(best.sketch, best.row).choices}
    batch = search.propose(16)
    assert not all(c.row.tobytes() in near for c in batch)


# --- restoring ------------------------------------------------------------------------------


def test_what_was_measured_can_be_restored() -> None:
    first = policy()
    batches = rounds(first, 3, 8)
    known = [c for batch in batches for c in batch]
    times = [t if i % 5 else None for i, t in enumerate(drafted(known))]
    second = policy(seed=9)
    assert second.restore([c.program for c in known], times) == len(known)
    assert second.trials == len(known)
    assert second.best is not None
    assert second.best.latency_s == min(t for t in times if t is not None)
    proposed = [s for batch in rounds(second, 4, 8) for s in signatures(batch)]
    assert not set(proposed) & set(signatures(known))


def test_programs_of_another_space_are_left_out() -> None:
    matmul, conv = policy("matmul"), policy("conv2d")
    strangers: list[Program] = [c.program for c in conv.propose(4)]
    strangers.append(Program("untuned", (), {}))
    assert matmul.restore(strangers, [1e-3] * 5) == 0
    assert matmul.best is None
    assert matmul.trials == 0
    assert len(matmul.propose(4)) == 4


def test_a_program_recorded_several_times_counts_once() -> None:
    first = policy()
    (known,) = first.propose(1)
    second = policy()
    assert second.restore([known.program] * 3, [2e-3, 1e-3, None]) == 3
    assert second.trials == 1
    assert second.best is not None
    assert second.best.latency_s == 1e-3


def test_restoring_nothing() -> None:
    search = policy()
    assert search.restore([], []) == 0
    assert len(search.propose(8)) == 8


def legal_signatures(sketch: Sketch, name: str) -> set[bytes]:
    """All distinct programs of a small sketch that may be built."""
    candidates = policy(name, chosen=[sketch]).candidates(everything(sketch))
    return {c.signature for c in candidates if np.isfinite(c.score)}


def test_everything_is_every_row_once() -> None:
    for name in ("total_sum", "max_pool2d"):
        sketch = min(sketches(name), key=lambda s: s.space_size)
        rows = everything(sketch).choices
        assert rows.dtype == np.int32
        assert len(rows) == len(np.unique(rows, axis=0)) == sketch.space_size
        assert rows.max(axis=0).tolist() == [d.size - 1 for d in sketch.decisions]
    nothing_to_decide = Sketch(sketch.dag, sketch.steps, ())
    assert everything(nothing_to_decide).choices.shape == (1, 0)


@pytest.mark.parametrize("name", ["matmul_relu", "conv2d", "row_sum"])
def test_promises_are_nearly_what_the_search_finds(name: str) -> None:
    search = policy(name, EvolutionConfig())
    promise_s, found = search.promise_s, search.draft_best()
    assert found is not None
    assert 0.999 <= promise_s * np.exp(found.score) < 1.5


def test_a_search_goes_on_from_its_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sample of the promise is used again, and later seeds are included."""
    config = EvolutionConfig(initial=64, population=64, promise=64)
    strange = policy("matmul_relu", config).propose(1)[0]
    search = policy("matmul_relu", config)
    assert search.promise_s > 0
    bred: list[Population] = []

    def counted(start: Population, *others: Any) -> Any:
        bred.append(start)
        return evolve(start, *others)

    def none_drawn(sketch: Sketch, *_: object) -> Population:
        raise AssertionError(f"drawn again: {sketch.name}")

    monkeypatch.setattr("ansor.policy.breeding.evolve", counted)
    monkeypatch.setattr("ansor.policy.breeding.sample", none_drawn)
    search.seed([strange.program])
    search.draft_best()
    rows = [start.choices for start in bred if start.sketch.name == strange.sketch.name]
    assert rows
    assert all((row == strange.row).all(axis=1).any() for row in rows)


def test_a_first_batch_ranks_no_sketch_that_cannot_be_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranked: list[float] = []
    fresh = SearchPolicy._fresh

    def counted(self: SearchPolicy, own: Generation, count: int) -> list[Candidate]:
        ranked.append(own.best)
        return fresh(self, own, count)

    monkeypatch.setattr(SearchPolicy, "_fresh", counted)
    search = policy("conv2d", replace(CONFIG, sketch_margin=1.0))
    batch = search.propose(8)
    assert CONFIG.least_heads <= len(ranked) < len(search.sketches)
    assert ranked == sorted(ranked, reverse=True)
    assert max(c.score for c in batch) == pytest.approx(ranked[0], abs=1e-5)
    assert len({c.sketch.name for c in batch}) >= 2


def test_a_promise_is_made_once() -> None:
    search = policy("matmul_relu", EvolutionConfig(initial=64, population=32, promise=32))
    assert len({search.promise_s for _ in range(4)}) == 1


@pytest.mark.parametrize(("margin", "share"), [(1.0, 1), (1e9, "all")])
def test_sketches_far_behind_are_not_bred_from(
    margin: float, share: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    bred: list[Sketch] = []

    def counted(start: Population, *others: object) -> object:
        bred.append(start.sketch)
        return evolve(start, *others)  # type: ignore[arg-type]

    monkeypatch.setattr("ansor.policy.breeding.evolve", counted)
    search = policy("conv2d", replace(CONFIG, sketch_margin=margin))
    large = [s for s in search.sketches if s.space_size > CONFIG.initial]
    batch = search.propose(4 * len(search.sketches))
    assert len(bred) == (len(large) if share == "all" else share)
    assert {c.sketch.name for c in batch} == {s.name for s in search.sketches}, "each is tried"


# --- the end --------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "number"), [("total_sum", 2), ("row_sum", 2), ("max_pool2d", 0)])
def test_a_small_space_is_measured_whole(name: str, number: int) -> None:
    """Every distinct legal program once; then nothing is left, and it says so."""
    sketch = sketches(name)[number]
    assert sketch.space_size <= CONFIG.initial
    legal = legal_signatures(sketch, name)
    search, seen = policy(name, chosen=[sketch]), []
    for _ in range(200):
        batch = search.propose(8)
        if not batch:
            break
        seen += signatures(batch)
        search.learn(batch, drafted(batch))
    assert search.exhausted
    assert search.propose(8) == []
    assert len(seen) == len(set(seen))
    assert set(seen) == legal


def test_a_space_larger_than_a_population_is_not_given_up_early() -> None:
    """Of five hundred programs the ranking keeps few; most are measured in the end."""
    config = replace(CONFIG, initial=64, population=32, batch=4)
    search, seen = policy("global_average_pool2d", config), 0
    while not search.exhausted and seen < 600:
        batch = search.propose(8)
        seen += len(batch)
        search.learn(batch, drafted(batch))
    (sketch,) = sketches("global_average_pool2d")
    assert seen > 0.9 * len(legal_signatures(sketch, "global_average_pool2d"))


# --- seeds ----------------------------------------------------------------------------------


def test_a_sibling_s_program_is_tried_in_the_first_batch() -> None:
    """The counterpart of a program keeps its inner tiles; the outermost takes up the extent."""
    small, large = (policy(chosen=square_sketches(n)) for n in (64, 256))
    (given,) = small.propose(1)
    assert large.seed([given.program]) == 1
    values = [c.program.values for c in large.propose(8)]
    for hole in ("C.i", "C.j", "C.k"):
        inner = given.program.values[hole][1:]
        assert any(row[hole][1:] == inner for row in values)


def test_programs_of_another_structure_are_no_seeds() -> None:
    (other,) = policy("conv2d").propose(1)
    search = policy("matmul_relu")
    assert search.seed([other.program]) == 0
    assert signatures(search.propose(8)) == signatures(policy("matmul_relu").propose(8))


def test_no_more_seeds_are_used_than_the_config_allows() -> None:
    donor = policy(chosen=square_sketches(64))
    programs = [c.program for c in donor.propose(8)]
    none = policy(chosen=square_sketches(256), config=replace(CONFIG, siblings=0))
    assert none.seed(programs) == 0
    two = policy(chosen=square_sketches(256), config=replace(CONFIG, siblings=2))
    assert two.seed(programs) == 2


def square_sketches(size: int) -> list[Sketch]:
    return [square_matmul(size)]
