"""The GPUs of this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

import tvm
from tvm.target import Target

from ansor.targets.cuda.machine import Gpu, gpu_of
from ansor.targets.cuda.target import rounds_to_tf32

_VISIBLE = "CUDA_VISIBLE_DEVICES"


def read_gpu(target: Target) -> Gpu:
    """The GPU of a target's architecture: this machine's, if it has one of that kind."""
    typical, device = gpu_of(str(target.attrs["arch"]), rounds_to_tf32(target)), tvm.runtime.cuda(0)
    arch = typical.arch.removesuffix("a")
    if not device.exist or f"sm_{device.compute_version.replace('.', '')}" != arch:
        return typical
    return replace(
        typical,
        name=str(device.device_name),
        multiprocessors=int(device.multi_processor_count),
        frequency_hz=float(device.max_clock_rate) * 1e3,
        l2_bytes=int(device.l2_cache_size_bytes),
    )


def gpu_lanes() -> list[dict[str, str]]:
    """Environment variables that make a single GPU visible, for each GPU that equals the first.

    One empty set without a GPU.
    """
    kinds: list[tuple[str, str]] = []
    while (device := tvm.runtime.cuda(len(kinds))).exist:
        kinds.append((str(device.device_name), str(device.compute_version)))
    alike = [number for number, kind in enumerate(kinds) if kind == kinds[0]]
    visible = [name for name in os.environ.get(_VISIBLE, "").split(",") if name]
    return [{_VISIBLE: visible[i] if visible else str(i)} for i in alike] or [{}]


def describe(gpu: Gpu) -> Mapping[str, str]:
    """The parameters by name, with units."""
    return {
        "GPU": f"{gpu.name}, {gpu.arch}",
        "multiprocessors": f"{gpu.multiprocessors} at {gpu.frequency_hz / 1e9:.2f} GHz",
        "peak": f"{gpu.peak_flops / 1e12:.1f} TFLOP/s fp32, without tensor cores",
        "shared memory": f"{gpu.shared_per_sm >> 10} KiB per multiprocessor, "
        f"{gpu.shared_per_block >> 10} KiB per block",
        "L2": f"{gpu.l2_bytes >> 20} MiB",
        "memory": f"{gpu.memory_bandwidth / 1e9:.0f} GB/s",
    }
