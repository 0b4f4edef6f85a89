"""Reads the files of a MetaSchedule database without TVM's reader.

TVM's reader ends the process at a record whose function is not in the database. The format is that
of TVM's `JSONDatabase`. A line of the first file has the structural hash of a module and the
module. A line of the second file has the number of the module, the trace, and the measured seconds.
"""

from __future__ import annotations

import base64
import json
import math
import os
import struct
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tvm
import tvm_ffi
from tvm import ir, tirx

from ansor.errors import ArgumentError
from ansor.templates.imported_trace import json_text, replayed

WORKLOADS, RECORDS = "database_workload.json", "database_tuning_record.json"  # TVM's names
_MOST = 200  # characters of a reason
_LENGTH = struct.Struct("<Q")  # of a text, before it


@dataclass(frozen=True, eq=False)
class Recorded:
    """A record.

    Attributes:
        func: that it is of.
        trace: its schedule, in JSON form.
        seconds: the mean of its measurements.
    """

    func: tirx.PrimFunc
    trace: str
    seconds: float


def read_records(folder: str | os.PathLike[str], most: int) -> list[list[Recorded]]:
    """The fastest records of each function, fastest first, at most `most` of each.

    Raises:
        ArgumentError: the folder has no database, a line of it cannot be read, or a trace does not
            replay.
    """
    workloads, records = (_lines(folder, name) for name in (WORKLOADS, RECORDS))
    found: dict[int, list[tuple[float, Any]]] = defaultdict(list)
    try:
        for number, (trace, seconds, *_) in records:
            if number not in range(len(workloads)):
                raise ValueError(f"a record of function {number} of {len(workloads)}")
            if seconds and all(math.isfinite(value) and value > 0 for value in seconds):
                found[number].append((sum(seconds) / len(seconds), trace))
        return [_best(_module(*workloads[n]), each, most) for n, each in sorted(found.items())]
    except Exception as error:  # TVM's own are of many kinds
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:_MOST]
        remedy = f"TVM cannot read it, or a trace in it does not replay: {reason}"
        raise ArgumentError("seeds", os.fspath(folder), remedy) from error


def _best(module: tvm.IRModule, records: list[tuple[float, Any]], most: int) -> list[Recorded]:
    func = module["main"]
    ranked = sorted(records, key=lambda pair: pair[0])[:most]
    return [Recorded(func, _canonical(func, trace), seconds) for seconds, trace in ranked]


def _canonical(func: tirx.PrimFunc, trace: Any) -> str:
    """A trace as TVM writes it after it has replayed on its function."""
    return json_text(replayed(json.dumps(trace), {}, func, {}).trace)


def _lines(folder: str | os.PathLike[str], name: str) -> list[Any]:
    """The JSON values of a file."""
    path = Path(folder) / name
    if not path.is_file():
        remedy = f"give a folder with {WORKLOADS} and {RECORDS}"
        raise ArgumentError("seeds", os.fspath(folder), remedy)
    try:
        return [json.loads(line) for line in path.read_bytes().splitlines() if line.strip()]
    except (OSError, ValueError, RecursionError) as error:
        raise ArgumentError("seeds", str(path), f"TVM did not write it: {error}") from error


def _module(digest: str, text: str) -> tvm.IRModule:
    """A module, which must have its hash.

    Raises:
        Exception: TVM cannot read it, or has another hash for it.
    """
    data = base64.b64decode(text, validate=True)
    (length,) = _LENGTH.unpack_from(data)
    if length != len(data) - _LENGTH.size:
        raise ValueError("a function is cut short")
    module = ir.load_json(data[_LENGTH.size :].decode())
    if not isinstance(module, tvm.IRModule) or tvm_ffi.structural_hash(module) % 2**64 != int(
        digest
    ):
        raise ValueError("a function is not the one that was written")
    return module
