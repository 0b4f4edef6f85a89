"""Tunes an ONNX file twice: from Python, and from the command line.

The file is made here, with `onnx.helper`. Any other ONNX file takes its place. Its batch is a
dynamic dimension, which gets a size at tuning.
"""

import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import ansor

FEATURES = 256  # of an input
HIDDEN = 512
CLASSES = 10
BATCH = 8
TRIALS = 64  # programs to measure, in each of the two runs

# Make a perceptron with one hidden layer: Gemm, Relu, Gemm, Softmax.
rng = np.random.default_rng(0)
weights = {
    "w1": rng.standard_normal((FEATURES, HIDDEN), np.float32) / 16,
    "b1": rng.standard_normal(HIDDEN, np.float32),
    "w2": rng.standard_normal((HIDDEN, CLASSES), np.float32) / 16,
    "b2": rng.standard_normal(CLASSES, np.float32),
}
graph = helper.make_graph(
    [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["positive"]),
        helper.make_node("Gemm", ["positive", "w2", "b2"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["probabilities"]),
    ],
    "perceptron",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", FEATURES])],
    [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", CLASSES])],
    [numpy_helper.from_array(array, name) for name, array in weights.items()],
)
opsets = [helper.make_opsetid("", 17)]
onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), "perceptron.onnx")

# From Python. The records go to a database.
tuned = ansor.auto_schedule(
    "perceptron.onnx", dims={"batch": BATCH}, trials=TRIALS, database="records.sqlite"
)
x = rng.standard_normal((BATCH, FEATURES), np.float32)
probabilities = tuned(x)
print("sum of each row:", probabilities.sum(axis=1))

# From the command line: `ansor tune perceptron.onnx --dim batch=8 ...` in a shell.
command = ["tune", "perceptron.onnx", "--dim", f"batch={BATCH}", "--trials", str(TRIALS)]
command += ["--database", "records.sqlite", "--out", "tuned"]
subprocess.run([sys.executable, "-m", "ansor", *command], check=True)
by_command = ansor.load("tuned/model.ansor")
np.testing.assert_allclose(by_command(x), probabilities, rtol=1e-4, atol=1e-6)
