"""Attributes of a node, and which of them its converter has read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import onnx
from onnx import helper

from ansor.errors import UnsupportedError

# They follow from the shapes of operands or from the number of results, or concern training alone.
_WITHOUT_EFFECT = frozenset(
    (
        *((operator, "kernel_shape") for operator in ("Conv", "ConvTranspose")),
        *((operator, "hidden_size") for operator in ("RNN", "LSTM", "GRU")),
        ("Split", "num_outputs"),
        ("Dropout", "seed"),
    )
)


class Attributes(Mapping[str, Any]):
    """The attributes of a node as Python's values; notes which ones are read."""

    def __init__(self, node: Any) -> None:
        self._node = node
        self._values = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        self._read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self._read.add(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def check_all_read(self, version: int) -> None:
        """Refuses a node with an attribute that nothing has read, unless it has its default.

        Raises:
            UnsupportedError: names the attribute and its value.
        """
        for name, value in self._values.items():
            known = name in self._read or (self._node.op_type, name) in _WITHOUT_EFFECT
            if not known and value != self._default(name, version):
                raise UnsupportedError(f"its attribute {name}={value!r} is not supported")

    def _default(self, name: str, version: int) -> Any:
        try:
            schema = onnx.defs.get_schema(self._node.op_type, version, self._node.domain)
        except onnx.defs.SchemaError:
            return None
        attribute = schema.attributes.get(name)
        if attribute is None or not attribute.default_value.name:
            return None
        return helper.get_attribute_value(attribute.default_value)
