"""`Surrogate`: an operator's latencies, build times and failures, as trees that were fitted to
measurements; and the file that it is stored in.

A file is JSON, compressed with LZMA. It belongs to one target.
"""

from __future__ import annotations

import dataclasses
import json
import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xgboost

from ansor.errors import AnsorError
from ansor.measure.result import ErrorKind
from ansor.program.sketch import Population
from benchmarks.surrogate_inputs import aligned, inputs_of
from benchmarks.surrogate_trees import Trees

FOLDER = Path(__file__).parent / "surrogates"
SUFFIX = ".json.xz"
VERSION = 1
LIKELY = 0.5  # probability from which a program fails

Times = npt.NDArray[np.float64]


class SurrogateError(AnsorError):
    """A file of a surrogate cannot be used."""


@dataclass(frozen=True)
class Quality:
    """How well trees that were fitted to 80 % of the programs predict the others.

    Attributes:
        programs: all measured programs that ran.
        failures: programs that failed.
        held_out: programs that were predicted.
        spearman: rank correlation of their latencies.
        spearman_fast: the same for the fastest quarter of them.
        error: median of the relative errors of the latency.
        error_fast: the same for the fastest quarter.
        best_of_10: latency of the fastest of the ten programs with the least predictions, over the
            least of all.
        failures_predicted: share of the failed programs among them that were predicted to fail;
            None without any.
        false_failures: share of the programs that ran, but were predicted to fail.
    """

    programs: int
    failures: int
    held_out: int
    spearman: float
    spearman_fast: float
    error: float
    error_fast: float
    best_of_10: float
    failures_predicted: float | None
    false_failures: float


@dataclass(frozen=True, eq=False)
class Prediction:
    """Of P programs.

    Attributes:
        latency_s: `[P]` seconds.
        build_s: `[P]` seconds.
        fails: `[P]`: whether a program has no latency.
    """

    latency_s: Times
    build_s: Times
    fails: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Surrogate:
    """One operator on one machine.

    Attributes:
        op: name of the operator.
        key: of its task.
        target: text of the target that was measured.
        about: environment of the measurements.
        columns: inputs of the trees (`surrogate_inputs`).
        latency: trees for the logarithm of seconds.
        build: trees for the logarithm of seconds.
        failure: trees for the probability of a failure; None if nothing failed.
        failure_kind: the most frequent failure.
        overhead_s: of a measurement, beside the runs.
        timeout_s: of a program that runs too long.
        quality: on held-out programs.
    """

    op: str
    key: str
    target: str
    about: Mapping[str, Any]
    columns: tuple[str, ...]
    latency: Trees
    build: Trees
    failure: Trees | None
    failure_kind: ErrorKind
    overhead_s: float
    timeout_s: float
    quality: Quality

    def predict(self, population: Population) -> Prediction:
        """What measurements of these programs are expected to give."""
        inputs = aligned(inputs_of(population), self.columns)
        likely = np.zeros(len(inputs)) if self.failure is None else self.failure.predict(inputs)
        return Prediction(
            np.exp(self.latency.predict(inputs), dtype=np.float64),
            np.exp(self.build.predict(inputs), dtype=np.float64),
            likely > LIKELY,
        )


def file_of(op: str, folder: Path = FOLDER) -> Path:
    """The file of an operator's surrogate."""
    return folder / f"{op}{SUFFIX}"


def write(surrogate: Surrogate, file: Path) -> None:
    """Writes a surrogate."""
    failure = surrogate.failure
    document = {
        "version": VERSION,
        "op": surrogate.op,
        "key": surrogate.key,
        "target": surrogate.target,
        "about": dict(surrogate.about),
        "columns": surrogate.columns,
        "failure_kind": surrogate.failure_kind.value,
        "overhead_s": surrogate.overhead_s,
        "timeout_s": surrogate.timeout_s,
        "quality": dataclasses.asdict(surrogate.quality),
        "latency": surrogate.latency.to_json(),
        "build": surrogate.build.to_json(),
        "failure": None if failure is None else failure.to_json(),
    }
    text = json.dumps(document, separators=(",", ":"))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(lzma.compress(text.encode(), preset=9))


def read(file: Path) -> Surrogate:
    """Reads a surrogate.

    Raises:
        SurrogateError: there is no such file, or it is broken.
    """
    try:
        document = json.loads(lzma.decompress(file.read_bytes()))
        if document["version"] != VERSION:
            raise SurrogateError(f"{file}: version {document['version']!r} is not {VERSION}")
        failure = document["failure"]
        return Surrogate(
            op=document["op"],
            key=document["key"],
            target=document["target"],
            about=document["about"],
            columns=tuple(document["columns"]),
            latency=Trees.from_json(document["latency"]),
            build=Trees.from_json(document["build"]),
            failure=None if failure is None else Trees.from_json(failure),
            failure_kind=ErrorKind(document["failure_kind"]),
            overhead_s=float(document["overhead_s"]),
            timeout_s=float(document["timeout_s"]),
            quality=Quality(**document["quality"]),
        )
    except FileNotFoundError as error:
        remedy = "fit it with python -m benchmarks.surrogate"
        raise SurrogateError(f"{file}: there is no such surrogate; {remedy}") from error
    except (
        *(OSError, EOFError, lzma.LZMAError, ValueError, KeyError, TypeError),
        xgboost.core.XGBoostError,
    ) as error:
        raise SurrogateError(f"{file}: not a surrogate: {error!r}") from error
