"""The loops of a whole population of a sketch, in NumPy.

This is the second interpreter of the steps; the first is `ansor.lowering.lower`. A property test
compares them. A stage that is attached below a loop of its host is described under *all* loops of
the host. The loops that do not enclose it have extent 1. So one array shape serves every compute
location.
"""

from ansor.program.nest.from_steps import build_nest
from ansor.program.nest.loop_nest import LoopNest
from ansor.program.nest.stage_nest import StageNest

__all__ = ["LoopNest", "StageNest", "build_nest"]
