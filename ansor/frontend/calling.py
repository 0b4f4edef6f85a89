"""The form of a network's calls: nested, optional and keyword arguments; nested and named results.

A compiled network takes and returns sequences of tensors. A `Calling` maps the arguments of the
original model to the network's inputs, and the network's outputs to the original's results. It is
plain data, which is saved with the network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ansor.errors import ArgumentError

TENSOR, CONSTANT, TUPLE, LIST, NAMED = "tensor", "constant", "tuple", "list", "named"


@dataclass(frozen=True)
class Structure:
    """A value made of tensors.

    Attributes:
        kind: `TENSOR`, `CONSTANT`, `TUPLE`, `LIST` or `NAMED` (a dictionary or a dataclass).
        position: of a tensor, in the row of tensors.
        value: of a constant.
        names: of the parts of a named value.
        parts: of a tuple, a list or a named value.
    """

    kind: str
    position: int = -1
    value: Any = None
    names: tuple[str, ...] = ()
    parts: tuple[Structure, ...] = ()

    def positions(self) -> Iterator[int]:
        """Positions of all tensors in the value, in order."""
        if self.kind == TENSOR:
            yield self.position
        for part in self.parts:
            yield from part.positions()


@dataclass(frozen=True)
class Calling:
    """The form of a network's calls.

    Attributes:
        parameters: the arguments by name, in the order of the original's parameters.
        num_tensors: number of tensors in all arguments.
        result: structure of the result.
    """

    parameters: Mapping[str, Structure] = field(default_factory=dict)
    num_tensors: int = 0
    result: Structure = field(default_factory=lambda: Structure(TENSOR, 0))

    def tensors(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The network's inputs in order.

        The arguments are those of the original model, or a sequence of tensors.

        Raises:
            ArgumentError: wrong number, name or structure of arguments.
        """
        if not kwargs and len(args) == self.num_tensors and not any(map(_is_nested, args)):
            return list(args)
        bound = self._bound(args, kwargs)
        found: dict[int, Any] = {}
        for name, structure in self.parameters.items():
            _collect(name, structure, bound.get(name), found, given=name in bound)
        return [found[position] for position in range(self.num_tensors)]

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        names = list(self.parameters)
        known = ", ".join(names)
        if len(args) > len(names):
            raise ArgumentError("inputs", len(args), f"give fewer: the network takes {known}")
        bound = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name not in self.parameters or name in bound:
                raise ArgumentError(name, type(value).__name__, f"give each once: {known}")
            bound[name] = value
        return bound

    def results(self, tensors: Sequence[Any]) -> Any:
        """The result in the original model's structure, from the network's outputs."""
        return _built(self.result, tensors)


class NamedOutputs(tuple[Any, ...]):
    """The outputs of a model that returns a dictionary or a dataclass.

    It is the tuple of the tensors, in order. Each part of the original result is also an item and
    an attribute by its name: ``outputs["logits"]``, ``outputs.logits``.
    """

    _parts: Mapping[str, Any]

    def __new__(cls, parts: Mapping[str, Any], tensors: Sequence[Any]) -> NamedOutputs:
        made = super().__new__(cls, tensors)
        made._parts = dict(parts)
        return made

    def __getitem__(self, key: Any) -> Any:
        return self._parts[key] if isinstance(key, str) else super().__getitem__(key)

    def __getattribute__(self, name: str) -> Any:
        # Outputs come before a tuple's methods: one may be called "count" or "index".
        parts = super().__getattribute__("__dict__").get("_parts", {})
        return parts[name] if name in parts else super().__getattribute__(name)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no output {name!r}; there are {', '.join(self._parts)}")

    def keys(self) -> list[str]:
        """Names of the parts."""
        return list(self._parts)


def flat_calling(names: Sequence[str], num_outputs: int | None) -> Calling:
    """The form of calls with plain tensors; `num_outputs` is None for a bare tensor."""
    parameters = {name: Structure(TENSOR, place) for place, name in enumerate(names)}
    if num_outputs is None:
        return Calling(parameters, len(names))
    parts = tuple(Structure(TENSOR, place) for place in range(num_outputs))
    return Calling(parameters, len(names), Structure(TUPLE, parts=parts))


def calling_to_json(calling: Calling) -> dict[str, Any]:
    """Plain data; `calling_from_json` reads it."""
    return asdict(calling)


def calling_from_json(data: Mapping[str, Any]) -> Calling:
    """Inverse of `calling_to_json`."""
    parameters = {name: _structure(part) for name, part in data["parameters"].items()}
    return Calling(parameters, int(data["num_tensors"]), _structure(data["result"]))


def _structure(data: Mapping[str, Any]) -> Structure:
    parts = tuple(map(_structure, data["parts"]))
    return Structure(data["kind"], data["position"], data["value"], tuple(data["names"]), parts)


def _is_nested(value: object) -> bool:
    return value is None or isinstance(value, list | tuple | Mapping | int | float | str)


def _collect(
    place: str, structure: Structure, value: Any, found: dict[int, Any], *, given: bool
) -> None:
    """Puts the tensors of an argument at their positions."""
    if structure.kind == TENSOR:
        if not given or value is None:
            raise ArgumentError(place, None, "this tensor is missing; give it")
        found[structure.position] = value
    elif structure.kind == CONSTANT:
        if given and value != structure.value:
            remedy = f"the network was imported with {structure.value!r}; import it anew"
            raise ArgumentError(place, value, remedy)
    else:
        for name, part, one in _parts(place, structure, value):
            _collect(f"{place}[{name!r}]", part, one, found, given=given)


def _parts(
    place: str, structure: Structure, value: Any
) -> Iterator[tuple[str | int, Structure, Any]]:
    names: Sequence[str | int] = structure.names or range(len(structure.parts))
    keyed = structure.kind == NAMED
    right = isinstance(value, Mapping) if keyed else isinstance(value, list | tuple)
    if not right or len(value) != len(names) or (keyed and set(value) != set(names)):
        listed = ", ".join(map(str, names)) if keyed else f"{len(names)} parts"
        raise ArgumentError(place, type(value).__name__, f"give a {structure.kind} of {listed}")
    for name, part in zip(names, structure.parts, strict=True):
        yield name, part, value[name]


def _built(structure: Structure, tensors: Sequence[Any]) -> Any:
    if structure.kind == TENSOR:
        return tensors[structure.position]
    if structure.kind == CONSTANT:
        return structure.value
    parts = [_built(part, tensors) for part in structure.parts]
    if structure.kind == NAMED:
        flat = [tensors[position] for position in structure.positions()]
        return NamedOutputs(dict(zip(structure.names, parts, strict=True)), flat)
    return parts if structure.kind == LIST else tuple(parts)
