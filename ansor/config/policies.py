"""The policies of other systems (`ansor.policy.published`), with their published parameters.

NNI's tuners are in its example `examples/trials/systems/opevo`, AutoTVM's in TVM 0.6 to 0.19.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RowSearchConfig:
    """Sizes that the policies of other systems share, and the draft as a filter."""

    slow_factor: float = 4.0  # times the best draft; slower programs are left out (ours)
    sample: int = 64  # programs of each sketch in a draw (ours)
    # Draws without an unseen program after which a space counts as used up. Each is twice as large
    # as the one before, up to `largest`: together they pass over every space that is listed.
    draws: int = 24
    largest: int = 4096  # programs of a draw
    path: int = 8  # successive changes of a child until it is new (ours)
    paths: int = 4  # such attempts, after which a random program replaces the child (ours)
    listed: int = 1 << 16  # programs; a space up to this size is drawn as a permutation


@dataclass(frozen=True)
class OpEvoConfig:
    """OpEvo (Gao et al., arXiv 2006.05664; the experiments of its example in NNI)."""

    parents: int = 8  # best programs that children descend from (`parents_size`)
    children: int = 8  # programs of a generation (`offspring_size`)
    walk: float = 0.5  # q: probability of each further step of a q-random walk (`mutate_rate`)


@dataclass(frozen=True)
class BestFirstConfig:
    """G-BFS (Zhang et al., arXiv 1909.10616, section 4.1)."""

    neighbours: int = 5  # ρ: measured neighbours of an expanded program (`num_samples` in NNI)


@dataclass(frozen=True)
class ActorCriticConfig:
    """N-A2C (Zhang et al., arXiv 1909.10616, section 4.2; sizes of its implementation in NNI)."""

    steps: int = 3  # of a walk (`n_steps`)
    collected: int = 6  # new programs before they are measured (`n_states`)
    hidden: int = 128  # units of the hidden layer (`hidden_size`)
    learning_rate: float = 1e-3  # of Adam (`lr`)
    random_rate: float = 0.1  # ε: share of actions drawn uniformly
    value_weight: float = 1.0  # of the squared error of the value
    attempts: int = 16  # groups of walks, before random programs (ours)


@dataclass(frozen=True)
class AdamConfig:
    """Adam (Kingma and Ba, arXiv 1412.6980, algorithm 1)."""

    first_decay: float = 0.9  # β₁
    second_decay: float = 0.999  # β₂
    epsilon: float = 1e-8


@dataclass(frozen=True)
class GeneticConfig:
    """AutoTVM's genetic algorithm (`GATuner`)."""

    population: int = 100  # programs of a generation (`pop_size`)
    elites: int = 3  # best programs that stay parents (`elite_num`)
    mutation_rate: float = 0.1  # of each gene (`mutation_prob`)


@dataclass(frozen=True)
class AnnealingConfig:
    """AutoTVM's search (`XGBTuner`, `SimulatedAnnealingOptimizer`)."""

    plan: int = 64  # programs measured between two trainings (`plan_size`)
    chains: int = 128  # parallel walks (`parallel_size`)
    steps: int = 500  # of each chain, at most (`n_iter`)
    first_temperature: float = 1.0  # in units of predicted scores (`temp`)
    last_temperature: float = 0.0
    early_stop: int = 50  # steps without a better plan, after which the chains end
    random_rate: float = 0.05  # ε: share of a plan drawn uniformly (`ModelBasedTuner`)
    # Kept programs, in plans: some are equal to others or refused by the limits (ours).
    remembered: int = 4


@dataclass(frozen=True)
class RankTreesConfig:
    """Trees with a rank loss (`XGBoostCostModel`, loss "rank")."""

    max_depth: int = 3
    learning_rate: float = 0.3  # `eta`
    gamma: float = 1e-4  # least gain of a split
    min_child_weight: float = 1.0
    reg_lambda: float = 1.0  # `lambda`
    rounds: int = 8000  # of boosting, at most
    stopping_rounds: int = 20  # without a better recall of the fastest `plan` programs
    pairs: int = 1  # for each program and round: `num_pairsample` of XGBoost before 2.0


ROW_SEARCH = RowSearchConfig()
ADAM = AdamConfig()
