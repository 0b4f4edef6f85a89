"""Samples of inputs: every form, and what is wrong with them by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.errors import ArgumentError
from ansor.quantization.samples import Declared, read_samples

X = Declared("x", "float32", (2, 3))
Y = Declared("y", "int64", (None,))
PAIR = [X, Y]


def floats(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@given(st.integers(1, 5))
def test_rows_and_stacked_samples_are_the_same(count: int) -> None:
    stacked = floats(count, 2, 3)
    found = read_samples({"x": stacked}, [X])
    rows = read_samples({"x": stacked.reshape(-1, 3)}, [X])
    assert len(found) == len(rows) == count
    for one, other, expected in zip(found, rows, stacked, strict=True):
        np.testing.assert_array_equal(one["x"], expected)
        np.testing.assert_array_equal(other["x"], expected)


def test_files_and_sequences(tmp_path: Path) -> None:
    path = tmp_path / "samples.npz"
    np.savez(path, x=floats(3, 2, 3), y=np.arange(12).reshape(3, 4))
    from_file = read_samples(path, PAIR)
    listed = read_samples([(floats(3, 2, 3)[k], np.arange(12).reshape(3, 4)[k]) for k in range(3)],
                          PAIR)  # fmt: skip
    assert len(from_file) == 3
    for one, other in zip(from_file, listed, strict=True):
        np.testing.assert_array_equal(one["x"], other["x"])
        np.testing.assert_array_equal(one["y"], other["y"])


def test_values_are_cast_within_their_kind() -> None:
    (sample,) = read_samples([{"x": floats(2, 3).astype(np.float64)}], [X])
    assert sample["x"].dtype == np.float32


NAN = np.full((2, 3), np.nan, np.float32)
WRONG: dict[str, tuple[Any, str]] = {
    "names": ({"z": floats(1, 2, 3)}, r"\['z'\].*name the arrays.*x float32\[2, 3\]"),
    "more names": ({"x": floats(1, 2, 3), "z": floats(1)}, "name the arrays"),
    "rank": (
        {"x": floats(3)},
        r"calibration\['x'\]=\(3,\): give samples of the shape of input x float32\[2, 3\]",
    ),
    "rows": ({"x": floats(3, 3)}, "give samples of the shape"),
    "shape": ([floats(2, 4)], r"sample 0=\(2, 4\): the shape must be"),
    "dtype": ([np.zeros((2, 3), np.complex64)], "complex64.*the dtype must be float32"),
    "nan": ([floats(2, 3), NAN], "sample 1='NaN or infinity'"),
    "infinity": ({"x": np.full((1, 2, 3), np.inf, np.float32)}, "sample 0='NaN or infinity'"),
    "number of inputs": ([(floats(2, 3), floats(2, 3))], "give an array for each input"),
    "nothing": ([], "at least one sample"),
    "no rows": ({"x": floats(0, 2, 3)}, "at least one sample"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_samples_are_named(name: str) -> None:
    samples, message = WRONG[name]
    with pytest.raises(ArgumentError, match=message):
        read_samples(samples, [X])


def test_as_many_samples_of_each_input() -> None:
    with pytest.raises(ArgumentError, match=r"'x': 2, 'y': 3.*as many samples"):
        read_samples({"x": floats(2, 2, 3), "y": np.zeros((3, 4), np.int64)}, PAIR)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="no such file"):
        read_samples(tmp_path / "none.npz", [X])
    (tmp_path / "text.npz").write_text("not an archive")
    with pytest.raises(ArgumentError, match=r"numpy\.savez"):
        read_samples(str(tmp_path / "text.npz"), [X])
    np.save(tmp_path / "one.npy", floats(2, 3))
    with pytest.raises(ArgumentError, match=r"numpy\.savez"):
        read_samples(tmp_path / "one.npy", [X])
