"""Files that an ONNX model names: they are read inside its folder only, and within their size."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ansor.errors import ArgumentError
from ansor.frontend import import_model

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper  # noqa: E402

VALUES = np.ones(1024, np.float32)  # larger than what is kept in the graph


def write(path: Path, **entries: object) -> Path:
    """A model whose weight is in another file."""
    weight = TensorProto(
        name="w", data_type=TensorProto.FLOAT, dims=VALUES.shape, data_location=TensorProto.EXTERNAL
    )
    for key, value in {"location": "weights", "length": VALUES.nbytes, **entries}.items():
        weight.external_data.add(key=key, value=str(value))
    declared = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, VALUES.shape) for name in "xy"
    ]
    node = helper.make_node("Add", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", declared[:1], declared[1:], [weight])
    path.write_bytes(helper.make_model(graph, ir_version=8).SerializeToString())
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file of weights, and links to another one outside."""
    secret = tmp_path / "secret"
    VALUES.tofile(secret)
    inside = tmp_path / "model"
    inside.mkdir()
    VALUES.tofile(inside / "weights")
    (inside / "link").symlink_to(secret)
    (inside / "folder").symlink_to(tmp_path)
    os.link(secret, inside / "hard")
    return inside


def test_a_file_in_the_folder_is_read(folder: Path) -> None:
    assert import_model(write(folder / "m.onnx")).inputs[0].shape == VALUES.shape


@pytest.mark.parametrize(
    "location", ["../secret", "folder/secret", "model/../../secret", "link", "hard", "", "."]
)
def test_paths_out_of_the_folder_are_not_followed(folder: Path, location: str) -> None:
    with pytest.raises(ArgumentError, match=r"m\.onnx': put the files of its weights beside it"):
        import_model(write(folder / "m.onnx", location=location))


def test_absolute_paths_are_not_followed(folder: Path) -> None:
    with pytest.raises(ArgumentError, match=r"m\.onnx': put the files of its weights beside it"):
        import_model(write(folder / "m.onnx", location=folder / "weights"))


@pytest.mark.parametrize(
    "entries", [{"length": 1 << 60}, {"offset": 1 << 60}, {"offset": -4}, {"length": -1}]
)
def test_sizes_are_those_of_the_file(folder: Path, entries: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=r"m\.onnx': put the files of its weights beside it"):
        import_model(write(folder / "m.onnx", **entries))
