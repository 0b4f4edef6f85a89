"""`TunedModel`: the result of `auto_schedule`."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import tvm

from ansor.callbacks import Finish
from ansor.errors import ArgumentError, UnsupportedError
from ansor.explain.choice import chosen
from ansor.explain.explanation import Explanation
from ansor.frontend.calling import Calling, calling_to_json
from ansor.frontend.deploy.code_text import assembly_text, source_text
from ansor.frontend.deploy.export.write import export_network
from ansor.frontend.deploy.foreign import ForeignModel
from ansor.frontend.deploy.metaschedule import write_final, write_traces
from ansor.frontend.deploy.runtime import CompiledModel, compile_model
from ansor.frontend.deploy.storage import StoredModel, save_model
from ansor.frontend.importers.source import Array
from ansor.report.document.document import Document
from ansor.report.document.inputs import NetworkInputs
from ansor.report.document.network_document import network_document
from ansor.report.document.search_data import SearchData
from ansor.report.network_html import network_html
from ansor.report.network_table import Summary, network_table
from ansor.report.precision_table import PrecisionRow, precision_text
from ansor.report.write import write_document
from ansor.results import Benchmark, TaskResult
from ansor.run.check.network import NetworkCheck
from ansor.run.tuned.chosen_programs import ChosenPrograms
from ansor.run.tuned.search_data import data_of_search, environment
from ansor.run.tuned.search_history import SearchHistory
from ansor.targets.registry import backend_of
from ansor.targets.target import check_runs_here


@dataclass(frozen=True, eq=False)
class TunedModel:
    """A tuned network: call it on NumPy arrays or torch tensors.

    Attributes:
        compiled: the network in machine code; one for another machine cannot be called here.
        tasks: one entry per function of the network.
        finish: outcome of the search; None for a model that was loaded.
        seed: of the search.
        baseline: the network before tuning; None for a model that was loaded.
        calling: form of its calls; None for a sequence of tensors.
        state: initial values of tensors that the network keeps between calls, such as caches and
            counters.
        checks: how it compared with the original model, before and after tuning.
        precision: precisions of its functions; empty for the precision of the model.
        programs: of its functions; None for a model that was loaded.
        history: of its search; None for a model that was loaded.
    """

    compiled: CompiledModel | ForeignModel
    tasks: tuple[TaskResult, ...]
    finish: Finish | None
    seed: int
    baseline: tvm.IRModule | None = None
    calling: Calling | None = None
    state: tuple[Array, ...] = ()
    checks: tuple[NetworkCheck, ...] = ()
    precision: tuple[PrecisionRow, ...] = ()
    programs: ChosenPrograms | None = None
    history: SearchHistory | None = None
    # The current values of the state, and a lock for each process. A model with state serves one
    # call at a time, and a forked child must not wait for a thread of its parent.
    _kept: list[Any] = field(default_factory=list, init=False, repr=False)
    _locks: dict[int, threading.Lock] = field(default_factory=dict, init=False, repr=False)

    @property
    def here(self) -> CompiledModel:
        """The network in machine code of this machine.

        Raises:
            UnsupportedError: it is for another machine.
        """
        if isinstance(self.compiled, ForeignModel):
            self.compiled()
        return self.compiled

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the network on NumPy arrays or torch tensors; returns the kind of the arguments.

        The arguments are those of the original model, or a sequence of its tensors. The result has
        the original's structure; see `NamedOutputs` for dictionaries and dataclasses.

        Raises:
            ArgumentError: wrong number, structure, shape or dtype; names the argument.
        """
        if self.calling is None:
            return self.compiled(*args, **kwargs)
        tensors = self.calling.tensors(args, kwargs)
        if not self.state:
            return self.calling.results(_in_row(self.compiled(*tensors)))
        with self._turn():
            self._kept[:] = self._kept or self.state
            results = _in_row(self.compiled(*tensors, *self._kept))
            count = len(results) - len(self.state)
            self._kept[:] = results[count:]
            return self.calling.results(results[:count])

    def reset(self) -> None:
        """Gives the state, if the network keeps one, its initial values again."""
        with self._turn():
            self._kept.clear()

    def _turn(self) -> threading.Lock:
        return self._locks.setdefault(os.getpid(), threading.Lock())

    @cached_property
    def untuned(self) -> CompiledModel:
        """The same network with naive loops.

        Raises:
            UnsupportedError: the model was loaded, and its original is not available.
        """
        if self.baseline is None:
            raise UnsupportedError(
                "a loaded model does not carry the network it was tuned from",
                "tune the model with its database, which takes no trials",
            )
        check_runs_here(self.compiled.target)
        return compile_model(self.baseline, self.compiled.target, self.compiled.threads)

    def benchmark(self, min_time_s: float = 1.0, untuned: bool = False) -> Benchmark:
        """Times the whole network.

        Args:
            min_time_s: seconds that the runs take at least.
            untuned: whether the network without a search is timed too.
        """
        before = self.untuned.latency(min_time_s=0.1, repeats=1) if untuned else None
        return Benchmark(self.compiled.latency(min_time_s=min_time_s, repeats=10), before)

    def report(self, benchmark: Benchmark | None = None) -> str:
        """A readable table of the tasks; with a `benchmark`, also the network's latency.

        A network for another machine has no latency here.
        """
        summary = self._summary(benchmark)
        if self.finish is not None:
            done = self.finish
            summary = replace(
                summary,
                search_s=done.elapsed_s,
                trials=done.trials,
                reason=done.reason,
                errors=done.errors,
            )
        lines = [precision_text(self.precision)] if self.precision else []
        lines += [check.text for check in self.checks]
        return "\n".join([network_table(self.tasks, summary), *lines])

    def _repr_html_(self) -> str:
        """A table of the functions, which notebooks show."""
        return network_html(self.tasks)

    def search_data(self, name: str, benchmark: Benchmark | None = None) -> SearchData | None:
        """The data of `ansor.write_report`; None for a model that was loaded.

        Args:
            name: of the network.
            benchmark: of the network; None without one.
        """
        if self.finish is None or self.history is None or self.programs is None:
            return None
        about = environment(self.compiled.target, self.compiled.threads, self.seed)
        data = data_of_search(self.finish, self.history, self.programs, self.compiled.target)
        latency_s = None if benchmark is None else benchmark.latency_s
        return replace(data, name=name, latency_s=latency_s, environment=about)

    def write_report(
        self,
        out: str | os.PathLike[str],
        format: str | None = None,
        name: str = "tuned network",
        benchmark: Benchmark | None = None,
    ) -> Path:
        """Writes a report of the network and of its search, see `ansor.write_report`.

        Args:
            out: the file of the report.
            format: "html", "markdown" or "json"; by default that of the suffix of `out`.
            name: of the network, the title of the report.
            benchmark: of the network; by default it is timed now, if it runs here.

        Returns:
            the path of the report.

        Raises:
            ArgumentError: the format is unknown, or the file cannot be written.
            MissingPackageError: a package of the extra `report` is not installed.
        """
        return write_document(lambda: self._document(name, benchmark), out, format)

    def _document(self, name: str, benchmark: Benchmark | None) -> Document:
        """The content of a report."""
        if benchmark is None and not isinstance(self.compiled, ForeignModel):
            benchmark = self.benchmark()
        search = self.search_data(name, benchmark)
        return network_document(NetworkInputs(name, self._stored(), search))

    def _summary(self, benchmark: Benchmark | None) -> Summary:
        """The figures of the network that are measured here."""
        if isinstance(self.compiled, ForeignModel):
            return Summary()
        measured, target = benchmark or self.benchmark(), self.compiled.target
        peak = backend_of(target).machine.peak_flops(target, self.compiled.threads)
        return Summary(measured.latency_s, measured.untuned_s, peak)

    def source(self, function: str | None = None) -> str:
        """The compiled loops of a function in TensorIR, which prints as Python.

        Args:
            function: its name in the compiled network; an operator has only one.

        Raises:
            ArgumentError: there is no such function, or there are several.
        """
        return source_text(self.compiled.complete, function)

    def assembly(self, function: str | None = None) -> str:
        """The assembly of a function, or CUDA's language for a GPU.

        Args:
            function: its name in the compiled network; an operator has only one.

        Raises:
            ArgumentError: there is no such function, or there are several.
        """
        return assembly_text(self.compiled.complete, function, self.compiled.threads)

    def explain(self, task: str | None = None) -> Explanation:
        """Why the program of a function is as fast as it is; the result prints as text.

        Args:
            task: name of the function, or a part of one name; an operator has only one.

        Raises:
            ArgumentError: there is no such function, there are several, or the model was loaded.
        """
        if self.programs is None or self.history is None:
            remedy = "a loaded model does not carry its search; use `ansor explain`"
            raise ArgumentError("task", task, remedy)
        winner = chosen(self.programs.of, task)
        name = winner[0].group
        times = [each.latency_s for each in self.tasks if each.name == name]
        return self.history.explained(winner, next(iter(times), None))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the network, machine code and weights, to one file; `ansor.load` reads it.

        Args:
            path: of the file, which is replaced if it exists.

        Raises:
            ArgumentError: the file cannot be written.
        """
        save_model(self._stored(), path)

    def _stored(self) -> StoredModel:
        """The network with its notes."""
        notes: dict[str, Any] = {"tasks": [asdict(task) for task in self.tasks], "seed": self.seed}
        notes["threads"] = self.compiled.threads
        if self.calling is not None:
            notes["calling"] = calling_to_json(self.calling)
        notes["checks"] = [asdict(check) for check in self.checks]
        notes["precision"] = [asdict(row) for row in self.precision]
        return StoredModel(self.compiled.complete, notes, self.state)

    def export(
        self, folder: str | os.PathLike[str], runtime: str | os.PathLike[str] | None = None
    ) -> None:
        """Writes the network to a folder from which C, C++ and Python run it without a compiler.

        See the page on deployment.

        Args:
            folder: a new one, or an empty one.
            runtime: folder with TVM's runtime libraries for the target; by default those of this
                installation, if the target has the architecture of this machine.

        Raises:
            ArgumentError: the folder has files or cannot be written to, or `runtime` lacks a
                library.
            UnsupportedError: the network is not for a CPU, or its code cannot be linked.
        """
        network, threads = self.compiled.complete, self.compiled.threads
        export_network(network, self.state, self.calling, threads, folder, runtime)

    def export_metaschedule(self, folder: str | os.PathLike[str], traces: bool = False) -> int:
        """Writes the network for plain TVM, with a `JSONDatabase` of MetaSchedule's records.

        Args:
            folder: a new one; see `ansor.frontend.deploy.metaschedule`.
            traces: whether the network has its definitions without schedules, and the records have
                its programs as traces. By default the network has its compiled functions, which run
                as fast as here, see the page on MetaSchedule.

        Returns:
            the number of records.

        Raises:
            ArgumentError: the folder has records or cannot be written to, or traces are asked of a
                model that was loaded.
            UnsupportedError: a trace cannot express a program.
        """
        target, threads = self.compiled.target, self.compiled.threads
        times = {task.name: task.latency_s for task in self.tasks}
        if not traces:
            return write_final(self.compiled.complete.mod, target, threads, times, folder)
        if self.programs is None:
            remedy = "a loaded model does not carry its programs; tune it with its database"
            raise ArgumentError("traces", traces, remedy)
        of_variants = {task.name: times.get(name) for name, (task, _) in self.programs.of.items()}
        found = self.programs.traces()
        return write_traces(self.programs.mod, found, target, times | of_variants, folder)


def _in_row(result: Any) -> Sequence[Any]:
    """A network's result as a sequence of tensors."""
    return result if isinstance(result, tuple) else (result,)
