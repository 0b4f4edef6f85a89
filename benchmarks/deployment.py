"""An exported network in C++ against the same network in Python: equal results, and latencies.

Both run in turns, each in a separate process. A C++ compiler and CMake are needed.

``python -m benchmarks.deployment --model resnet18 --json FILE``
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np

from ansor.calls import auto_schedule
from ansor.frontend.deploy.runtime import random_inputs
from ansor.models import model_names
from ansor.report.formatting import align
from ansor.targets.host.threads import available_cores, module_path
from benchmarks.environment import environment, write

_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Turn:
    """Median seconds of a call in each process of a turn."""

    python_s: float
    cpp_s: float

    @property
    def ratio(self) -> float:
        """Time in C++ over time in Python."""
        return self.cpp_s / self.python_s


@dataclass(frozen=True)
class Case:
    """A network in both forms.

    Attributes:
        folder: with the saved file, the exported folder, the program and the input.
        threads: of both.
        seconds: of each process of a turn.
    """

    folder: Path
    threads: int
    seconds: float

    def prepare(self, model: str) -> None:
        """Tunes the network without measurements, saves, exports and builds it."""
        tuned = auto_schedule(model, trials=0, threads=self.threads, check_import=False)
        tuned.save(self.folder / "network.ansor")
        tuned.export(self.folder / "exported")
        (array,) = random_inputs(tuned.compiled.inputs)
        (self.folder / "input.bin").write_bytes(np.ascontiguousarray(array).tobytes())
        source, build = self.folder / "exported", self.folder / "build"
        _run(["cmake", "-S", source, "-B", build])
        _run(["cmake", "--build", build])

    def python_s(self) -> float:
        """Median seconds of a call in Python."""
        names = ("network.ansor", "input.bin", "python0.bin")
        network, source, output = (str(self.folder / name) for name in names)
        words = [network, str(self.threads), str(self.seconds), source, output]
        return float(_run([sys.executable, "-m", "benchmarks.deployment_child", *words]))

    def cpp_s(self) -> float:
        """The same in C++."""
        files = [self.folder / name for name in ("build/run", "exported", "input.bin")]
        timing = ["--threads", str(self.threads), "--seconds", str(self.seconds)]
        return float(_run([*files, "--out", self.folder / "cpp", *timing]))

    @property
    def is_equal(self) -> bool:
        """Whether the last results of both are equal bit for bit."""
        pair = (self.folder / name for name in ("python0.bin", "cpp0.bin"))
        first, second = (path.read_bytes() for path in pair)
        return first == second


def _run(command: Sequence[str | Path]) -> str:
    """The output of a program."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=True,
        env={**os.environ, **module_path()},
    )
    return done.stdout


def measure(case: Case, turns: int) -> list[Turn]:
    """Times both in turns; the first changes from turn to turn."""
    found = []
    for number in range(turns):
        if number % 2:
            cpp_s, python_s = case.cpp_s(), case.python_s()
        else:
            python_s, cpp_s = case.python_s(), case.cpp_s()
        found.append(Turn(python_s, cpp_s))
    return found


@click.command()
@click.option("--model", type=click.Choice(model_names()), default="resnet18", show_default=True)
@click.option("--threads", type=int, help="All cores by default.")
@click.option("--turns", default=10, show_default=True)
@click.option("--seconds", default=2.0, show_default=True, help="Of each process of a turn.")
@click.option("--json", "file", metavar="FILE", help="For the result.")
def main(model: str, threads: int | None, turns: int, seconds: float, file: str | None) -> None:
    """Compares the latency of an exported network with that in Python."""
    with tempfile.TemporaryDirectory(prefix="ansor-") as folder:
        case = Case(Path(folder), threads or available_cores(), seconds)
        case.prepare(model)
        found = measure(case, turns)
        equal = case.is_equal
    rows = [(f"{t.python_s * 1e3:.3f}", f"{t.cpp_s * 1e3:.3f}", f"{t.ratio:.3f}") for t in found]
    print(align(("Python ms", "C++ ms", "ratio"), rows, (0, 1, 2)))
    ratio = statistics.median(turn.ratio for turn in found)
    print(f"median ratio {ratio:.3f}; results {'equal' if equal else 'DIFFERENT'}")
    result = {
        "model": model,
        "python_ms": 1e3 * statistics.median(turn.python_s for turn in found),
        "cpp_ms": 1e3 * statistics.median(turn.cpp_s for turn in found),
        "ratio": ratio,
        "equal": equal,
        "turns": [asdict(turn) for turn in found],
    }
    about = environment(case.threads, seconds=seconds)
    write(file, {"environment": about, "results": [result]})


if __name__ == "__main__":
    main()
