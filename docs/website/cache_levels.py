"""The loop nest of one program: its tiles, and the cache that holds what each loop touches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansor.annotate.sample import sample
from ansor.config import SketchConfig
from ansor.features.profile import StageProfile, profile
from ansor.program.nest import LoopNest, build_nest
from ansor.program.sketch import Population
from ansor.targets.cpu.search import CPU_SEARCH
from docs.website.example import MACHINE, example
from docs.website.svg import BLUE, GREEN, GREY, ORANGE, RED, Drawing

STAGE = "C"  # the product
SAMPLES = 256  # programs of each sketch, from which the draft chooses
_CACHES = (("L1", GREEN), ("L2", BLUE), ("last-level cache", ORANGE), ("memory", RED))
_ROW, _INDENT, _WIDTH, _TOP = 34.0, 22.0, 760.0, 70.0  # pixels


@dataclass(frozen=True)
class Row:
    """A loop, or the statement inside all loops.

    Attributes:
        text: the loop's part of an axis and its extent.
        bytes: distinct bytes that one run of this loop touches, of each buffer.
        level: the smallest cache that holds them, 0 for L1; 3 is the memory.
    """

    text: str
    bytes: dict[str, int]
    level: int


def chosen() -> Population:
    """The program with the least drafted time among random programs of all sketches."""
    rng = np.random.default_rng(0)
    best, least_s = None, np.inf
    for sketch in CPU_SEARCH.sketches(example(), MACHINE, SketchConfig()):
        population = sample(sketch, SAMPLES, rng)
        nest = build_nest(population)
        stages = CPU_SEARCH.draft(nest, profile(nest), MACHINE).values()
        seconds = np.where(
            CPU_SEARCH.legal(nest, MACHINE, SketchConfig()),
            np.sum([stage.seconds for stage in stages], axis=0),
            np.inf,
        )
        if seconds.min() < least_s:
            best, least_s = population.take([int(seconds.argmin())]), float(seconds.min())
    assert best is not None
    return best


def rows(nest: LoopNest) -> list[Row]:
    """The loops of the stage, outermost first; a loop of one iteration has no row."""
    found = profile(nest)[STAGE]
    return [_row(found, depth) for depth in range(len(found.active) + 1)]


def _row(found: StageProfile, depth: int) -> Row:
    touched = {a.buffer.name: int(a.bytes[depth, 0]) for a in found.accesses}
    fits = [sum(touched.values()) <= size for size in MACHINE.cache_bytes]
    level = fits.index(True) if any(fits) else len(fits)
    return Row(_loop(found, depth), touched, level)


def _loop(found: StageProfile, depth: int) -> str:
    if depth == len(found.active):
        return "one multiply-add"
    number, nest = found.active[depth], found.nest
    loop = nest.loops[number]
    kinds = [("parallel", bool(nest.parallel[number, 0])), ("vector", number == nest.vector)]
    kinds.append(("unrolled", bool(nest.unrolled[number, 0])))
    kind = next((name for name, holds in kinds if holds), "")
    axis = nest.stage.axes[loop.axis].name
    return f"{axis}{loop.part} in {nest.extents[number, 0]} {kind}".rstrip()


def draw() -> str:
    """The drawing."""
    population = chosen()
    listed = rows(build_nest(population))
    drawing = Drawing(_WIDTH, _TOP + _ROW * len(listed) + 20)
    drawing.text(20, 22, f"loops of stage {STAGE}, and the bytes that one run of a loop touches")
    for number, (name, fill) in enumerate(_CACHES):
        drawing.box(20 + 150 * number, 32, 140, [name], fill)
    for depth, row in enumerate(listed):
        x, y = 20 + _INDENT * depth, _TOP + 10 + _ROW * depth
        fill = GREY if depth == len(listed) - 1 else _CACHES[row.level][1]
        drawing.box(x, y, _WIDTH - 340 - _INDENT * depth, [row.text], fill)
        shown = ", ".join(f"{name} {_size(count)}" for name, count in row.bytes.items())
        drawing.text(_WIDTH - 300, y + 18, shown)
    return drawing.to_text()


def _size(count: int) -> str:
    if count < 1 << 10:
        return f"{count} B"
    return f"{count / (1 << 10):.4g} KiB" if count < 1 << 20 else f"{count / (1 << 20):.3g} MiB"
