"""The text of an explanation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansor.explain.figures import (
    DraftedTime,
    LevelTraffic,
    Limits,
    Part,
    RunnerUp,
    SearchSummary,
)
from ansor.report.formatting import (
    Column,
    align_columns,
    failures,
    gflops,
    microseconds,
    percent,
    significant,
)
from ansor.targets.stage_details import RegisterTile
from ansor.task import DIRECT

_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
_PARTS = (Column("part", is_text=True), Column("µs"), Column("of the draft"))
_STAGES = (Column("stage", is_text=True), Column("µs"), Column("largest part", is_text=True))
_TRAFFIC = (
    Column("path", is_text=True),
    Column("bytes"),
    Column("× compulsory"),
    Column("of bandwidth"),
)
_SKETCHES = (
    Column("sketch", is_text=True),
    Column("programs"),
    Column("failed"),
    Column("best µs"),
    Column("structure", is_text=True, most=80),
)
_VARIANTS = (Column("variant", is_text=True), Column("programs"), Column("best µs"))
_DIFFERENCES = (
    Column("decision", is_text=True),
    Column("winner", is_text=True),
    Column("runner-up", is_text=True),
)


def times_text(limits: Limits, drafted: DraftedTime | None, variant: str) -> str:
    """Measured time, draft and limits of the machine."""
    lines, measured_s = [_measured(limits)], limits.latency_s
    if drafted is not None:
        ratio = f", {drafted.seconds / measured_s:.2f} of the measured time" if measured_s else ""
        lines.append(f"draft             {microseconds(drafted.seconds)} µs{ratio}")
    if limits.arithmetic_s is not None and limits.peak_flops:
        peak = f"{significant(limits.peak_flops / 1e9)} GFLOP/s in {limits.peak_name}"
        of_variant = "" if variant == DIRECT else f" of variant {variant}"
        operations = f"{significant(limits.flops / 1e6)} MFLOP{of_variant} at the peak of {peak}"
        lines.append(f"arithmetic limit  {microseconds(limits.arithmetic_s)} µs, {operations}")
    if limits.memory_s is not None and limits.memory_bytes_per_s:
        rate = f"{significant(limits.memory_bytes_per_s / 1e9)} GB/s"
        moved = f"{size(limits.compulsory_bytes)} from memory at {rate}"
        lines.append(f"memory limit      {microseconds(limits.memory_s)} µs, {moved}")
    return "\n".join(lines)


def _measured(limits: Limits) -> str:
    """The measured time as rates and as shares of the limits."""
    measured_s = limits.latency_s
    if measured_s is None:
        return "measured          no time"
    found = [f"{microseconds(measured_s)} µs"]
    if limits.flops:
        share = percent(limits.arithmetic_s, measured_s)
        found.append(f"{gflops(limits.flops, measured_s)} GFLOP/s ({share} of the peak)")
    if limits.memory_s is not None:
        rate = significant(limits.compulsory_bytes / measured_s / 1e9)
        found.append(f"{rate} GB/s ({percent(limits.memory_s, measured_s)} of memory's bandwidth)")
    return f"measured          {', '.join(found)}"


def draft_text(drafted: DraftedTime) -> str:
    """The parts of the drafted time, and the largest one."""
    parts = {part.name: part for part in (*drafted.resources, *drafted.further)}
    share = percent(parts[drafted.bound].share, 1.0)
    blocks = [f"The winner is bound by: {drafted.bound} ({share} of the draft)."]
    together = f"{microseconds(drafted.together_s)} µs"
    blocks.append(
        f"These parts happen at the same time. With their overlap they take {together}.\n"
        f"{_part_table([*drafted.resources, *drafted.included])}"
    )
    added = [part for part in drafted.further if part.seconds]
    if added:
        blocks.append(f"These parts are added.\n{_part_table(added)}")
    if len(drafted.stages) > 1:
        rows = [(s.stage, microseconds(s.seconds), s.largest) for s in drafted.stages]
        blocks.append(align_columns(_STAGES, rows))
    return "\n\n".join(blocks)


def _part_table(parts: Sequence[Part]) -> str:
    rows = [(p.name, microseconds(p.seconds), percent(p.share, 1.0)) for p in parts]
    return align_columns(_PARTS, rows)


def tile_text(stage: str, tile: RegisterTile) -> str:
    """The register tile in sentences."""
    wide = {axis: count for axis, count in tile.extents.items() if count > 1}
    extents = ", ".join(f"{axis} {count}" for axis, count in wide.items()) or "one element"
    registers = -(-tile.vector // tile.lanes)
    noun = "register" if registers == 1 else "registers"
    vector = f"{tile.vector} elements, {registers} {noun} of {tile.lanes}"
    lines = [f"Register tile of stage {stage}: {extents}.", f"vector        {vector}"]
    if tile.instruction:
        lines.append(f"instruction   {tile.instruction}")
    if tile.accumulators:
        lines.append(f"accumulators  {number(tile.accumulators)}")
        needs = f"{number(tile.accumulators)} accumulators, {number(tile.operands)} operands"
        needs += f", {number(tile.held)} reused operands" if tile.held else ""
        used = f"{number(tile.used)} of {tile.available} {tile.kind}: {needs}"
        lines.append(f"registers     {used}")
        lines.append(f"spills        {number(tile.spilled)} registers in each step")
    return "\n".join(lines)


def occupancy_text(stage: str, occupancy: Mapping[str, float]) -> str:
    """Figures of a kernel on a GPU."""
    figures = [(name, number(value)) for name, value in occupancy.items()]
    return align_columns((Column(f"kernel of {stage}", is_text=True), Column("figure")), figures)


def traffic_text(traffic: Sequence[LevelTraffic], limits: Limits) -> str:
    """Bytes between the levels."""
    rows = [
        (
            each.path,
            size(each.bytes),
            significant(each.compulsory),
            percent(each.bandwidth_share, 1.0),
        )
        for each in traffic
    ]
    least = size(limits.compulsory_bytes)
    head = f"Traffic of one run. Inputs and outputs, each once, have {least} (compulsory)."
    return f"{head}\n{align_columns(_TRAFFIC, rows)}"


def runner_up_text(other: RunnerUp | None, limits: Limits) -> str:
    """The next best program."""
    if other is None:
        return "Runner-up: no other program was measured."
    slower = ""
    if limits.latency_s:
        slower = f", {other.latency_s / limits.latency_s:.3f} times the winner's time"
    head = f"Runner-up: {microseconds(other.latency_s)} µs{slower}, sketch {other.sketch}"
    if other.drafted_s is not None:
        head += f", draft {microseconds(other.drafted_s)} µs"
    head += "."
    if limits.latency_s and other.latency_s < limits.latency_s:
        head += "\nA record is a single measurement; the winner is chosen in turns with others."
    rows = [(d.decision, _value(d.winner), _value(d.runner_up)) for d in other.differences]
    return f"{head}\n{align_columns(_DIFFERENCES, rows)}"


def _value(chosen: tuple[int, ...]) -> str:
    return " x ".join(map(str, chosen)) or "-"


def search_text(search: SearchSummary) -> str:
    """What was tried."""
    failed = failures(search.failures) or "none"
    lines = [f"Search: {search.trials} programs measured; failed: {failed}."]
    if search.best_trial is not None:
        lines.append(f"The fastest record is trial {search.best_trial}.")
    if search.last_gain is not None:
        gain = percent(search.last_gain, 1.0)
        lines.append(f"The last {search.last_trials} trials reduced the best time by {gain}.")
    if search.hosts:
        lines.append(f"Measured on: {', '.join(search.hosts)}.")
    rows = [
        (s.name, str(s.trials), str(s.failed), microseconds(s.best_s), s.structure)
        for s in search.sketches
    ]
    lines.append(align_columns(_SKETCHES, rows))
    if len(search.variants) > 1:
        variants = [(v.kind, str(v.trials), microseconds(v.best_s)) for v in search.variants]
        lines.append(f"\n{align_columns(_VARIANTS, variants)}")
    return "\n".join(lines)


def size(count: float) -> str:
    """Bytes with a unit."""
    unit, name = next((u, n) for u, n in _UNITS if count >= u or u == 1)
    return f"{significant(count / unit)} {name}"


def number(value: float) -> str:
    """A whole number as it is, another one with three digits."""
    return str(round(value)) if value == round(value) else significant(value)
