"""`Gpu`: the parameters of an NVIDIA GPU that rules, limits and the draft model read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ansor.errors import UnsupportedError


@dataclass(frozen=True)
class Gpu:
    """The parameters of a GPU for the cost model. "SM" is a streaming multiprocessor.

    Attributes:
        name: product, for reports.
        arch: the compiler's name of the architecture.
        multiprocessors: number of SMs.
        frequency_hz: boost clock of the SMs.
        warp: threads that run in step.
        schedulers: warps of an SM that issue an instruction each cycle.
        fma_per_cycle: fp32 multiply-adds of an SM each cycle.
        tensor_fma_per_cycle: fp16 multiply-adds of an SM's tensor cores each cycle, by the
            instructions of a single warp.
        special_per_cycle: exponentials and similar functions of an SM each cycle.
        threads_per_block: most threads of a block.
        threads_per_sm: most resident threads of an SM.
        blocks_per_sm: most resident blocks of an SM.
        registers_per_sm: registers of 32 bits.
        registers_per_thread: most registers of a thread; more spill to memory.
        shared_per_block: bytes of shared memory that a block may declare statically.
        shared_per_sm: bytes of shared memory of an SM, for all its blocks.
        shared_bytes_per_cycle: of an SM.
        l2_bytes: last-level cache.
        l2_bandwidth: bytes per second.
        memory_bandwidth: bytes per second.
        memory_latency_s: of a load that misses all caches.
        launch_s: overhead of a kernel's start in a sequence of kernels.
        tf32: whether tensor cores may round operands in float32 to tf32, 10 bits of mantissa.
    """

    name: str
    arch: str
    multiprocessors: int
    frequency_hz: float
    threads_per_sm: int
    blocks_per_sm: int
    shared_per_sm: int
    l2_bytes: int
    l2_bandwidth: float
    memory_bandwidth: float
    fma_per_cycle: int
    tensor_fma_per_cycle: int
    special_per_cycle: int = 16
    warp: int = 32
    schedulers: int = 4
    threads_per_block: int = 1024
    registers_per_sm: int = 65536
    registers_per_thread: int = 255
    shared_per_block: int = 48 << 10
    shared_bytes_per_cycle: int = 128
    memory_latency_s: float = 450e-9
    launch_s: float = 2.5e-6
    tf32: bool = False

    @property
    def most_shared_per_block(self) -> int:
        """Bytes of shared memory that a block may have at its start. From compute capability 8.0
        on, the system reserves one KiB."""
        reserved = 0 if self.arch in ("sm_70", "sm_75") else 1 << 10
        return self.shared_per_sm - reserved

    @property
    def copies_asynchronously(self) -> bool:
        """Whether memory is copied to shared memory while threads continue; from compute capability
        8.0 on (CUDA C++ Programming Guide, "Asynchronous Data Copies")."""
        return int(self.arch[3:5]) >= 80

    def multiplies(self, dtype: str) -> bool:
        """Whether tensor cores multiply operands of a dtype.

        All take float16. From compute capability 8.0 on they take bfloat16, and float32 if the
        target allows tf32 (CUDA C++ Programming Guide, "Warp Matrix Functions")."""
        late = dtype == "bfloat16" or (dtype == "float32" and self.tf32)
        return dtype == "float16" or (late and has_tf32(self.arch))

    def tensor_rate(self, item_bytes: int) -> float:
        """Multiply-adds of an SM's tensor cores each cycle, by the size of their operands. In tf32
        they take twice as long as in half precision (NVIDIA's white papers)."""
        return self.tensor_fma_per_cycle * 2 / item_bytes

    @property
    def peak_flops(self) -> float:
        """Floating-point operations per second, fp32, without tensor cores."""
        return 2.0 * self.fma_per_cycle * self.multiprocessors * self.frequency_hz

    @property
    def peak_bytes(self) -> float:
        """Bytes per second between registers and the first caches, all SMs."""
        return float(self.shared_bytes_per_cycle) * self.multiprocessors * self.frequency_hz

    def product_flops(self, item_bytes: int) -> float:
        """Operations per second of sums of products, at most, by the bytes of an operand."""
        each = max(self.fma_per_cycle * max(1.0, 4 / item_bytes), self.tensor_rate(item_bytes))
        return 2.0 * each * self.multiprocessors * self.frequency_hz


def has_tf32(arch: str) -> bool:
    """Whether an architecture's tensor cores support bfloat16 and tf32."""
    return int(arch[3:5]) >= 80


# Limits: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability".
# Clocks, sizes and bandwidths: NVIDIA's white papers of one product each; the bandwidth of the
# second cache is from published micro-benchmarks.
_KNOWN = (
    Gpu("V100", "sm_70", 80, 1.53e9, 2048, 32, 96 << 10, 6 << 20, 2.2e12, 0.90e12, 64, 512),
    Gpu("T4", "sm_75", 40, 1.59e9, 1024, 16, 64 << 10, 4 << 20, 1.3e12, 0.32e12, 64, 512),
    Gpu("A100", "sm_80", 108, 1.41e9, 2048, 32, 164 << 10, 40 << 20, 4.0e12, 1.56e12, 64, 1024),
    Gpu("RTX 3090", "sm_86", 82, 1.70e9, 1536, 16, 100 << 10, 6 << 20, 2.5e12, 0.94e12, 128, 512),
    Gpu("RTX 4090", "sm_89", 128, 2.52e9, 1536, 24, 100 << 10, 72 << 20, 5.0e12, 1.01e12, 128, 512),
    Gpu("H100", "sm_90", 132, 1.83e9, 2048, 32, 228 << 10, 50 << 20, 5.5e12, 3.35e12, 128, 1024),
)
ARCHITECTURES = tuple(gpu.arch for gpu in _KNOWN)


def gpu_of(arch: str, tf32: bool = False) -> Gpu:
    """The typical GPU of an architecture; `tf32` as for `Gpu`.

    Raises:
        UnsupportedError: an unknown architecture.
    """
    for gpu in _KNOWN:
        if arch.removesuffix("a") == gpu.arch:
            return replace(gpu, arch=arch, tf32=tf32)
    known = ", ".join(ARCHITECTURES)
    raise UnsupportedError(f"GPU architecture {arch!r} is unknown", f"say one of {known}")
