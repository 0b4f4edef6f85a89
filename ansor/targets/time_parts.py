"""`TimeParts`: the parts of the time that a draft estimates for a stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ansor.features.loop_tables import Floats


@dataclass(frozen=True, eq=False)
class TimeParts:
    """The parts of a stage's time in P programs; each array is `[P]`, in seconds.

    The time of the stage is `together` plus the sum of `further`.

    Attributes:
        resources: by name, seconds for which the stage occupies a resource. Resources work at the
            same time.
        together: seconds of all resources with their overlap. It is at least the largest of them,
            unless the stage runs beside another one.
        further: by name, seconds in which no other part of the stage makes progress.
        included: by name, seconds that are a part of one resource.
    """

    resources: Mapping[str, Floats]
    together: Floats
    further: Mapping[str, Floats] = field(default_factory=dict)
    included: Mapping[str, Floats] = field(default_factory=dict)
