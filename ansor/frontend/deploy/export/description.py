"""The text that describes an exported network to the programs that run it.

The first line has the version of the format. Each further line begins with its kind:

    entry NAME                                  function of the virtual machine
    threads N                                   that the network was tuned for
    input DTYPE DIMENSIONS EXTENT... NAME       in the order of the call
    state DTYPE DIMENSIONS EXTENT... NAME       what a call takes after the inputs and returns last
    weight DTYPE DIMENSIONS EXTENT... NAME      what a call takes after the states
    output DTYPE DIMENSIONS EXTENT... NAME      in the order of the result

The arrays of the weights, and after them those of the states, lie in one file. Each begins at a
multiple of `ALIGNMENT_BYTES`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansor.frontend.calling import TENSOR, Calling, Structure
from ansor.frontend.deploy.detached_weights import Array
from ansor.frontend.signature import InputSpec

FORMAT = 1


def description(
    entry: str,
    threads: int,
    inputs: Sequence[InputSpec],
    states: Sequence[InputSpec],
    weights: Mapping[str, Array],
    outputs: Sequence[InputSpec],
) -> str:
    """The text for a network."""
    arrays = [InputSpec(name, array.shape, str(array.dtype)) for name, array in weights.items()]
    kinds = {"input": inputs, "state": states, "weight": arrays, "output": outputs}
    lines = [f"ansor-export {FORMAT}", f"entry {entry}", f"threads {threads}"]
    lines += [_line(kind, spec) for kind, specs in kinds.items() for spec in specs]
    return "\n".join(lines) + "\n"


def _line(kind: str, spec: InputSpec) -> str:
    name = " ".join(spec.name.split())  # a name with a line break would end the line
    words: list[Any] = [kind, spec.dtype, len(spec.shape), *spec.shape, name]
    return " ".join(map(str, words))


def named_outputs(outputs: Sequence[InputSpec], calling: Calling | None) -> list[InputSpec]:
    """The outputs by their names in the result of the original model, or else by their numbers."""
    names = dict(_names(calling.result, "")) if calling is not None else {}
    return [
        InputSpec(names.get(number) or f"output{number}", spec.shape, spec.dtype)
        for number, spec in enumerate(outputs)
    ]


def _names(structure: Structure, path: str) -> Iterator[tuple[int, str]]:
    """Positions of tensors, and the names that lead to them."""
    if structure.kind == TENSOR:
        yield structure.position, path
    names: Sequence[Any] = structure.names or range(len(structure.parts))
    for name, part in zip(names, structure.parts, strict=True):
        inner = f"{path}.{name}" if path else str(name)
        yield from _names(part, inner if structure.names or path else f"output{name}")
