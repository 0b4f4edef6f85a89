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
    once_s: float = 1.0  # a program whose first run takes longer is not run again
    max_number: int = 1000  # runs inside one repeat
    max_network_runs: int = 100_000  # of a network inside one repeat of `latency`
    quiet_factor: float = 1.25  # the machine is busy if a reference takes this times its best
    core_rounds: int = 1024  # multiply-adds of the reference for the speed of cores: 0.1 ms
    disturbed_repeats: int = 6  # of one program that are repeated while the machine is busy
    disturbed_pause_s: float = 0.05  # after each disturbed repeat
    # If threads had to wait for a core, short repeats replace the usual ones. Linux (EEVDF) gives a
    # core to other work for 3 to 4 ms at a time, so that many short repeats are not delayed.
    delayed_share: float = 0.02  # a repeat is delayed if threads waited for this share of it
    short_run_s: float = 1e-4  # duration of a short repeat, at least one run
    short_group: int = 8  # short repeats between two pauses
    short_pause_s: float = 0.002  # before each group
    short_repeats: int = 48  # undelayed short repeats that are enough
    short_s: float = 0.15  # for all short repeats of a program
    least_short: int = 4  # undelayed short repeats for each usual repeat
    turn_s: float = 6e-3  # a longer run always meets other work: it has no short repeats
    others_s: float = 2.5  # longest wait of one program for the end of other work
    vain_waits: int = 3  # waits in a row without success, after which programs wait no longer
    longest_waiting_s: float = 0.3  # a program with longer repeats does not wait
    # A disturbed program within this factor of the best is measured again before the model learns
    # from it. Other work on all cores halves the speed.
    again_factor: float = 2.0
    again_programs: int = 4  # measured again in a batch, at most; each is built again
    again_tries: int = 2  # further measurements of such a program
    # Cores are far apart if threads start this times slower than at best (near 1 to 1.5, far 2+).
    far_factor: float = 1.6
    thread_starts: int = 100  # starts in the reference for the distance of cores: 0.2 ms
    # Multiply-adds of each started thread: 2 us. With fewer, the launching thread does all of them.
    start_rounds: int = 16
    watch_runs: int = 8  # first runs of a reference, for its best time
    far_below_s: float = 5e-5  # far cores hardly slow longer programs (9 us: 30 to 70 %; Zen 4)
    far_patience: float = 60.0  # surplus of "far" answers after which a worker ignores them
    # A program faster than this times the measured peak of products has a wrong time. Cores may
    # boost above the clock of that measurement.
    peak_margin: float = 1.5
    byte_margin: float = 4.0  # the same for loads and stores, whose peak is not measured
    abort_factor: float = 3.0  # a program with a first run above this times the best has no repeat
    # A program whose first repeat takes this times the best has no second one. The addresses of
    # its arrays alone can make it 1.15 times slower.
    repeat_factor: float = 1.4
    warm_below_s: float = 2e-4  # a shorter first run may only wake threads: more runs are timed
    retry_below_s: float = 0.01  # a slow program with a shorter first run is timed in more runs
    recycle_after: int = 2000  # builds per worker process, against leaks
    workers: int = 4  # processes that build, at most; no more than cores
    # Share of the memory available at the start, for the data of one worker. Programs run one at a
    # time. The rest is for the parent, and for what other workers build and keep.
    memory_share: float = 0.6
    # Least memory of one worker: 0.15 GB without arrays (TVM 0.27), and the arguments.
    least_memory_bytes: int = 1 << 30
    verify_timeout_s: float = 120.0  # building and running a program and the untuned reference
    verify_iterations: float = 1e9  # per output of the reference; beyond, only a sample (0.3 s)
    seed: int = 0  # of the input data
    max_drawn: int = (1 << 22) - 3  # random floats; larger arrays repeat them, at an odd period
    max_int_input: int = 1  # largest integer of the input data: an index must be in range
    cold_pool_bytes: int = 128 << 20  # weights rotate through this memory; larger than most L3s
    kept_bytes: int = 128 << 20  # arrays of earlier tasks that a worker keeps
    layout_bytes: int = 512 << 20  # copies of an operator's arguments, one for each repeat
    other_runs: int = 5  # timings of the functions around a timed one; the median counts
    # Written between two runs of a network's function on a GPU; larger than any L2.
    gpu_flush_bytes: int = 256 << 20
    max_copies: int = 256  # argument sets of one task
    max_ranked: int = 64  # measured programs of a task among which leaders are looked for
    leaders: int = 8  # best programs of a task that are timed against each other at the end
    leader_margin: float = 0.15  # only those within this share of the best
    least_with_preferred: int = 4  # from this number of leaders on, the draft's choice is one
    compare_rounds: int = 15  # turns of a comparison of leaders, for a single operator
    compare_s: float = 10.0  # longest comparison of slow leaders
    compare_runs: int = 2  # of a slow program, in each turn
    least_rounds: int = 3  # turns of a comparison of leaders, however slow they are
    untuned_s: float = 2.0  # for timing untuned programs, all functions together
    iteration_s: float = 2e-9  # of an untuned loop: a multiply-add with strided loads (Zen 5)
    untuned_runs: int = 3  # of an untuned program in one turn
    network_rounds: int = 3  # turns of the comparison of leaders on a GPU
    rehearsal_s: float = 4.0  # for runs of a network that compare its leaders
    rehearsal_rounds: int = 500  # turns of each leader, at most: enough if runs are short
    rehearsal_drawn: int = 1 << 20  # random floats that all weights of a network repeat
    max_checks: int = 8  # wrong programs of a function, after which it stays untuned
    verify_rtol: float = 1e-3  # winner against the reference, relative to the largest value
    verify_tf32_rtol: float = 1e-2  # the same where operands are rounded to tf32: 2^-11 each
    # Allowed share of the largest possible rounding error of a sum in order: the number of
    # additions times half a unit in the last place.
    verify_rounding: float = 0.05
    # The limit for short sums: this factor times the typical error of additions that round at
    # random, the root of their number times half a unit.
    verify_walk: float = 2.0


@dataclass(frozen=True)
class RpcConfig:
    """Servers behind a tracker of TVM's RPC (`ansor.measure.rpc`)."""

    tracker_s: float = 5.0  # longest wait for an answer of the tracker
    tracker_pause_s: float = 0.5  # between attempts to reach a lost tracker
    connect_s: float = 10.0  # longest wait for a server to open a session
    wait_s: float = 60.0  # longest time without any session while programs wait
    lease_s: float = 30.0  # use of a server before it is returned to other users of its key
    session_s: float = 600.0  # longest session; the server ends it, as its client may be gone
    retries: int = 1  # of a program whose server died or did not answer
    ask_s: float = 120.0  # for reading and measuring the parameters of a server's machine
    upload_s: float = 10.0  # for sending a program and its arguments, beside the limit of its runs


RPC = RpcConfig()


@dataclass(frozen=True)
class WorkerConfig:
    """Messages of worker processes (`ansor.measure.local`, `ansor.measure.child`)."""

    fork_answer_s: float = 120.0  # longest wait for the fork server; it imports before the first
    fork_message_bytes: int = 1 << 16  # largest request to the fork server, and answer
    pipe_bytes: int = 1 << 16  # read at a time; the size of a pipe's buffer on Linux (pipe(7))
    log_bytes: int = 16 << 20  # largest output of a worker, and largest file that it writes
    log_tail_bytes: int = 2000  # reported end of a dead process's output
    error_lines: int = 8  # lines of an error's text that are sent; TVM's errors fill pages
    error_characters: int = 800  # of these lines


WORKERS = WorkerConfig()
