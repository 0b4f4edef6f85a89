"""The tables of `benchmarks.measured` about search policies, and OpEvo's claim."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.measured_markdown import NONE, digits, markdown, number
from benchmarks.measured_results import Entry, group, machine, rows_of

_OPEVO = "opevo"
_STUDY = (_OPEVO, "gbfs", "na2c", "ga", "xgb-sa")  # that OpEvo's study compares


def search_policies(runs: Sequence[Entry]) -> str:
    """For each run the policies over all operators, OpEvo's claim, and each operator."""
    return "\n\n".join(part for run in runs for part in _parts(run))


def _parts(run: Entry) -> list[str]:
    about = run["environment"]
    is_surrogate = about["device"] == "surrogate"
    kind = "on surrogates" if is_surrogate else "with real measurements"
    parts = [f"### Searches {kind}", f"{machine([run])}, {about['seeds']} seeds"]
    parts += [_overall(run["overall"]), claim(run["overall"])]
    if about.get("plot"):
        parts.append(f"![Latency by trial and by second]({about['plot']})")
    parts.append(_operators(run))
    if is_surrogate:
        parts.append(_surrogates(about["surrogates"]))
    return parts


def _overall(rows: Sequence[Entry]) -> str:
    """A line per policy, with columns for each number of trials."""
    counts = list(dict.fromkeys(row["trials"] for row in rows))
    header = [
        "policy",
        *(f"ratio at {n}" for n in counts),
        *(f"spread at {n}" for n in counts),
        *(f"near at {n}" for n in counts),
        "near after",
    ]
    cells = []
    for policy, own in group(rows, lambda row: row["policy"]).items():
        cells.append(
            (
                policy,
                *(number(row["ratio"], ".2f") for row in own),
                *(number(row["spread"], ".1%") for row in own),
                *(number(row["reached"], ".0%") for row in own),
                number(own[-1]["trials_to_near"], ".0f"),
            )
        )
    return markdown(header, cells, (0,))


def _operators(run: Entry) -> str:
    """A line per operator and policy: median and quartiles after each number of trials."""
    rows = rows_of([run])
    counts = list(dict.fromkeys(row["trials"] for row in rows))
    header = ["operator", "policy", *(f"µs at {n}" for n in counts), f"seconds of {counts[-1]}"]
    groups = group(rows, lambda row: (row["op"], row["policy"]))
    cells = [
        (op, policy, *map(_latency, own), digits(own[-1]["seconds"]))
        for (op, policy), own in groups.items()
    ]
    return markdown(header, cells, (0, 1))


def _latency(row: Entry) -> str:
    if row["median_us"] is None:
        return NONE
    return f"{digits(row['median_us'])} ({digits(row['lower_us'])}–{digits(row['upper_us'])})"


def _surrogates(rows: Sequence[Entry]) -> str:
    """How well the surrogates predict held-out programs."""
    header = (
        *("operator", "programs", "failures", "Spearman", "fastest quarter"),
        *("error", "fastest quarter", "best of 10"),
    )
    cells = [
        (
            *(row["op"], str(row["programs"]), str(row["failures"])),
            *(f"{row[name]:.3f}" for name in ("spearman", "spearman_fast")),
            *(f"{row[name]:.1%}" for name in ("error", "error_fast")),
            f"{row['best_of_10']:.2f}",
        )
        for row in rows
    ]
    text = "The surrogates on programs that their trees had not seen:"
    return f"{text}\n\n{markdown(header, cells, (0,))}"


def claim(rows: Sequence[Entry]) -> str:
    """Whether OpEvo needs the fewest trials and has the least variance of the policies that its
    study compares (arXiv 2006.05664, section 5)."""
    last = {row["policy"]: row for row in rows if row["trials"] == rows[-1]["trials"]}
    published = {name: last[name] for name in _STUDY if name in last}
    if _OPEVO not in published or len(published) < 2:
        return "OpEvo's claim was not tested."
    opevo, count = published[_OPEVO], rows[-1]["trials"]
    soonest = min(published, key=lambda name: _trials(published[name]))
    steadiest = min(published, key=lambda name: _spread(published[name]))
    return (
        "OpEvo's study claims the fewest trials and the lowest variance. "
        f"Here {opevo['reached']:.0%} of OpEvo's searches come within 5 % of the best latency of "
        f"all searches. {_half(opevo, count)} "
        f"Of the policies of the study, `{soonest}` needs the fewest trials: "
        f"{published[soonest]['reached']:.0%} come as near. {_half(published[soonest], count)} "
        f"The quartiles of OpEvo's latencies are {number(opevo['spread'], '.1%')} apart, and the "
        f"least distance is {number(published[steadiest]['spread'], '.1%')} (`{steadiest}`). "
        f"The claim of the fewest trials is **{_judged(soonest)}**, and the claim of the lowest "
        f"variance is **{_judged(steadiest)}**."
    )


def _judged(first: str) -> str:
    return "confirmed" if first == _OPEVO else "refuted"


def _trials(row: Entry) -> tuple[float, float]:
    """Sorts by the trials that half of the searches need, and then by the share that succeeds."""
    needed = row["trials_to_near"]
    return math.inf if needed is None else needed, -row["reached"]


def _spread(row: Entry) -> float:
    return math.inf if row["spread"] is None else float(row["spread"])


def _half(row: Entry, trials: int) -> str:
    needed = row["trials_to_near"]
    count = f"more than {trials}" if needed is None else f"{needed:.0f}"
    return f"Half of its searches need {count} trials for that."
