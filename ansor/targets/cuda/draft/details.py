"""The occupancy and the traffic of each kernel of one program, as the draft counts them."""

from __future__ import annotations

from ansor.features.loop_tables import Floats
from ansor.features.profile import StageProfile
from ansor.program.nest import LoopNest
from ansor.targets.cuda.draft.draft import grid_of
from ansor.targets.cuda.draft.traffic import memory_bytes, traffic
from ansor.targets.cuda.kernels import Counts, Kernel, kernels
from ansor.targets.cuda.machine import Gpu
from ansor.targets.stage_details import StageDetails, Transfer


def details(nest: LoopNest, profiles: dict[str, StageProfile], gpu: Gpu) -> dict[str, StageDetails]:
    """The details of each kernel, by the name of its root stage; the population has one program."""
    return {kernel.root: _of_kernel(nest, profiles, kernel, gpu) for kernel in kernels(nest)}


def _of_kernel(
    nest: LoopNest, profiles: dict[str, StageProfile], kernel: Kernel, gpu: Gpu
) -> StageDetails:
    grid = grid_of(kernel, gpu)
    moved, unique = traffic(nest, profiles, kernel)
    memory = memory_bytes(moved, unique, gpu)
    transfers = (
        Transfer("L2 to multiprocessors", float(moved[0]), gpu.l2_bandwidth),
        Transfer("memory to L2", float(memory[0]), gpu.memory_bandwidth),
    )
    occupancy: dict[str, Floats | Counts] = {
        "blocks": grid.blocks,
        "threads of a block": grid.threads,
        "registers of a thread": kernel.registers,
        "bytes of shared memory of a block": kernel.shared_bytes,
        "resident blocks of a multiprocessor": grid.busy,
        "resident warps of a multiprocessor": grid.warps,
        "waves": grid.waves,
    }
    figures = {name: float(values[0]) for name, values in occupancy.items()}
    return StageDetails(transfers=transfers, occupancy=figures)
