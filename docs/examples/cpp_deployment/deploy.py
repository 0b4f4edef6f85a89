"""Runs a tuned network in a C++ program.

The network is exported to a folder. `CMakeLists.txt` builds `classify.cc` with this folder, and the
program reads an image from a file. Neither TVM's compiler nor Python runs in the program.
"""

import subprocess
from pathlib import Path

import numpy as np

import ansor

MODEL = "resnet18"
TRIALS = 800  # programs to measure
SOURCE = str(Path(__file__).parent)  # the folder with CMakeLists.txt and classify.cc

# Tune, and export machine code, weights and the interface in C.
tuned = ansor.auto_schedule(MODEL, trials=TRIALS)
tuned.export("network")

# Build the program.
configure = ["cmake", "-S", SOURCE, "-B", "build", f"-DNETWORK={Path('network').resolve()}"]
subprocess.run(configure, check=True)
subprocess.run(["cmake", "--build", "build"], check=True)

# Run it on an image: raw numbers in row-major order.
shape = tuned.compiled.inputs[0].shape
image = np.random.default_rng(0).standard_normal(shape, np.float32)
image.tofile("image.bin")
subprocess.run(["build/classify", "network", "image.bin", "scores.bin"], check=True)

# The machine code is the same, so the results are equal bit for bit.
scores = np.fromfile("scores.bin", np.float32)
expected = tuned(image)
assert np.array_equal(scores, expected.ravel())
print("class", scores.argmax(), "in C++ and in Python")
