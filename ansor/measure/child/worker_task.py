"""A task in the worker: arguments for timing and for checking, and the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import tvm
from tvm import tirx

from ansor.config import MeasureConfig
from ansor.dag.from_tir.read import written_params
from ansor.lowering.reference import Reference, in_float64, reference_of
from ansor.measure.child.neighbours import Neighbours
from ansor.measure.child.placement import as_allocated
from ansor.measure.function_arguments import (
    Rows,
    arguments_for,
    has_nan,
    in_rows,
    num_bytes,
    on_device,
    on_host,
    random_arrays,
    relative_difference,
)
from ansor.measure.protocol import DefineOriginal
from ansor.program.hand_schedule import HandSchedule
from ansor.targets.build import ENTRY, compile_function
from ansor.targets.registry import backend_of, host_text


@dataclass
class WorkerTask:
    """A task; its arguments and its reference are made at first use and kept."""

    func: tirx.PrimFunc
    target: str
    config: MeasureConfig
    constants: tuple[int, ...] = ()
    in_network: bool = False
    original: DefineOriginal | None = None
    last_use: int = 0
    by_hand: HandSchedule | None = None
    _placed: dict[int, tuple[Any, Any]] | None = field(default=None, init=False)

    @cached_property
    def device(self) -> Any:
        """The device of the kernels."""
        return tvm.runtime.Device(tvm.target.Target(self.target).get_target_device_type(), 0)

    @property
    def held_bytes(self) -> int:
        """Approximate bytes of the kept arrays; references are float64 and include inputs."""
        held = self.__dict__
        sets = len(held.get("layouts", ())) + (self._placed is not None)
        sets += 3 * ("reference" in held) + 2 * ("narrow_reference" in held)
        return sets * sum(map(num_bytes, self.func.params))

    def forget(self) -> None:
        """Frees the arrays. They are made again at the next use."""
        for name in ("layouts", "reference", "narrow_reference"):
            self.__dict__.pop(name, None)
        self._placed = None

    @cached_property
    def layouts(self) -> list[list[Any]]:
        """Arguments for timing, on a CPU in several places; kernels overwrite the outputs."""
        arrays = random_arrays(self.func, self.config, low=-1.0)
        places = self.config.layout_bytes // max(1, sum(array.nbytes for array in arrays))
        here = backend_of(self.target).execution.on_host and not self.in_network
        if not here:
            return [on_device(arrays, self.device)]
        return [as_allocated(arrays) for _ in range(max(1, min(self.config.repeats, places)))]

    @property
    def arguments(self) -> list[Any]:
        """The first of `layouts`."""
        return self.layouts[0]

    def among(self, neighbours: Neighbours) -> tuple[list[Any], Callable[[], None]]:
        """Arguments for timing as in a network, without its weights, and the imitation of the other
        functions."""
        if self._placed is None:
            drawn = random_arrays(self.func, self.config, low=-1.0)
            self._placed = {
                i: neighbours.placed(a) for i, a in enumerate(drawn) if i not in self.constants
            }
        placed = self._placed
        tensors = [placed[i][0] if i in placed else None for i in range(len(self.func.params))]
        return tensors, partial(neighbours.visit, [words for _, words in placed.values()])

    @cached_property
    def reference(self) -> tuple[list[Any], list[Any]]:
        """Arguments for checking, and the results of the definition for them in float64.

        Only some rows of slow outputs are computed; the others are zeros. For a variant, the
        definition is the original's.
        """
        return self._computed(self._reference.func)

    @cached_property
    def narrow_reference(self) -> tuple[list[Any], list[Any]]:
        """The reference in the dtypes of the definition."""
        return self._computed(reference_of(self._defined, self.config.verify_iterations).func)

    def _computed(self, func: tirx.PrimFunc) -> tuple[list[Any], list[Any]]:
        module, rows = compile_function(func, host_text(self.target), exact=True), self.rows
        for low in (-1.0, 0.0):  # roots and logarithms of negative numbers are NaN
            arrays = random_arrays(self._defined, self.config, low, rows)
            results = run(module, arguments_for(func.params, arrays, tvm.cpu(), self.written, rows))
            if not any(has_nan(in_rows(results[i], rows.get(i))) for i in self.written):
                break
        return self._converted(arrays), self._converted(results)

    def _converted(self, arrays: list[Any]) -> list[Any]:
        """Arguments of the function, converted from those of its original."""
        out = list(arrays)
        converted = None if self.original is None else self.original.converted
        if converted is not None:
            out[converted.position] = converted.convert(arrays[converted.position])
        return out

    @cached_property
    def written(self) -> frozenset[int]:
        """Positions of the parameters that are results."""
        return written_params(self._defined)

    @property
    def rows(self) -> Mapping[int, Rows]:
        """The checked rows of partly checked results, by position."""
        return self._reference.rows

    @cached_property
    def _defined(self) -> tirx.PrimFunc:
        return self.func if self.original is None else tvm.ir.load_json(self.original.func_json)

    @cached_property
    def _reference(self) -> Reference:
        return reference_of(in_float64(self._defined), self.config.verify_iterations)

    def difference(self, actual: list[Any], positions: list[int]) -> float:
        """Difference between arguments after a program's run and after the reference's.

        If a definition rounds to integers or compares, float32 may take another side than float64.
        A result that is right in its own dtypes is therefore right.

        Args:
            actual: every argument after the run.
            positions: of the arguments to be compared.
        """
        found = self._difference(actual, positions, self.reference[1])
        if found > self.config.verify_rtol:
            found = min(found, self._difference(actual, positions, self.narrow_reference[1]))
        return found

    def _difference(self, actual: list[Any], positions: list[int], expected: list[Any]) -> float:
        pairs = [[in_rows(x[i], self.rows.get(i)) for i in positions] for x in (actual, expected)]
        return relative_difference(*pairs)


def run(module: Any, arguments: list[Any]) -> list[Any]:
    """Every argument after one run, as NumPy arrays."""
    module[ENTRY](*arguments)
    return [on_host(tensor) for tensor in arguments]
