"""The steps of a search that treat one sketch at a time.

The functions depend on their arguments alone. Arguments and results can be sent to other processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ansor.annotate.sample import everything, sample
from ansor.config import EvolutionConfig
from ansor.cost_model.scorer import Scorer
from ansor.evolve.evolution import evolve
from ansor.evolve.mutate import Mutator, mutate
from ansor.policy.generation import Generation
from ansor.program.sketch import Population, Sketch, concatenate


def is_small(sketch: Sketch, config: EvolutionConfig) -> bool:
    """Whether a sketch is not evolved, because all of its programs are scored."""
    return sketch.space_size <= config.initial


def glance(
    scorer: Scorer, config: EvolutionConfig, rng: np.random.Generator, sketch: Sketch
) -> Generation:
    """A few random programs of a sketch, to compare sketches; all programs of a small space."""
    few = min(config.promise, config.initial)
    return _scored(scorer, _drawn(sketch, config.initial if is_small(sketch, config) else few, rng))


def first_generation(
    scorer: Scorer,
    config: EvolutionConfig,
    rng: np.random.Generator,
    sampled: Generation,
    elite: Population,
) -> Generation:
    """A first generation: the best programs of a larger sample, and the whole elite.

    Args:
        sampled: the first part of the sample.
        elite: measured or transferred good programs, and mutations of them; may be empty.
    """
    sketch = sampled.population.sketch
    more = config.initial - len(sampled.population)
    if not (more or len(elite)):
        return sampled.head(config.population)
    drawn = [_drawn(sketch, more, rng)] if more else []
    fresh, known = _scored(scorer, concatenate([*drawn, elite])).split(more)
    larger = sampled.joined(fresh)
    return replace(larger.head(config.population).joined(known), best=larger.best)


def evolved(
    scorer: Scorer,
    config: EvolutionConfig,
    rng: np.random.Generator,
    generation: Generation,
    mutators: Sequence[Mutator] = (mutate,),
) -> Generation:
    """The programs after `config.generations` more generations."""
    start, known = generation.population, generation.scores
    population, scores = evolve(start, scorer.score, rng, config, known, mutators)
    best = float(scores.max())
    settled = (
        generation.scores is not None
        and best <= float(generation.scores.max()) + config.settled_gain
    )
    return Generation(population, max(generation.best, best), scores, settled)


def _drawn(sketch: Sketch, count: int, rng: np.random.Generator) -> Population:
    """A random sample of a sketch; all programs of a small space."""
    return everything(sketch) if sketch.space_size <= count else sample(sketch, count, rng)


def _scored(scorer: Scorer, population: Population) -> Generation:
    return Generation.of(population, scorer.score(population))
