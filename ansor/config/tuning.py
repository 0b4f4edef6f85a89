"""The search, the cost model, the scheduler, and all settings of one run."""

from __future__ import annotations

from dataclasses import dataclass, field

from ansor.config.measuring import MeasureConfig
from ansor.config.search_space import SketchConfig


@dataclass(frozen=True)
class EvolutionConfig:
    """Evolutionary search over one task (`ansor.evolve`)."""

    initial: int = 1024  # programs sampled of a sketch that is bred from
    population: int = 512  # programs kept per generation
    promise: int = 512  # of these, programs of every sketch, which say what it may come to
    sketch_margin: float = 1.2  # sketches whose sample takes so many times the best's end there
    first_generations: int = 3  # after which those end that take
    bred_margin: float = 1.05  # so many times the best's
    generations: int = 12  # at most
    least_generations: int = 3  # at most, for a small batch, where time is short
    settled: int = 2  # generations without a gain after which the evolution ends
    settled_gain: float = 0.002  # of the best score, a logarithm
    crossover_rate: float = 0.2  # share of children made by node-based crossover (§5.1)
    mutations_per_child: float = 1.5  # mean number of mutated decisions
    neighbour_rate: float = 0.8  # a mutation moves to a neighbour, otherwise anywhere
    eps_greedy: float = 0.05  # share of a batch drawn at random (TVM's default)
    batch: int = 16  # programs measured per round
    least_heads: int = 2  # sketches in a first batch: the draft may be quite wrong about one
    measured_ratio: float = 0.2  # share of the start population taken from the best measured
    elite: int = 8  # best measured programs that enter every start population
    siblings: int = 4  # best programs of tasks of the same structure that a search begins with
    patience: int = 2  # rounds without gain before neighbours of the best are tried one by one
    min_gain: float = 0.005  # relative improvement of the best that counts as a gain


@dataclass(frozen=True)
class CostModelConfig:
    """The GBDT on top of the draft (`ansor.cost_model`)."""

    use_draft: bool = True  # False: no estimate before measurements; shows what the draft brings
    use_gbdt: bool = True  # False: nothing is learned; shows what the GBDT brings
    # Boosting rounds; the residual is small, few are enough: twice as many smaller steps rank what
    # a search measures next no better (57 % of pairs right for 60 %) and take twice the time.
    rounds: int = 30
    max_depth: int = 6
    max_bin: int = 64  # histogram bins; features are logarithms, few are enough
    learning_rate: float = 0.2
    min_child_weight: float = 2.0  # of a leaf: two programs as fast as the best of their task
    reg_lambda: float = 1.0
    retrain_growth: float = (
        0.2  # retrain when the data grew by this share (TVM's adaptive training)
    )
    # Programs that the draft rightly makes so many times slower than the best are all alike: how
    # far off it is there says nothing of fast ones, and one such error would outweigh theirs.
    slow_factor: float = 4.0
    min_records: int = 16  # fewer measurements than this: the draft alone
    # Of the score, a logarithm, for an instruction of the code: LLVM takes 0.3 s for a thousand and
    # 4 s for seven thousand, which have to be 6 % faster (Zen 1).
    code_price: float = 1e-5
    max_records: int = 6000  # newest records of each task used for training


@dataclass(frozen=True)
class SchedulerConfig:
    """Dividing the budget among tasks (`ansor.task_scheduler`, Ansor §6)."""

    alpha: float = 0.2  # weight of the measured slope (TVM's shipped default)
    beta: float = 2.0  # trust in similar tasks (TVM's shipped default)
    backward_window: int = 3  # rounds over which the slope is taken
    eps_greedy: float = 0.05
    warmup_rounds: int = 1
    warmup_share: float = (
        0.6  # of the time, for the first round of every task; smaller batches else
    )
    least_batch: int = 4  # programs of one, however short the time
    trial_s: float = 0.15  # seconds of a trial, as long as none has been seen
    patience: int = 12  # rounds without gain after which a task is left alone
    min_gain: float = 0.003  # share of its latency that counts as one
    slope_step: float = 0.01  # share of a latency over which an objective's slope is taken
    variant_margin: float = 1.25  # a variant slower than the best of its function by so much ends
    promise_margin: float = 1.5  # one that promises to be so much slower never begins
    begin_margin: float = 1.1  # nor one that promises to be so much slower than another one is
    equal_margin: float = 1.05  # but those do that promise as much as the most promising


@dataclass(frozen=True)
class TuneConfig:
    """All settings of one run of `auto_schedule`."""

    sketch: SketchConfig = field(default_factory=SketchConfig)
    evolution: EvolutionConfig = field(default_factory=EvolutionConfig)
    cost_model: CostModelConfig = field(default_factory=CostModelConfig)
    measure: MeasureConfig = field(default_factory=MeasureConfig)
    scheduler: SchedulerConfig = field(default_factory=SchedulerConfig)
    # Of the budget, for both forms of each function where the precision is chosen; the rest is for
    # the functions of the mixture.
    forms_share: float = 0.75
    default_trials: int = 64  # of an operator without a budget: those of the operators' benchmark
    default_minutes: float = 5.0  # of the command, where neither minutes nor trials are given
    finish_base_s: float = 14.0  # kept back from `minutes`: compiling the network
    finish_per_task_s: float = 0.2  # kept back from `minutes`: checking a winner
    finish_per_leader_s: float = 0.3  # kept back from `minutes`: building and timing a leader
    finish_share: float = 0.1  # of `minutes`, for leaders beyond the least
    least_leaders: int = 2  # of a task, however short the time
    least_search_s: float = 1.0  # searched even where the rest took all the time


FULL = TuneConfig()
QUICK = TuneConfig(evolution=EvolutionConfig(initial=512, population=128, generations=2, batch=8))
