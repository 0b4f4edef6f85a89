"""Measurements of programs."""

from __future__ import annotations

from dataclasses import dataclass


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
    max_network_runs: int = 100_000  # of a network inside one repeat of `latency`
    quiet_factor: float = 1.25  # known work that takes this times its best: the machine is busy
    core_rounds: int = 1024  # multiply-adds of the known work that shows the speed of cores: 0.1 ms
    disturbed_repeats: int = 6  # of one program that are made up for while the machine is busy
    disturbed_pause_s: float = 0.05  # after each of them
    # Where threads have waited for a core, short repeats stand for whole ones. A system gives a
    # core to other work for 3 to 4 ms at a time (Linux, EEVDF), so short ones often meet none.
    delayed_share: float = 0.02  # of a repeat, that threads have waited: other work holds a core
    short_run_s: float = 1e-4  # of a short repeat; one run where that takes longer
    short_group: int = 8  # short repeats between two pauses
    short_pause_s: float = 0.002  # before each group
    short_repeats: int = 48  # without a delay, that are enough
    short_s: float = 0.15  # for all of them
    least_short: int = 4  # without a delay, for each repeat that is wanted
    turn_s: float = 6e-3  # beside other work; longer runs meet it and are not repeated like this
    others_s: float = 2.5  # that the end of other work is waited for, with a program
    vain_waits: int = 3  # in a row, after which it is no longer waited for
    longest_waiting_s: float = 0.3  # of a repeat; one that takes longer is not waited for
    # Measured again before it is learned: what is disturbed and within this factor of the best.
    # Other work on all cores halves the speed.
    again_factor: float = 2.0
    again_programs: int = 4  # of a batch, at most; they are built once more
    again_tries: int = 2  # of them
    # Starting threads takes this times its least where cores are far apart (near 1 to 1.5, far 2+).
    far_factor: float = 1.6
    thread_starts: int = 100  # of the known work that shows how near cores are: 0.2 ms
    # Multiply-adds of a thread that starts: 2 us. Of fewer, the launching thread takes all back.
    start_rounds: int = 16
    watch_runs: int = 8  # of known work, for its best time before the first question
    far_below_s: float = 5e-5  # a longer program hardly feels it (of 9 us: 30 to 70 %; Zen 4)
    far_patience: float = 60.0  # questions answered so, beyond those answered well, in a worker
    # Of the measured peak of products: a shorter time is no time. Cores may boost above the probe.
    peak_margin: float = 1.5
    byte_margin: float = 4.0  # of loads and stores, whose rate is a parameter and not measured
    abort_factor: float = 3.0  # first run slower than this times the best: recorded, not repeated
    # Nor is a program whose first repeat takes this times the best; where its arrays lie may make
    # it 1.15 times slower.
    repeat_factor: float = 1.4
    warm_below_s: float = 2e-4  # a shorter first run may be all sleeping threads: some more count
    retry_below_s: float = 0.01  # after a faster first run, some more decide what is slow
    recycle_after: int = 2000  # builds per worker process, against leaks
    workers: int = 4  # processes that build, at most; no more than cores
    # Of the memory that is available when a device is made, for the data of one worker. Programs
    # run one at a time. The rest is for the parent, and for what other workers build and keep.
    memory_share: float = 0.6
    # Of one worker, however little there is: 0.15 GB without arrays (TVM 0.27), and arguments.
    least_memory_bytes: int = 1 << 30
    verify_timeout_s: float = 120.0  # building and running a program and the untuned reference
    verify_iterations: float = 1e9  # of the reference, per output; of more, a sample (0.3 s)
    seed: int = 0  # of the input data
    max_drawn: int = (1 << 22) - 3  # floats; larger arrays repeat them, out of step with dimensions
    max_int_input: int = 1  # integers of the input data: an index into anything must be in range
    cold_pool_bytes: int = 128 << 20  # memory that weights are taken from in turns; past most L3s
    kept_bytes: int = 128 << 20  # of arrays of tasks that a worker may be asked for again
    layout_bytes: int = 512 << 20  # of arguments of one operator, in as many places as repeats
    other_runs: int = 5  # of the functions around a timed one; their median is what they take
    # Written between two runs on a GPU, of a function that is part of a network: past any L2.
    gpu_flush_bytes: int = 256 << 20
    max_copies: int = 256  # argument sets of one task
    max_ranked: int = 64  # measured programs of a task among which leaders are looked for
    leaders: int = 8  # best programs of a task that are timed against each other at the end
    leader_margin: float = 0.15  # only those within this share of the best
    least_with_preferred: int = 4  # leaders, for one of them to be what the draft preferred
    compare_rounds: int = 15  # turns of that comparison, for a single operator
    compare_s: float = 10.0  # seconds of it, where programs are slow
    compare_runs: int = 2  # of a slow program, in each turn
    least_rounds: int = 3  # turns of a comparison of leaders, however slow they are
    untuned_s: float = 2.0  # for untuned programs, all functions together
    iteration_s: float = 2e-9  # of an untuned program; a multiply-add with strided loads (Zen 5)
    untuned_runs: int = 3  # of an untuned program in one turn
    network_rounds: int = 3  # turns of the comparison of leaders on a GPU
    rehearsal_s: float = 4.0  # runs of a network in which its leaders are compared
    rehearsal_rounds: int = 500  # turns of each of them, at most: enough where a run is short
    rehearsal_drawn: int = 1 << 20  # random floats, of which all weights of a network are copies
    max_checks: int = 8  # measured programs of a function that are checked before all are given up
    verify_rtol: float = 1e-3  # winner against the reference, relative to the largest value
    verify_tf32_rtol: float = 1e-2  # the same where operands are rounded to tf32: 2^-11 each
    # A program may add up in order; of the worst case of its rounding errors, the number of
    # additions times half a unit in the last place, this share is allowed for.
    verify_rounding: float = 0.05
    # Of few additions errors of random sign are more: so many times their root, half a unit each.
    verify_walk: float = 2.0


@dataclass(frozen=True)
class RpcConfig:
    """Servers behind a tracker of TVM's RPC (`ansor.measure.rpc`)."""

    tracker_s: float = 5.0  # until an answer of the tracker is given up
    tracker_pause_s: float = 0.5  # until a tracker that was lost is asked again
    connect_s: float = 10.0  # until a server that does not open a session is given up
    wait_s: float = 60.0  # without a server that opens a session, while programs wait
    lease_s: float = 30.0  # after which a server is given back, for other users of the key
    session_s: float = 600.0  # after which a server ends a session: its client may be gone
    retries: int = 1  # of a program whose server died or did not answer
    ask_s: float = 120.0  # of what is read or measured of a server's machine
    upload_s: float = 10.0  # of a program and its arguments, beyond the time limit of its runs


RPC = RpcConfig()


@dataclass(frozen=True)
class WorkerConfig:
    """Messages of worker processes (`ansor.measure.local`, `ansor.measure.child`)."""

    fork_answer_s: float = 120.0  # until the fork server is given up; the first waits for imports
    fork_message_bytes: int = 1 << 16  # of a request to the fork server or an answer, at most
    pipe_bytes: int = 1 << 16  # read at a time; the size of a pipe's buffer on Linux (pipe(7))
    log_bytes: int = 16 << 20  # that a worker may print, or write to any other file
    log_tail_bytes: int = 2000  # of what a dead process printed, which are reported
    error_lines: int = 8  # of an error's text that are sent; TVM's errors run to pages
    error_characters: int = 800  # of these lines


WORKERS = WorkerConfig()
