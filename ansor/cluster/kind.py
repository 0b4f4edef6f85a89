"""The choice of equal nodes that measure together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ansor.cluster.nodes import NodeReport


def why_not(report: NodeReport, here: NodeReport) -> str:
    """Why a node may not measure; "" if it may.

    Args:
        report: of the node.
        here: of this machine, whose packages made the candidates.
    """
    if report.why_not or report.versions == here.versions:
        return report.why_not
    return f"it has {_text(report)}, this machine has {_text(here)}"


def chosen_kind(reports: Sequence[NodeReport], here: NodeReport) -> NodeReport:
    """A report of the kind that measures: this machine's kind, or else the most frequent one."""
    count = Counter(report.fingerprint for report in reports)
    kind = here.fingerprint
    if kind not in count:
        kind = min(count, key=lambda each: (-count[each], str(each)))
    return next(report for report in reports if report.fingerprint == kind)


def _text(report: NodeReport) -> str:
    return ", ".join(" ".join(pair) for pair in report.versions)
