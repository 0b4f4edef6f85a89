"""`Choices`: the seam between a schedule that a user wrote and the decisions of a sketch."""

from __future__ import annotations

from dataclasses import dataclass, field

from ansor.errors import ArgumentError, LoweringError
from ansor.program.decision import Decision
from ansor.program.hand_schedule import Values


@dataclass
class Choices:
    """The values that one run of a schedule reads, by name.

    Attributes:
        values: the chosen row of each decision's table; without one, the first row is taken.
        is_complete: whether `values` has all decisions that the first run met.
        decisions: the decisions of this run so far.
    """

    values: Values = field(default_factory=dict)
    is_complete: bool = False
    decisions: dict[str, Decision] = field(default_factory=dict)

    def choose(self, decision: Decision) -> tuple[int, ...]:
        """The chosen row of a decision's table.

        Where the table depends on other decisions, the chosen row may be absent from it. The
        nearest row is taken then.

        Raises:
            ArgumentError: a decision without choices, or two decisions of one name.
            LoweringError: the first run did not meet the decision.
        """
        name = decision.name
        if name in self.decisions:
            raise ArgumentError("name", name, "two knobs have this name; give each one of its own")
        if not decision.size:
            raise ArgumentError("name", name, "the knob has no candidates; give at least one")
        self.decisions[name] = decision
        wanted = self._wanted(decision)
        number = decision.find(wanted)
        number = decision.nearest(wanted) if number is None else number
        if number is None:
            raise LoweringError(
                f"knob {name!r}: its choices have another length than in the first run of the "
                "schedule; use another name for each length"
            )
        return tuple(int(value) for value in decision.table[number])

    def _wanted(self, decision: Decision) -> tuple[int, ...]:
        name = decision.name
        if name in self.values:
            return self.values[name]
        if self.is_complete:
            raise LoweringError(
                f"knob {name!r} appears only for some values of other knobs; let the schedule read "
                "it in every run"
            )
        return tuple(int(value) for value in decision.table[0])
