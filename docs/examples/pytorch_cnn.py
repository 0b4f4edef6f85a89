"""Tunes a small convolutional network of PyTorch, and compares it with the original.

The network is saved and loaded again. The loaded network needs neither PyTorch nor a compiler.
"""

import torch
from torch import nn
from torch.utils.benchmark import Timer

import ansor

WIDTH = 32  # channels of the first convolution
SIZE = 64  # height and width of the image, in pixels
TRIALS = 200  # programs to measure
TIMING_S = 1.0  # seconds for each of the two latencies

torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(3, WIDTH, 3, padding=1),
    nn.BatchNorm2d(WIDTH),
    nn.ReLU(),
    nn.Conv2d(WIDTH, 2 * WIDTH, 3, stride=2, padding=1),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(2 * WIDTH, 10),
).eval()
image = torch.randn(1, 3, SIZE, SIZE)

# Tune. The example input tells the shapes; the import is compared with PyTorch on it.
tuned = ansor.auto_schedule(model, example_inputs=image, trials=TRIALS)
print(tuned.report())

# Compare the results and the latency with the original.
with torch.no_grad():
    expected = model(image)
    scores = tuned(image)  # a tensor, because the input is one
    torch.testing.assert_close(scores, expected, rtol=1e-4, atol=1e-4)
    for name, call in (("PyTorch", model), ("ansor", tuned)):
        timer = Timer("call(image)", globals={"call": call, "image": image}, num_threads=2)
        print(f"{name}: {timer.blocked_autorange(min_run_time=TIMING_S).median * 1e6:.0f} µs")

# Save and load. The file has machine code and weights.
tuned.save("cnn.ansor")
loaded = ansor.load("cnn.ansor")
assert torch.equal(loaded(image), scores)
