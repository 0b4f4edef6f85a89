"""The search, the cost model, the scheduler, and all settings of one run."""

from __future__ import annotations

from dataclasses import dataclass, field

from ansor.config.measuring import MeasureConfig
from ansor.config.search_space import SketchConfig


@dataclass(frozen=True)
class EvolutionConfig:
    """Evolutionary search over one task (`ansor.evolve`)."""

    initial: int = 1024  # random programs of a sketch before its first generation
    population: int = 512  # programs kept per generation
    promise: int = 512  # of them, programs of every sketch for a first estimate of its best
    sketch_margin: float = 1.2  # slower sketches are not evolved: ratio of the samples' best times
    first_generations: int = 3  # generations before the second comparison of sketches
    bred_margin: float = 1.05  # ratio of times above which a sketch is then evolved no further
    generations: int = 12  # at most
    least_generations: int = 3  # at most, for the smallest batch; `generations` for a full one
    settled: int = 2  # generations without a gain, after which the evolution ends
    settled_gain: float = 0.002  # least rise of the best score, a logarithm, that counts as a gain
    crossover_rate: float = 0.2  # share of children made by node-based crossover (§5.1)
    mutations_per_child: float = 1.5  # mean number of mutated decisions
    neighbour_rate: float = 0.8  # share of mutations that choose a neighbour; others choose any
    eps_greedy: float = 0.05  # share of a batch drawn at random (TVM's default)
    batch: int = 16  # programs measured per round
    least_heads: int = 2  # sketches in a first batch: the draft may be wrong about one
    measured_ratio: float = 0.2  # share of the start population taken from the best measured
    elite: int = 8  # best measured programs that enter every start population
    siblings: int = 4  # best programs of tasks of the same structure that a search begins with
    patience: int = 2  # rounds without gain, after which neighbours of the best are measured
    min_gain: float = 0.005  # relative improvement of the best that counts as a gain


@dataclass(frozen=True)
class CostModelConfig:
    """The GBDT on top of the draft (`ansor.cost_model`)."""

    use_draft: bool = True  # False: no estimate before measurements; shows what the draft brings
    use_gbdt: bool = True  # False: nothing is learned; shows what the GBDT brings
    # Boosting rounds. Few are enough, because the residual is small. Twice as many rounds with
    # smaller steps take twice the time and rank the next batch no better (57 % of its pairs in
    # the right order, against 60 %).
    rounds: int = 30
    max_depth: int = 6
    max_bin: int = 64  # histogram bins; features are logarithms, few are enough
    learning_rate: float = 0.2
    min_child_weight: float = 2.0  # least weight of a leaf; a task's best program weighs 1
    reg_lambda: float = 1.0
    retrain_growth: float = (
        0.2  # retrain when the data grew by this share (TVM's adaptive training)
    )
    # Programs slower than this times the best, by the draft and by measurement, count as equal.
    # Their errors in the draft say nothing about fast programs, and would outweigh errors of these.
    slow_factor: float = 4.0
    min_records: int = 16  # with fewer measurements, the draft alone ranks
    # Decrease of the score, a logarithm, for each instruction of the code. LLVM compiles 1000 in
    # 0.3 s and 7000 in 4 s; with this price, the latter must run 6 % faster (Zen 1).
    code_price: float = 1e-5
    max_records: int = 6000  # newest records of each task that are used for training


@dataclass(frozen=True)
class SchedulerConfig:
    """Dividing the budget among tasks (`ansor.task_scheduler`, Ansor §6)."""

    alpha: float = 0.2  # weight of the measured slope (TVM's shipped default)
    beta: float = 2.0  # weight of the throughput of similar tasks (TVM's shipped default)
    backward_window: int = 3  # rounds over which the slope is taken
    eps_greedy: float = 0.05  # share of rounds for a random task
    warmup_rounds: int = 1  # of every task, before gradients decide
    warmup_share: float = (
        0.6  # of the time, for the first round of every task; its batches shrink to fit
    )
    least_batch: int = 4  # programs of such a batch, however short the time
    trial_s: float = 0.15  # assumed seconds of a trial before the first one
    patience: int = 12  # rounds without gain, after which a task gets no further round
    min_gain: float = 0.003  # share of a task's latency that counts as a gain
    slope_step: float = 0.01  # share of a latency over which an objective's slope is taken
    variant_margin: float = 1.25  # a variant ends above this ratio to the function's best latency
    # A variant whose estimated latency exceeds one of these limits never begins.
    promise_margin: float = 1.5  # times the best estimate of the function
    begin_margin: float = 1.1  # times the best measured latency of the function
    equal_margin: float = 1.05  # times the best estimate: up to here `begin_margin` does not hold


@dataclass(frozen=True)
class TuneConfig:
    """All settings of one run of `auto_schedule`."""

    sketch: SketchConfig = field(default_factory=SketchConfig)
    evolution: EvolutionConfig = field(default_factory=EvolutionConfig)
    cost_model: CostModelConfig = field(default_factory=CostModelConfig)
    measure: MeasureConfig = field(default_factory=MeasureConfig)
    scheduler: SchedulerConfig = field(default_factory=SchedulerConfig)
    # Share of the budget for both precisions of each function, where the precision is chosen. The
    # rest is for the functions of the network that mixes them.
    forms_share: float = 0.75
    default_trials: int = 64  # for an operator without a budget, as in the operators' benchmark
    default_minutes: float = 5.0  # for a command with neither minutes nor trials
    finish_base_s: float = 14.0  # kept back from `minutes`: compiling the network
    finish_per_task_s: float = 0.2  # kept back from `minutes`: checking a winner
    finish_per_leader_s: float = 0.3  # kept back from `minutes`: building and timing a leader
    finish_share: float = 0.1  # of `minutes`, for more leaders than `least_leaders`
    least_leaders: int = 2  # of a task, however short the time
    least_search_s: float = 1.0  # shortest search, even if other steps took all the time


FULL = TuneConfig()
QUICK = TuneConfig(evolution=EvolutionConfig(initial=512, population=128, generations=2, batch=8))
