"""A small network with all that matters for precision, and its results."""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.target import Target

from ansor.frontend import compile_model

TARGET = Target({"kind": "llvm"})


def small_network() -> tvm.IRModule:
    """Two convolutions with a pooling between them, a concatenation and a product."""
    rng = np.random.default_rng(0)

    def weight(*shape: int) -> Any:
        return relax.const(rng.standard_normal(shape).astype("float32") / 4)

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 3, 12, 12), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = relax.op.nn.relu(relax.op.nn.conv2d(x, weight(8, 3, 3, 3), padding=1))
            pooled = builder.emit(relax.op.nn.max_pool2d(builder.emit(y), (2, 2), (2, 2)))
            both = builder.emit(relax.op.concat([pooled, pooled], 1))
            z = builder.emit(relax.op.nn.conv2d(both, weight(8, 16, 3, 3), padding=1))
            flat = builder.emit(relax.op.reshape(builder.emit(relax.op.tanh(z)), (1, 288)))
            out = builder.emit_output(relax.op.matmul(flat, weight(288, 10)))
        builder.emit_func_output(out)
    return builder.get()


def results(mod: tvm.IRModule) -> Any:
    x = np.random.default_rng(1).standard_normal((1, 3, 12, 12)).astype("float32")
    return compile_model(mod, TARGET)(x)
