"""Times a saved network in Python, in a separate process.

``python -m benchmarks.deployment_child FILE THREADS SECONDS INPUT OUTPUT``: prints the median
seconds of a call; INPUT and OUTPUT are files of raw numbers.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

import ansor
from ansor.targets.host.memory import plain_block


def main(file: str, threads: str, seconds: str, source: str, output: str) -> None:
    """Calls the network for a number of seconds."""
    network = ansor.load(file, int(threads))
    (spec,) = network.compiled.inputs
    data = Path(source).read_bytes()
    memory = plain_block(len(data))  # aligned, so that the network reads it in place
    memory[:] = bytearray(data)
    array = memory.view(spec.dtype).reshape(spec.shape)
    Path(output).write_bytes(network(array).tobytes())
    times, began_s = [], time.perf_counter()
    last_s = began_s
    while last_s - began_s < float(seconds):
        network(array)
        now_s = time.perf_counter()
        times.append(now_s - last_s)
        last_s = now_s
    print(f"{statistics.median(times):.9f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
