"""`Schedule`: TVM's schedule, whose samples are decisions of a search (after MetaSchedule)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import tvm
from tvm import s_tir, tirx

from ansor.errors import ArgumentError, TemplateMismatchError
from ansor.program.decision import Decision, factorisations
from ansor.templates.choices import Choices

_INLINE, _ROOT = -2, -1  # TVM's numbers of places that are no loops


class Schedule(s_tir.Schedule):  # type: ignore[misc]
    """A `tvm.s_tir.Schedule` of one function.

    The methods `sample_perfect_tile`, `sample_categorical` and `sample_compute_location` read a
    decision: the first choice in the first run, the chosen one in later runs. With the argument
    `decision` they are TVM's, and nothing is searched. All other methods are TVM's, but for
    `get_sblock`.

    Args:
        func: the definition.
        choices: the values of this run; without any, each sample takes its first choice.
    """

    __slots__ = ("__dict__",)

    def __init__(self, func: tirx.PrimFunc, choices: Choices | None = None) -> None:
        # Kept alive on purpose: TVM changes a module in place that only the schedule holds.
        self._module = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
        super().__init__(self._module, error_render_level="fast")
        self._choices = Choices() if choices is None else choices
        self._counts: Counter[str] = Counter()

    def sample_perfect_tile(
        self,
        loop: Any,
        n: int,
        max_innermost_factor: int = 16,
        decision: Sequence[int] | None = None,
        *,
        name: str = "",
    ) -> list[Any]:
        """Factors of a loop's extent, outermost first.

        Args:
            loop: its extent is a constant.
            n: number of factors.
            max_innermost_factor: the largest innermost factor.
            decision: fixed factors.
            name: of the decision, by default "tile0", "tile1" and so on.
        """
        if decision is None:
            table = factorisations(int(self.get(loop).extent), n)[::-1]
            table = np.ascontiguousarray(table[table[:, -1] <= max_innermost_factor])
            decision = self._choices.choose(self._decision("tile", name, table))
        return list(super().sample_perfect_tile(loop, n, max_innermost_factor, list(decision)))

    def sample_categorical(
        self,
        candidates: Sequence[int],
        probs: Sequence[float] | None = None,
        decision: int | None = None,
        *,
        name: str = "",
    ) -> Any:
        """One of several integers.

        Args:
            candidates: the integers.
            probs: as in MetaSchedule, for traces. The search does not read them.
            decision: a fixed position.
            name: of the decision, by default "category0", "category1" and so on.

        Raises:
            ArgumentError: there are no candidates, or not as many probabilities.
        """
        if decision is None:
            numbers = np.arange(len(candidates), dtype=np.int32)[:, None]
            (decision,) = self._choices.choose(self._decision("category", name, numbers))
        given = [1 / len(candidates)] * len(candidates) if probs is None else list(probs)
        if len(given) != len(candidates):
            raise ArgumentError("probs", probs, f"give {len(candidates)} probabilities")
        return super().sample_categorical(list(candidates), given, decision)

    def sample_compute_location(
        self, block: Any, decision: int | None = None, *, name: str = ""
    ) -> Any:
        """A loop of a consumer, the root or the place of an inlined block, for `compute_at`.

        Args:
            block: to be computed there.
            decision: a fixed place, by TVM's number.
            name: of the decision, by default "location0", "location1" and so on.
        """
        if decision is None:
            places = self._places(block)
            table = np.asarray(places, dtype=np.int32)[:, None] - _INLINE
            (chosen,) = self._choices.choose(self._decision("location", name, table))
            decision = chosen + _INLINE
        return super().sample_compute_location(block, decision)

    def get_sblock(self, name: str, func_name: str | None = None) -> Any:
        """A block by its name.

        Args:
            name: of the block, such as that of a stage.
            func_name: of the function; a schedule of a task has only one.

        Raises:
            TemplateMismatchError: there is no such block, or several.
        """
        try:
            return super().get_sblock(name, func_name)
        except RuntimeError as error:
            root = super().get_sblock("root", func_name)
            blocks = [self.get(block) for block in self.get_child_blocks(root)]
            known = ", ".join(str(block.name_hint) for block in blocks)
            raise TemplateMismatchError(
                f"no block {name!r}", f"name one of the blocks: {known}"
            ) from error

    def _decision(self, kind: str, name: str, table: Any) -> Decision:
        if not name:
            name = f"{kind}{self._counts[kind]}"
            self._counts[kind] += 1
        return Decision(name, name, table)

    def _places(self, block: Any) -> list[int]:
        """TVM's numbers of the possible places, the root first.

        TVM takes the next smaller place for a number that is none, and notes it in its trace.
        """
        consumers = [len(self.get_loops(consumer)) for consumer in self.get_consumers(block)]
        found = {_ROOT: None}
        for number in (_INLINE, *range(max(consumers, default=0))):
            copy = self.copy()
            s_tir.Schedule.sample_compute_location(copy, block, number)
            found[int(copy.trace.decisions[copy.trace.insts[-1]])] = None
        return list(found)
