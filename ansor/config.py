"""Limits, sizes and rates of the search, with unit and source, in frozen dataclasses.

The parameters of the machine are in `ansor.targets`, the constants of the draft in
`ansor.targets.cpu.draft.constants`.

Read `TuneConfig` first: it nests the others. `QUICK` and `FULL` are the presets.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class GpuSketchConfig:
    """The search space of GPUs."""

    tile_structure: str = "SSSRRSRFS"  # Ansor §4.1, the GPU's "SSSRRSRS"; folded axes unrolled
    tensor_structure: str = "SSRRST"  # blocks, warps, two levels of the reduction, a warp's tiles
    tensor_widths: tuple[int, ...] = (2, 4, 8)  # elements of a fetch, half precision
    rounds_ahead: tuple[int, ...] = (0, 1, 2, 3)  # of fetching; the buffers have to fit
    pads: tuple[int, ...] = (0, 1)  # of rows in shared memory, vectors of 16 bytes
    # The same where a warp takes rows of eight words, one for each step of tf32's reduction.
    tf32_pads: tuple[int, ...] = (0, 2)
    max_padding: float = 4.0  # times the operations; tensor cores have eight times the speed
    max_tf32_padding: float = 2.0  # the same in tf32, at half of that speed
    max_warps: int = 16  # of a block
    tensor_unroll_steps: tuple[int, ...] = (0, 16, 64)  # a warp's tiles are unrolled anyway
    max_gathers: int = 32  # turns of fetching that look where they are; more make ptxas spill
    max_warp_tiles: int = 8  # of results along an axis, in the registers of a warp
    fuse_level: int = 3  # spatial tile levels outside what a thread computes
    threads: tuple[int, ...] = (32, 64, 128, 192, 256, 512, 1024)  # of a block, untiled stages
    least_threads: int = 16  # of a block of tiles; half a warp
    vector_widths: tuple[int, ...] = (1, 2, 4)  # elements of a load or store
    max_vector_bytes: int = 16  # the widest load
    max_vthreads: int = 16  # virtual threads; TVM's `max_vthread_extent` is 8
    max_innermost_factor: int = 64  # elements; TVM's `max_innermost_split_factor`
    max_accumulators: int = 192  # registers of a thread that hold results
    spare_registers: int = 24  # of a thread: what the estimate may be short of
    max_unrolled_statements: int = 1024  # of a thread's tile, what the compiler takes seconds for
    max_block_statements: int = 4096  # the same with the virtual threads
    unroll_steps: tuple[int, ...] = (
        0,
        16,
        32,
        64,
        128,
        256,
        512,
        1024,
    )  # Ansor's and TVM's, for CUDA
    least_block_reduction: int = 32  # elements that a block's threads may share; a warp
    block_reduction_fill: float = 0.25  # share of a GPU's threads that outputs alone must fill
    max_rfactor: int = 1024  # parts of a reduction that blocks share


@dataclass(frozen=True)
class SketchConfig:
    """The search space (`ansor.sketch`, `ansor.annotate`)."""

    tile_structure: str = "SSRSRS"  # Ansor §4.1, Table 1, rule 3 (CPU)
    host_structure: str = "SSSFV"  # of an output that computes its producers tile by tile
    fuse_levels: tuple[int, ...] = (1, 2)  # spatial tile levels a consumer may be fused at (§4.1)
    max_innermost_factor: int = 64  # elements; TVM's `max_innermost_split_factor`
    good_rows: tuple[int, int] = (4, 28)  # a register tile's rows: enough for latency, not too many
    max_tail_waste: float = 0.125  # share computed twice where a split does not divide
    spare_tail_waste: float = 0.02  # the same where one that divides would do
    max_vector_bytes: int = 256  # bytes of the vectorised loop: four 512-bit registers
    few_lanes: float = 0.5  # of a vector: filters that fill no more leave it to points of a row
    unroll_steps: tuple[int, ...] = (0, 16, 64)  # statements; TVM's 512 builds ten times longer
    register_rows: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12, 14, 16)  # elements of a tile, per axis
    max_unrolled_statements: int = 64  # register tile, counted in vector statements
    # Elements per core below which threads split a reduction; TVM's 16 also had to fill vectors,
    # which a rule of its own does here.
    rfactor_spatial_per_core: int = 4
    rfactor_max_per_core: int = 16  # parts of a reduction that threads share
    max_branch_repeats: int = 16  # reads per element up to which a condition may replace a buffer
    # Of the bytes of all buffers: where one with padding has less, nothing is gained by having it,
    # and no choice is left (drafts of 29 variants differed by no more than those of seeds do).
    min_padded_share: float = 0.1
    # Of a convolution's steps that meet the padding of a dimension, to leave them out: fewer do not
    # make up for a condition in the loop.
    min_padding_share: float = 0.03
    min_pack_reuse: int = 256  # reads per element that pay for packing an operand
    min_transpose_reuse: int = 8  # the same for one that would be gathered otherwise
    min_pack_bytes: int = 1 << 20  # operands smaller than this stay in the second cache as they are
    min_prefetch_bytes: int = 1 << 18  # of a constant that may be prefetched
    min_prefetch_part: int = 1 << 13  # bytes; for less, hardware looks far enough
    prefetch_distance: int = 1 << 13  # bytes ahead of what is read once; of 1 to 8 KB the best
    min_prefetch_run: int = 1 << 15  # bytes read without a gap, of which the first are late
    max_prefetch_share: float = 0.4  # of the second cache: two parts are there at a time
    # Largest tile that is prefetched, as a share of the cache in which it waits for its use.
    consumer_tile_share: float = 1 / 3  # of L1, for each array of a fused consumer
    operand_tile_share: float = 1 / 32  # of L2, for each operand of a tiled reduction
    max_sketches: int = 32  # a typical subgraph has fewer than 10 (§4.1)
    max_states: int = 256  # unfinished ones at a time; more than any of our workloads has
    gpu: GpuSketchConfig = field(default_factory=GpuSketchConfig)


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
class MeasureConfig:
    """Building and timing candidates (`ansor.measure`)."""

    build_timeout_s: float = 8.0  # one program; most take 0.1 to 1 s
    run_timeout_s: float = 10.0  # one program
    start_timeout_s: float = 120.0  # a worker's first answer
    min_time_s: float = 0.02  # timed work per program, after the first run
    repeats: int = 3  # the median counts
    long_run_s: float = 0.1  # a program that takes longer is timed in one repeat
    once_s: float = 1.0  # one whose first run takes longer is not run again: it may take many
    max_number: int = 1000  # runs inside one repeat
    quiet_factor: float = 1.25  # known work that takes this times its best: the machine is busy
    disturbed_repeats: int = 6  # of one program that are made up for while the machine is busy
    disturbed_pause_s: float = 0.05  # after each of them
    # Starting threads takes this times its least where cores are far apart (near 1 to 1.5, far 2+).
    far_factor: float = 1.6
    far_below_s: float = 5e-5  # a longer program hardly feels it (of 9 us: 30 to 70 %; Zen 4)
    far_patience: float = 60.0  # questions answered so, beyond those answered well, in a worker
    abort_factor: float = 3.0  # first run slower than this times the best: recorded, not repeated
    # Nor is a program whose first repeat takes this times the best; where its arrays lie may make
    # it 1.15 times slower.
    repeat_factor: float = 1.4
    warm_below_s: float = 2e-4  # a shorter first run may be all sleeping threads: some more count
    retry_below_s: float = 0.01  # after a faster first run, some more decide what is slow
    recycle_after: int = 2000  # builds per worker process, against leaks
    workers: int = 4  # processes that build, at most; no more than cores
    verify_timeout_s: float = 120.0  # building and running a program and the untuned reference
    verify_iterations: float = 1e9  # of the reference, per output; of more, a sample (0.3 s)
    seed: int = 0  # of the input data
    max_int_input: int = 1  # integers of the input data: an index into anything must be in range
    cold_pool_bytes: int = 128 << 20  # memory that weights are taken from in turns; past most L3s
    kept_bytes: int = 128 << 20  # of arrays of tasks that a worker may be asked for again
    layout_bytes: int = 512 << 20  # of arguments of one operator, in as many places as repeats
    # Written between two runs on a GPU, of a function that is part of a network: past any L2.
    gpu_flush_bytes: int = 256 << 20
    max_copies: int = 256  # argument sets of one task
    leaders: int = 8  # best programs of a task that are timed against each other at the end
    leader_margin: float = 0.15  # only those within this share of the best
    compare_rounds: int = 15  # turns of that comparison, for a single operator
    compare_s: float = 10.0  # seconds of it, where programs are slow; but at least three turns
    network_rounds: int = 3  # turns of the comparison of leaders on a GPU
    rehearsal_s: float = 4.0  # runs of a network in which its leaders are compared
    rehearsal_rounds: int = 500  # turns of each of them, at most: enough where a run is short
    verify_rtol: float = 1e-3  # winner against the reference, relative to the largest value
    verify_tf32_rtol: float = 1e-2  # the same where operands are rounded to tf32: 2^-11 each
    # A program may add up in order; of the worst case of its rounding errors, the number of
    # additions times half a unit in the last place, this share is allowed for.
    verify_rounding: float = 0.05
    # Of few additions errors of random sign are more: so many times their root, half a unit each.
    verify_walk: float = 2.0


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
    finish_base_s: float = 14.0  # kept back from `minutes`: compiling the network
    finish_per_task_s: float = 0.2  # kept back from `minutes`: checking a winner
    finish_per_leader_s: float = 0.3  # kept back from `minutes`: building and timing a leader
    finish_share: float = 0.1  # of `minutes`, for leaders beyond the least
    least_leaders: int = 2  # of a task, however short the time
    least_search_s: float = 1.0  # searched even where the rest took all the time


FULL = TuneConfig()
QUICK = TuneConfig(evolution=EvolutionConfig(initial=512, population=128, generations=2, batch=8))


@dataclass(frozen=True)
class PrefetchConfig:
    """How far ahead programs for CPUs prefetch, and in which groups. Sizes are in bytes.

    Sizes of caches and lines are in the steps that prefetch (`ansor.program.steps.prefetch`).
    """

    least_turn: int = 8  # iterations of a loop between two groups of prefetches
    most_lines: int = 8  # of an array in a group; a core tracks a few dozen misses
    row_ahead_bytes: int = 8192  # from a packed row to the prefetched one; best of 1 to 8 KB, Zen 5
    summed_row_ahead_bytes: int = 4096  # the same for summed rows; best of 2, 4 and 8 KB, Zen 4
    row_distance_bytes: int = 1024  # between rows; the hardware prefetcher follows nearer ones
    least_row_bytes: int = 32
    long_reduction: int = 256  # steps; an interruption costs a shorter reduction more than it gains
    reduction_share: float = 0.75  # of a reduction, with all prefetches: the last line is in time


PREFETCH = PrefetchConfig()
