"""The search space: sketches for CPUs and GPUs."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class GpuSketchConfig:
    """The search space of GPUs."""

    tile_structure: str = "SSSRRSRFS"  # Ansor §4.1, the GPU's "SSSRRSRS"; folded axes unrolled
    tensor_structure: str = "SSRRST"  # blocks, warps, two levels of the reduction, a warp's tiles
    tensor_widths: tuple[int, ...] = (2, 4, 8)  # elements of a load from memory, half precision
    rounds_ahead: tuple[int, ...] = (0, 1, 2, 3)  # prefetched rounds; each needs one more buffer
    pads: tuple[int, ...] = (0, 1)  # padding of rows in shared memory, in vectors of 16 bytes
    # The same for tf32, where a warp reads rows of eight words, one for each reduction step.
    tf32_pads: tuple[int, ...] = (0, 2)
    max_padding: float = 4.0  # ratio of padded operations; tensor cores are eight times as fast
    max_tf32_padding: float = 2.0  # the same in tf32, which is half as fast
    max_warps: int = 16  # of a block
    tensor_unroll_steps: tuple[int, ...] = (0, 16, 64)  # a warp's tiles are unrolled anyway
    max_gathers: int = 32  # loads of a thread at computed addresses; with more, ptxas spills
    max_warp_tiles: int = 8  # tiles of results along an axis, in the registers of a warp
    fuse_level: int = 3  # spatial tile levels outside the tile of a thread
    threads: tuple[int, ...] = (32, 64, 128, 192, 256, 512, 1024)  # of a block, untiled stages
    least_threads: int = 16  # of a block of tiles; half a warp
    vector_widths: tuple[int, ...] = (1, 2, 4)  # elements of a load or store
    max_vector_bytes: int = 16  # the widest load
    max_vthreads: int = 16  # virtual threads; TVM's `max_vthread_extent` is 8
    max_innermost_factor: int = 64  # elements; TVM's `max_innermost_split_factor`
    max_accumulators: int = 192  # registers of a thread that hold results
    spare_registers: int = 24  # of a thread, which the estimate may miss
    max_unrolled_statements: int = 1024  # of a thread's tile; the compiler takes seconds for them
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
    least_block_reduction: int = 32  # elements of a reduction that a block's threads share; a warp
    block_reduction_fill: float = 0.25  # share of a GPU's threads that outputs alone must fill
    max_rfactor: int = 1024  # largest number of blocks that share a reduction


@dataclass(frozen=True)
class SketchConfig:
    """The search space (`ansor.sketch`, `ansor.annotate`)."""

    tile_structure: str = "SSRSRS"  # Ansor §4.1, Table 1, rule 3 (CPU)
    host_structure: str = "SSSFV"  # of an output that computes its producers tile by tile
    fuse_levels: tuple[int, ...] = (1, 2)  # spatial tile levels a consumer may be fused at (§4.1)
    max_innermost_factor: int = 64  # elements; TVM's `max_innermost_split_factor`
    good_rows: tuple[int, int] = (4, 28)  # of a register tile: hide latency, fit in registers
    max_tail_waste: float = 0.125  # share computed twice where a split does not divide
    spare_tail_waste: float = 0.02  # the same where a split that divides is good, too
    max_vector_bytes: int = 256  # bytes of the vectorised loop: four 512-bit registers
    few_lanes: float = 0.5  # of a vector; if filters fill no more, vectors run along image rows
    unroll_steps: tuple[int, ...] = (0, 16, 64)  # statements; TVM's 512 builds ten times longer
    register_rows: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12, 14, 16)  # elements of a tile, per axis
    max_unrolled_statements: int = 64  # register tile, counted in vector statements
    max_result_tiles: int = 4  # results along an axis of an instruction on tiles, such as AMX
    # Ratio of rates above which an instruction on tiles replaces the one on vectors.
    min_tile_gain: float = 2.0
    # Elements per core below which threads split a reduction. TVM's 16 fill vectors as well; here
    # a separate rule does.
    rfactor_spatial_per_core: int = 4
    rfactor_max_per_core: int = 16  # parts of a reduction that threads share
    max_branch_repeats: int = 16  # reads per element up to which a condition may replace padding
    # Share of the bytes of all buffers. A padding buffer below it gains nothing and is always
    # inlined: drafts of 29 variants differed by no more than those of different seeds.
    min_padded_share: float = 0.1
    # Least share of a convolution's steps on the padding of a dimension for which a condition
    # in the loop leaves them out. Fewer steps cost less than the condition.
    min_padding_share: float = 0.03
    min_pack_reuse: int = 256  # reads per element above which packing an operand pays
    min_transpose_reuse: int = 8  # the same for an operand that is otherwise gathered
    min_shuffled_bytes: int = 4  # of an element; squares of smaller ones exceed the registers
    min_pack_bytes: int = 1 << 20  # smaller operands stay in the second cache without packing
    min_prefetch_bytes: int = 1 << 18  # smallest constant that may be prefetched
    min_prefetch_part: int = 1 << 13  # bytes; the hardware prefetches smaller parts in time
    prefetch_distance: int = 1 << 13  # bytes ahead of data read once; best of 1 to 8 KB
    min_prefetch_run: int = 1 << 15  # contiguous bytes; the first of them arrive late
    max_prefetch_share: float = 0.4  # of the second cache, which holds two parts at a time
    # Largest tile that is prefetched, as a share of the cache that receives it.
    consumer_tile_share: float = 1 / 3  # of L1, for each array of a fused consumer
    operand_tile_share: float = 1 / 32  # of L2, for each operand of a tiled reduction
    max_sketches: int = 32  # a typical subgraph has fewer than 10 (§4.1)
    max_states: int = 256  # unfinished sketches at a time; more than any of our workloads has
    gpu: GpuSketchConfig = field(default_factory=GpuSketchConfig)
