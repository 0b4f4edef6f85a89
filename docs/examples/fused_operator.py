"""Tunes an operator that is written in TVM's language TE: a product, a bias and a GELU as one.

The bias and the activation (the epilogue) are computed inside the loops of the product, where this
is faster. The result takes NumPy arrays or PyTorch tensors, and shows its loops and its assembly.
"""

from typing import Any

import numpy as np
import torch
from tvm import te

import ansor

ROWS = 128
COLUMNS = 512
DEPTH = 512  # of the sums
TRIALS = 64  # programs to measure


def gelu(value: Any) -> Any:
    """The approximation of GELU by a hyperbolic tangent."""
    inner = 0.7978845608 * (value + 0.044715 * value * value * value)
    return 0.5 * value * (1 + te.tanh(inner))


# The definition. Each stage is one `te.compute`; the inputs come first in the list.
a = te.placeholder((ROWS, DEPTH), name="a")
b = te.placeholder((DEPTH, COLUMNS), name="b")
bias = te.placeholder((COLUMNS,), name="bias")
k = te.reduce_axis((0, DEPTH), name="k")
product = te.compute((ROWS, COLUMNS), lambda i, j: te.sum(a[i, k] * b[k, j], k), name="product")
biased = te.compute((ROWS, COLUMNS), lambda i, j: product[i, j] + bias[j], name="biased")
result = te.compute((ROWS, COLUMNS), lambda i, j: gelu(biased[i, j]), name="result")

tuned = ansor.tune([a, b, bias, result], trials=TRIALS)

# The same function for arrays of NumPy and for tensors of PyTorch.
rng = np.random.default_rng(0)
shapes = ((ROWS, DEPTH), (DEPTH, COLUMNS), (COLUMNS,))
arrays = [rng.standard_normal(shape, np.float32) for shape in shapes]
of_numpy = tuned(*arrays)
tensors = [torch.from_numpy(array) for array in arrays]
of_torch = tuned(*tensors)
expected = torch.nn.functional.gelu(tensors[0] @ tensors[1] + tensors[2], approximate="tanh")
torch.testing.assert_close(of_torch, expected, rtol=1e-4, atol=1e-4)
assert np.array_equal(of_numpy, of_torch.numpy())

print(tuned.source())  # the loops, as Python
multiply_adds = [line for line in tuned.assembly().splitlines() if "fmadd" in line]
print(len(multiply_adds), "multiply-adds in the assembly, such as", *multiply_adds[:1])
print(tuned.report())
