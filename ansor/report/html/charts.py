"""The plots of a report as Vega-Lite specifications; the page gives them colours and width."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import altair as alt

from ansor.report.document.comparison_data import ComparisonData, SystemTimes
from ansor.report.document.document import CurvePoint, Document, FunctionRow, Prediction
from ansor.report.document.search_data import MachineFigures
from ansor.report.formatting import milliseconds

Spec = dict[str, Any]
Row = dict[str, Any]

_BAR = 22  # pixels of a bar with its gap
_HEIGHT = 320  # pixels of the other plots
_MOST_BARS = 24
MOST_POINTS = 1000  # of a plot; a browser draws as many without a delay
_LABEL = 300  # pixels of the name of a function


def charts(document: Document) -> dict[str, Spec]:
    """The plots for which the document has data, by the names of their places in the page."""
    found: dict[str, Spec] = {}
    if document.comparison is not None:
        found["comparison"] = _comparison(document.comparison)
    if any(row.latency_s for row in document.functions):
        found["functions"] = _functions(document.functions)
    points = roofline_points(document.functions)
    if document.machine is not None and points:
        found["roofline"] = _roofline(points, document.machine)
    if document.network_curve:
        found["network_curve"] = _network_curve(document.network_curve)
    if document.function_curves:
        found["function_curves"] = _function_curves(document.function_curves)
    if document.predictions:
        found["predictions"] = _predictions(document.predictions)
    if document.failures:
        found["failures"] = _failures(document)
    return found


def _data(rows: Sequence[Row]) -> alt.Data:
    return alt.Data(values=list(rows))


def _spec(chart: Any, height: int) -> Spec:
    sized = chart.properties(width="container", height=height)
    return dict(sized.to_dict())


def _comparison(comparison: ComparisonData) -> Spec:
    shown = [each for each in comparison.systems if each.system != comparison.untuned]
    rows = [_system(each, comparison) for each in shown]
    base = alt.Chart(_data(rows)).encode(
        y=alt.Y("system:N", sort=None, title=None, axis=alt.Axis(labelLimit=_LABEL))
    )
    bars = base.mark_bar(height=_BAR - 8).encode(
        x=alt.X("ms:Q", title="latency in ms, median", scale=alt.Scale(zero=True)),
        color=alt.Color("kind:N", scale=alt.Scale(domain=["tuned", "other"]), legend=None),
        tooltip=["system:N", "latency:N", "rounds:N", "ratio:N", "precision:N"],
    )
    spread = base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q")
    labels = base.mark_text(align="left", dx=8).encode(x="high:Q", text="latency:N")
    return _spec(bars + spread + labels, _BAR * max(len(rows), 2))


def _system(times: SystemTimes, comparison: ComparisonData) -> Row:
    low, high = min(times.rounds_s), max(times.rounds_s)
    return {
        "system": times.system,
        "ms": times.latency_s * 1e3,
        "low": low * 1e3,
        "high": max(high, times.latency_s) * 1e3,
        "kind": "tuned" if times.system == comparison.tuned else "other",
        "latency": f"{milliseconds(times.latency_s)} ms",
        "rounds": f"{milliseconds(low)} to {milliseconds(high)} ms",
        "ratio": "-" if times.ratio is None else f"{times.ratio:.2f} × the tuned network",
        "precision": times.precision,
    }


def _functions(rows: Sequence[FunctionRow]) -> Spec:
    shown = [row for row in rows if row.latency_s][:_MOST_BARS]
    values = [_function(row) for row in shown]
    chart = (
        alt.Chart(_data(values))
        .mark_bar(height=_BAR - 8)
        .encode(
            y=alt.Y("function:N", sort=None, title=None, axis=alt.Axis(labelLimit=_LABEL)),
            x=alt.X("us:Q", title="µs, all calls in one run"),
            tooltip=["function:N", "time:N", "calls:N", "share:N", "peak:N"],
        )
    )
    if any(row.peak_share for row in shown):
        colour = alt.Color(
            "of_peak:Q",
            title="of peak",
            scale=alt.Scale(domain=[0, 1], clamp=True),
            legend=alt.Legend(format=".0%", orient="bottom", gradientLength=200),
        )
        chart = chart.encode(color=colour)
    return _spec(chart, _BAR * max(len(values), 2))


def _function(row: FunctionRow) -> Row:
    seconds = row.total_s or row.latency_s or 0.0
    return {
        "function": row.name,
        "us": seconds * 1e6,
        "of_peak": row.peak_share,
        "time": f"{seconds * 1e6:.4g} µs",
        "calls": "-" if row.calls is None else str(row.calls),
        "share": "-" if row.share is None else f"{row.share:.1%}",
        "peak": "-" if row.peak_share is None else f"{row.peak_share:.0%}",
    }


def roofline_points(rows: Sequence[FunctionRow]) -> list[FunctionRow]:
    """The functions that have operations, bytes and a latency."""
    return [row for row in rows if row.rate and row.intensity]


def _roofline(rows: Sequence[FunctionRow], machine: MachineFigures) -> Spec:
    values = [
        {
            **_function(row),
            "intensity": row.intensity,
            "gflops": (row.rate or 0.0) / 1e9,
            "part": row.share or 0.0,
        }
        for row in rows
    ]
    x = alt.X("intensity:Q", title="operations per byte of arguments and results").scale(type="log")
    y = alt.Y("gflops:Q", title="GFLOP/s").scale(type="log")
    points = (
        alt.Chart(_data(values))
        .mark_point(filled=True, opacity=0.75)
        .encode(
            x=x,
            y=y,
            size=alt.Size("part:Q", legend=None, scale=alt.Scale(range=[30, 500])),
            tooltip=["function:N", "time:N", "share:N", "peak:N"],
        )
    )
    roofs = _roofs(values, machine)
    lines = [_line(roof, "intensity:Q", "gflops:Q") for roof in roofs]
    names = (
        alt.Chart(_data([roof[-1] for roof in roofs]))
        .mark_text(align="right", baseline="bottom", dx=-4, dy=-4)
        .encode(x="intensity:Q", y="gflops:Q", text="limit:N")
    )
    return _spec(alt.layer(*lines, names, points), _HEIGHT)


def _roofs(values: Sequence[Row], machine: MachineFigures) -> list[list[Row]]:
    """The limits of the memory and of the units, from below the first to above the last point."""
    first = min(row["intensity"] for row in values) / 2
    last = max(row["intensity"] for row in values) * 2
    roofs = []
    if machine.peak_flops is not None:
        peak = machine.peak_flops / 1e9
        limit = {"gflops": peak, "limit": f"{peak:.0f} GFLOP/s"}
        roofs.append([{"intensity": x, **limit} for x in (first, last)])
    if machine.memory_bandwidth is not None:
        gbytes = machine.memory_bandwidth / 1e9
        end = last if machine.peak_flops is None else machine.peak_flops / 1e9 / gbytes
        limit = {"limit": f"{gbytes:.1f} GB/s"}
        ends = (first, max(first, min(last, end)))
        roofs.append([{"intensity": x, "gflops": gbytes * x, **limit} for x in ends])
    return roofs


def _line(rows: Sequence[Row], x: str, y: str) -> Any:
    dashed = alt.Chart(_data(rows)).mark_line(strokeDash=[6, 4], strokeWidth=1.5, clip=True)
    return dashed.encode(x=x, y=y)


def _axis_choice(name: str) -> tuple[Any, Callable[[Any], Any]]:
    """A choice between programs and seconds, and what puts it into a plot."""
    choice = alt.param(
        name=name,
        value="programs",
        bind=alt.binding_radio(options=["programs", "seconds"], name="against "),
    )
    progress = f"{name} == 'programs' ? datum.trials : datum.elapsed"
    return choice, lambda chart: chart.transform_calculate(progress=progress)


def _curve_rows(points: Sequence[CurvePoint]) -> list[Row]:
    return [
        {"trials": p.trials, "elapsed": round(p.elapsed_s, 2), "ms": p.best_s * 1e3} for p in points
    ]


def _network_curve(points: Sequence[CurvePoint]) -> Spec:
    choice, along = _axis_choice("network_axis")
    chart = (
        alt.Chart(_data(_curve_rows(points)))
        .mark_line(interpolate="step-after", point=alt.OverlayMarkDef(size=24))
        .encode(
            x=alt.X("progress:Q", title="programs or seconds", scale=alt.Scale(zero=False)),
            y=alt.Y("ms:Q", title="ms, sum of the functions", scale=alt.Scale(zero=False)),
            tooltip=[
                alt.Tooltip("ms:Q", title="ms", format=".4g"),
                alt.Tooltip("trials:Q", title="programs"),
                alt.Tooltip("elapsed:Q", title="seconds"),
            ],
        )
        .add_params(choice)
    )
    return _spec(along(chart), _HEIGHT)


def _function_curves(curves: Mapping[str, Sequence[CurvePoint]]) -> Spec:
    rows = [
        {"function": name, "slower": row["ms"] / (points[-1].best_s * 1e3), **row}
        for name, points in curves.items()
        for row in _curve_rows(points)
    ]
    choice, along = _axis_choice("function_axis")
    near = alt.selection_point(
        name="near", on="pointerover", nearest=True, fields=["function"], empty=False
    )
    base = alt.Chart(_data(rows)).encode(
        x=alt.X("progress:Q", title="programs of the function, or seconds of the run"),
        y=alt.Y("slower:Q", title="best so far ÷ best at the end").scale(type="log"),
        detail="function:N",
    )
    lines = base.mark_line(interpolate="step-after").encode(
        opacity=alt.condition(near, alt.value(1.0), alt.value(0.35)),
        strokeWidth=alt.condition(near, alt.value(3), alt.value(1.25)),
    )
    points = base.mark_point(filled=True, size=24, opacity=0.5).encode(
        tooltip=[
            "function:N",
            alt.Tooltip("ms:Q", title="ms", format=".4g"),
            alt.Tooltip("trials:Q", title="programs"),
            alt.Tooltip("elapsed:Q", title="seconds"),
        ]
    )
    layered = alt.layer(along(lines), along(points.add_params(near))).add_params(choice)
    return _spec(layered, _HEIGHT)


def _predictions(predictions: Sequence[Prediction]) -> Spec:
    step = max(1, -(-len(predictions) // MOST_POINTS))
    values: list[Row] = [
        {"function": p.function, "expected": p.expected_s * 1e6, "measured": p.measured_s * 1e6}
        for p in predictions[::step]
    ]
    times = [time for row in values for time in (row["expected"], row["measured"])]
    ends = [{"expected": time, "measured": time} for time in (min(times), max(times))]
    points = (
        alt.Chart(_data(values))
        .mark_point(filled=True, size=30, opacity=0.55)
        .encode(
            x=alt.X("expected:Q", title="expected µs").scale(type="log"),
            y=alt.Y("measured:Q", title="measured µs").scale(type="log"),
            tooltip=[
                "function:N",
                alt.Tooltip("expected:Q", format=".4g", title="expected µs"),
                alt.Tooltip("measured:Q", format=".4g", title="measured µs"),
            ],
        )
    )
    drawn = alt.layer(_line(ends, "expected:Q", "measured:Q"), points)
    if step > 1:
        drawn = drawn.properties(title=f"{len(values)} of {len(predictions)} programs")
    return _spec(drawn, _HEIGHT)


def _failures(document: Document) -> Spec:
    counts = Counter[str]()
    for failure in document.failures:
        counts[failure.kind] += failure.count
    rows = [{"kind": kind, "programs": count} for kind, count in counts.most_common()]
    base = alt.Chart(_data(rows)).encode(
        y=alt.Y("kind:N", sort=None, title=None),
        x=alt.X("programs:Q", title="failed programs", axis=alt.Axis(tickMinStep=1)),
        tooltip=["kind:N", "programs:Q"],
    )
    labels = base.mark_text(align="left", dx=6).encode(text="programs:Q")
    return _spec(base.mark_bar(height=_BAR - 8) + labels, _BAR * max(len(rows), 2))
