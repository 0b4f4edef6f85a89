"""`SearchPolicy`: draft-ranked sampling, evolution and a final descent for one task.

Deviation: the paper evolves one population of all sketches from measured and random programs, until
the trials end. Here each sketch has its own population, and sketches with a slow sample are not
evolved. A first batch contains the best of several sketches and programs of similar tasks. If
batches bring no gain, neighbours of the best program are measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ansor.annotate.sample import sample
from ansor.config import EvolutionConfig
from ansor.evolve.descend import neighbourhood
from ansor.evolve.mutate import Mutator, mutate, mutate_by_any
from ansor.policy import breeding
from ansor.policy.base import Policy
from ansor.policy.candidate import Candidate, distinct
from ansor.policy.generation import Generation
from ansor.program.program import Program
from ansor.program.sketch import Population, Sketch, concatenate, empty


@dataclass(eq=False, repr=False)
class SearchPolicy(Policy):
    """Ansor's search (§5.1) with a draft model: see `Policy` for the other arguments.

    Attributes:
        mutators: of the evolution; a random one makes each child.
    """

    mutators: Sequence[Mutator] = (mutate,)
    _seeds: list[Candidate] = field(default_factory=list, init=False)
    _sampled: list[Generation] = field(default_factory=list, init=False)  # of each sketch, or none
    _promised_s: float | None = field(default=None, init=False)
    _fits: int = field(init=False)
    _stalled: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._fits = self.model.fits

    @property
    def promise_s(self) -> float:
        """Expected seconds of the fastest program of a first random sample. The search continues
        with this sample if the model has not learned since."""
        if self._promised_s is None:
            self._forget_if_stale()
            self._sampled = self._glances()
            self._promised_s = _seconds(self._sampled)
        return self._promised_s

    def _forget_if_stale(self) -> None:
        """Drops a sample that was scored before the model learned."""
        if self._fits != self.model.fits:
            self._sampled, self._fits = [], self.model.fits

    def draft_best(self) -> Candidate | None:
        """The unmeasured program that the model expects to be the fastest, if there is any."""
        ranked = self._ranked(1, self.config.generations, least=1)
        return ranked[0] if ranked else None

    def seed(self, programs: Sequence[Program]) -> int:
        """Takes in programs of similar tasks for the first batch; returns how many were usable.

        Each becomes the legal program of the same structure with the most similar tiles.
        """
        found: list[Candidate] = []
        for program in programs:
            for sketch in self.sketches:
                row = sketch.row_near(program)
                if row is not None:
                    found += self.candidates(Population(sketch, row[None]))
        legal = [c for c in found if np.isfinite(c.score)]
        self._seeds = distinct(legal, self.measured)[: self.config.siblings]
        return len(self._seeds)

    def propose(self, count: int) -> list[Candidate]:
        """Returns up to `count` promising programs that have not been measured."""
        self._forget_if_stale()
        blind = self.model.is_blind_to(self.sketches)
        drawn = self._random(count) if blind else self._promising(count)
        batch = distinct(drawn, self.measured)[:count]
        self.exhausted = not batch
        return batch

    def _promising(self, count: int) -> list[Candidate]:
        """The head of the ranking with some random programs, then the rest of it."""
        ranked = self._descent() if self._stalled >= self.config.patience else []
        if len(ranked) < count:
            least = 1 if self.trials else self._heads(count)
            others = self._ranked(count, self._generations(count), least)
            ranked = distinct([*ranked, *others], self.measured)
        batch = ranked[: self._greedy(count)] if self.trials else self._first_of_each(ranked, count)
        random = self._random(count - len(batch))
        return [*batch, *random, *ranked]

    def _greedy(self, count: int) -> int:
        """Programs of a batch that are not random (ε-greedy); exact on average for any size."""
        return count - int(count * self.config.eps_greedy + self.rng.random())

    def learn(self, candidates: Sequence[Candidate], latency_s: Sequence[float | None]) -> None:
        """See `Policy`; counts the batches without a gain."""
        self._sampled = []
        before = None if self.best is None else self.best.latency_s
        super().learn(candidates, latency_s)
        now = None if self.best is None else self.best.latency_s
        gain = before is None or now is None or now < before * (1 - self.config.min_gain)
        self._stalled = 0 if gain else self._stalled + 1

    def restore(self, programs: Sequence[Program], latency_s: Sequence[float | None]) -> int:
        """See `Policy`."""
        count = super().restore(programs, latency_s)
        self._stalled = 0
        return count

    def _ranked(self, count: int, generations: int, least: int) -> list[Candidate]:
        """Unmeasured candidates of all sketches that may be among the best `count`, best first.

        Args:
            count: size of the batch.
            generations: largest number of generations of the evolution.
            least: number of sketches that must contribute a candidate.
        """
        found: list[Candidate] = []
        fittest = sorted(self._fittest(generations), key=lambda g: -g.best)
        for number, generation in enumerate(fittest):
            is_full = number >= least and len(found) >= count
            if is_full and generation.best < found[count - 1].score:
                break
            fresh = self._fresh(generation, 2 * self.config.batch)
            found = sorted([*found, *fresh], key=lambda c: -c.score)
        return found

    def _fresh(self, generation: Generation, count: int) -> list[Candidate]:
        """The best unmeasured candidates of a generation: of its head, where that has enough."""
        fresh: list[Candidate] = []
        for population in (
            generation.head(2 * count + len(self.measured)).population,
            generation.population,
        ):
            legal = [c for c in self.candidates(population) if np.isfinite(c.score)]
            fresh = distinct(sorted(legal, key=lambda c: -c.score), self.measured)[:count]
            if len(fresh) == count or len(population) == len(generation.population):
                break
        return fresh

    def _generations(self, count: int) -> int:
        """Number of generations for a batch of `count` programs; few for a small batch, whose time
        is short."""
        most, share = self.config.generations, count / self.config.batch
        return min(most, max(self.config.least_generations, round(share * most)))

    def _fittest(self, generations: int) -> list[Generation]:
        """An evolved population of each sketch, or the whole space if it is small.

        A sketch whose random sample is far slower than the best is not evolved. A sketch that is
        slower after a few generations is evolved no further.
        """
        first = min(generations, self.config.first_generations)
        return self._bred(self._first(first), generations - first, self.config.bred_margin)

    def _first(self, generations: int) -> list[Generation]:
        """Populations of all sketches after the first generations."""
        margin, sampled = self.config.sketch_margin, self._samples()
        near = self._worth_breeding(sampled, margin)
        jobs = {i: (sampled[i], self._elite(self.sketches[i])) for i in near}
        started = self._spread(breeding.first_generation, self.config, jobs)
        return self._bred(_updated(sampled, started), generations, margin)

    def _bred(self, found: list[Generation], generations: int, margin: float) -> list[Generation]:
        """Populations after more generations of those near the best."""
        if generations == 0:
            return found
        config = replace(self.config, generations=generations)
        near = self._worth_breeding(found, margin)
        jobs = {i: (found[i], self.mutators) for i in near if not found[i].is_settled}
        return _updated(found, self._spread(breeding.evolved, config, jobs))

    def _worth_breeding(self, found: Sequence[Generation], margin: float) -> list[int]:
        """Numbers of the sketches near the best, without small ones."""
        least = max(generation.best for generation in found) - math.log(margin)
        numbers = [i for i, generation in enumerate(found) if generation.best >= least]
        return [i for i in numbers if not breeding.is_small(self.sketches[i], self.config)]

    def _spread(
        self,
        function: Callable[..., Generation],
        config: EvolutionConfig,
        jobs: Mapping[int, tuple[Any, ...]],
    ) -> dict[int, Generation]:
        """Results of a function of `breeding`, by the numbers of the sketches. Each call has its
        own random generator, so that the order of calls does not matter."""
        scorer, streams = self.model.scorer, self.rng.spawn(len(jobs))
        rows = zip(streams, jobs.values(), strict=True)
        made = self.executor(
            function, [(scorer, config, rng, *arguments) for rng, arguments in rows]
        )
        return {
            i: generation.of_sketch(self.sketches[i])
            for i, generation in zip(jobs, made, strict=True)
        }

    def _glances(self) -> list[Generation]:
        jobs = {i: (sketch,) for i, sketch in enumerate(self.sketches)}
        return list(self._spread(breeding.glance, self.config, jobs).values())

    def _samples(self) -> list[Generation]:
        """A random sample of each sketch. It is the sample of the promise if the model has not
        learned since. Its best score includes measured programs."""
        return [
            replace(
                generation,
                best=max([generation.best, *self._measured_scores(generation.population.sketch)]),
            )
            for generation in self._sampled or self._glances()
        ]

    def _measured_scores(self, sketch: Sketch) -> list[float]:
        return [-math.log(c.latency_s) for c in self._tried_of(sketch) if c.latency_s]

    def _tried_of(self, sketch: Sketch) -> list[Candidate]:
        """The programs of a sketch that have been measured, fastest first."""
        tried = [c for c in self.successes if c.sketch is sketch]
        return sorted(tried, key=lambda c: c.latency_s or np.inf)

    def _elite(self, sketch: Sketch) -> Population:
        """The best measured programs of a sketch and its seeds, and mutations of them, if any."""
        good = self._tried_of(sketch)[: self.config.elite]
        good += [c for c in self._seeds if c.sketch is sketch][: self.config.elite - len(good)]
        if not good:
            return empty(sketch)
        count = int(self.config.population * self.config.measured_ratio)
        rows = np.stack([c.row for c in good])
        picked = Population(sketch, rows[self.rng.integers(0, len(rows), count)])
        return concatenate([Population(sketch, rows), self._mutated(picked)])

    def _mutated(self, parents: Population) -> Population:
        return mutate_by_any(parents, self.rng, self.config, self.mutators)

    def _descent(self) -> list[Candidate]:
        """Neighbours of the best program, best score first."""
        if self.best is None:
            return []
        near = self.candidates(neighbourhood(self.best.sketch, self.best.row))
        legal = [c for c in near if np.isfinite(c.score)]
        return distinct(sorted(legal, key=lambda c: -c.score), self.measured)

    def _random(self, count: int) -> list[Candidate]:
        """Legal, unmeasured random programs, each of a random sketch."""
        found: list[Candidate] = []
        for index in self.rng.integers(0, len(self.sketches), count):
            drawn = self.candidates(sample(self.sketches[index], 64, self.rng))
            found += distinct([c for c in drawn if np.isfinite(c.score)], self.measured)[:1]
        return found

    def _first_of_each(self, ranked: list[Candidate], count: int) -> list[Candidate]:
        """The head of the ranking, with the best of every sketch and the seeds among it."""
        heads = {c.sketch.name: c for c in reversed(ranked)}
        best = sorted(heads.values(), key=lambda c: -c.score)[: self._heads(count)]
        return distinct([*best, *self._seeds[: count // 4], *ranked], self.measured)[:count]

    def _heads(self, count: int) -> int:
        """Number of sketches that have their best program in a first batch."""
        return max(self.config.least_heads, count // 4)


def _seconds(found: Iterable[Generation]) -> float:
    """Expected seconds of the fastest program of all sketches; infinite without any."""
    return math.exp(-max((generation.best for generation in found), default=-math.inf))


def _updated(found: Sequence[Generation], made: Mapping[int, Generation]) -> list[Generation]:
    """The generations of all sketches, some of them replaced by new ones."""
    return [made.get(i, generation) for i, generation in enumerate(found)]
