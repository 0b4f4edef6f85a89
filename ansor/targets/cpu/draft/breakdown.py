"""`Breakdown`: the drafted time of a stage, and its parts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ansor.features.loop_tables import Floats
from ansor.targets.cpu.draft.constants import LEAST_RATIO, DraftConstants
from ansor.targets.cpu.draft.needs import Needs
from ansor.targets.cpu.draft.register_tile import TileCost
from ansor.targets.cpu.machine import Hardware
from ansor.targets.time_parts import TimeParts


@dataclass(frozen=True, eq=False)
class Breakdown:
    """The parts of a stage's time, `[P] float32` each, in cycles of one core by default.

    Attributes:
        needs: cycles for which each resource is occupied.
        tile: work of one step.
        together: cycles of all resources with their overlap; of a fused consumer whose lines are
            prefetched, the cycles that it adds to its host.
        cold: cycles to stream the constant operands from memory.
        stalls: cycles of `cold` that the stage waits for.
        pipeline: cycles in which spills, the ends of runs of a reduction and checks for padding
            stop the core.
        translations: cycles for addresses of pages outside the TLB.
        conditions: cycles for conditions that skip steps on padding.
        sharing: cycles to read data that other cores have written.
        speedup: ratio, of the parallel loop.
        start_s: seconds to start threads.
        hardware, constants: parameters of the draft.
    """

    needs: Needs
    tile: TileCost
    together: Floats
    cold: Floats
    stalls: Floats
    pipeline: Floats
    translations: Floats
    conditions: Floats
    sharing: Floats
    speedup: Floats
    start_s: Floats
    hardware: Hardware
    constants: DraftConstants

    @cached_property
    def seconds(self) -> Floats:
        """`[P]`: the time of the stage."""
        cycles = self.together + self.stalls
        cycles = cycles + self.pipeline + self.translations + self.conditions
        cycles = cycles * self.tile.risk
        total: Floats = (self._seconds(cycles + self.sharing) + self.start_s).astype(np.float32)
        return total

    def _seconds(self, cycles: Floats) -> Floats:
        """`[P]`: seconds of all cores for cycles of one core."""
        time: Floats = cycles / np.float32(self.hardware.frequency_hz) / self.speedup
        return time

    @property
    def arithmetic(self) -> Floats:
        """`[P]`: cycles of arithmetic units, or of the latency of dependent additions."""
        cycles: Floats = np.maximum(self.needs.computing, self.needs.waiting)
        return cycles

    @property
    def dram_traffic(self) -> Floats:
        """`[P]`: cycles of transfers from memory."""
        cycles: Floats = self.needs.transfers[-1] + self.cold
        return cycles

    @property
    def code(self) -> Floats:
        """`[P]`: instructions of the unrolled block, which LLVM compiles."""
        return self.tile.code

    def columns(self, total: Floats) -> list[Floats]:
        """Inputs of the learned model, `[P]` each; `total` is the time of the program."""
        cycles = np.maximum(self.arithmetic, 1)
        level2, last, _ = self.needs.transfers
        resources = (self.needs.ports, self.needs.issue, level2, last, self.dram_traffic)
        return [
            *(np.log2(busy / cycles + LEAST_RATIO) for busy in resources),
            self.speedup,
            self.tile.accumulators,
            self.seconds / total,
        ]

    def parts(self) -> TimeParts:
        """The parts of the time; the factor for uncertain optimisations is in each of them."""
        needs, risk = self.needs, self.tile.risk
        level2, last, memory = needs.transfers
        resources = {
            "arithmetic units": needs.computing,
            "latency of dependent additions": needs.waiting,
            "load and store ports": needs.ports,
            "front end": needs.issue,
            "transfers from L2": level2,
            "transfers from the last cache": last,
            "transfers from memory": memory,
        }
        further = {
            "wait for constants from memory": self.stalls,
            "stops of the pipeline": self.pipeline,
            "translations of addresses": self.translations,
            "conditions on padding": self.conditions,
        }
        loop_share = self.constants.compiler.loop_instructions / self.hardware.issue_width
        control = self.tile.steps * np.float32(loop_share) + needs.decoding
        shared = {
            "data of other cores": self._seconds(self.sharing),
            "start of threads": self.start_s,
        }
        return TimeParts(
            {name: self._seconds(cycles * risk) for name, cycles in resources.items()},
            self._seconds(self.together * risk),
            {name: self._seconds(cycles * risk) for name, cycles in further.items()} | shared,
            {"loops, in the front end": self._seconds(control * risk)},
        )
