"""The public calls: a model in, a faster compiled network out; `run/` has the phases."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ansor.config import FULL
from ansor.database.log import opened_records
from ansor.errors import ArgumentError
from ansor.frontend.importers.sizes import Sizes
from ansor.frontend.operator import is_operator
from ansor.run.arguments import check_models, check_short_products
from ansor.run.import_phase import import_models
from ansor.run.opening import opened_session, target_of
from ansor.run.prepare import merged
from ansor.run.remarks import check_applicable
from ansor.run.result_phase import finished
from ansor.run.search_phase import search
from ansor.run.settings import Settings, takes_settings
from ansor.run.tuned.tuned_model import TunedModel
from ansor.targets.target import Target
from ansor.templates.template import TemplateCall

_BUDGETS = ("minutes", "trials", "trials_per_task", "early_stopping")
_OF_SEARCHES = (*_BUDGETS, "tasks", "transfer")
_OF_RECORDS = ("database", "log", "resume")


@takes_settings
def auto_schedule(
    model: object,
    target: str | Target = "native",
    *,
    example_inputs: object = None,
    shapes: Mapping[str, Sequence[int]] = MappingProxyType({}),
    dims: Mapping[str, int] = MappingProxyType({}),
    **settings: Any,
) -> TunedModel:
    """Tunes a network or an operator and compiles it with the best programs found.

    Args:
        model: a `torch.nn.Module` or `ExportedProgram`, an ONNX model (`onnx.ModelProto`, its
            bytes, or the path of a .onnx file), a Relax `IRModule`, or the name of a built-in
            network. Operators are TE tensors (a list, inputs first), a TensorIR `PrimFunc`, or a
            template with its arguments (`ansor.template`).
        target: "native" (this machine), "llvm -mcpu=...", "cuda", or a TVM target; on "cuda -tf32"
            products in float32 may be rounded for tensor cores. For an Arm core of another machine,
            such as "graviton3", the draft chooses the programs (`trials=0`).
        example_inputs: arguments of a `torch.nn.Module`: one tensor, a sequence of arguments, or a
            mapping of their names, nested as the module takes them. For an ONNX model, arrays
            that fix its dynamic dimensions.
        shapes: of inputs, by name, which fix the dynamic dimensions of an ONNX model or an
            exported program.
        dims: sizes of dynamic dimensions, by their symbol.
        settings: budget and kind of the search, see `ansor.run.settings.Settings`: `minutes`,
            `trials`, `seed`, `database`, `threads` and more.

    Returns:
        the compiled network. An interrupt (Ctrl-C) ends the search, and the best so far is used.

    Raises:
        ArgumentError: an argument is wrong; nothing has been done yet.
        UnsupportedError: the model uses what cannot be imported, or its import computes something
            else than the original; the operator and its layer are named. Or the target has no
            instructions for the precision; the missing flags are named.
        ResultError: the tuned network computes something else than the original, or its error is
            over the budget.
        DatabaseError: the database cannot be used.
        MeasureError: no measurement worker can be started.
    """
    return auto_schedule_many(
        {"model": model},
        target,
        example_inputs={"model": example_inputs},
        sizes={"model": Sizes(shapes, dims)},
        **settings,
    )["model"]


@takes_settings
def tune(operator: object, target: str | Target = "native", **settings: Any) -> TunedModel:
    """Tunes one operator and compiles the best program found.

    Args:
        operator: TE tensors (a list, inputs first), a TensorIR `PrimFunc`, or a template with its
            arguments (`ansor.template`).
        target: as for `auto_schedule`.
        settings: as for `auto_schedule`. Without a budget, `trials` is `config.default_trials`.

    Returns:
        a function of NumPy arrays or torch tensors. Its `source()` shows the loops, and its
        `assembly()` the machine code.

    Raises:
        ArgumentError: an argument is wrong; nothing has been done yet.
        UnsupportedError: the definition cannot be scheduled.

    Other errors are those of `auto_schedule`.
    """
    if not (is_operator(operator) or isinstance(operator, TemplateCall)):
        remedy = "give TE tensors, a PrimFunc or a template; auto_schedule takes networks"
        raise ArgumentError("operator", type(operator).__name__, remedy)
    if all(settings.get(name) is None for name in _BUDGETS):
        settings["trials"] = settings.get("config", FULL).default_trials
    return auto_schedule(operator, target, **settings)


@takes_settings
def auto_schedule_many(
    models: Mapping[str, object],
    target: str | Target = "native",
    *,
    example_inputs: Mapping[str, object] = MappingProxyType({}),
    sizes: Mapping[str, Sizes] = MappingProxyType({}),
    **settings: Any,
) -> dict[str, TunedModel]:
    """Tunes several networks at once: functions that they share are searched once, and the time
    goes where the objective gains most.

    Args:
        models: by name; each is anything that `auto_schedule` takes.
        target: as for `auto_schedule`.
        example_inputs: by the name of the model that needs some.
        sizes: of dynamic dimensions, by the name of the model.
        settings: as for `auto_schedule`; the objective gets the latencies in the order of `models`.

    Other arguments, what is returned for each name, and errors are those of `auto_schedule`.
    """
    began_s = time.monotonic()
    check_models(models, example_inputs)
    given = Settings.of(settings, len(models))
    resolved = target_of(target, given)
    check_short_products(given.precision, resolved)
    with opened_session(given, resolved, began_s) as session:
        import_models(session, models, example_inputs, sizes)
        return finished(session, *search(session))


def apply_best(
    model: object,
    log: object,
    target: str | Target = "native",
    *,
    example_inputs: object = None,
    shapes: Mapping[str, Sequence[int]] = MappingProxyType({}),
    dims: Mapping[str, int] = MappingProxyType({}),
    **settings: Any,
) -> TunedModel:
    """Compiles a model with the best programs of a log or a database, without a measurement.

    The results of each program are checked before it is used. For a function without a record the
    draft chooses. The callbacks get the names of such functions.

    Args:
        model: as for `auto_schedule`.
        log: path of a log or of a database, or a `Database`.
        target: that the programs were measured for.
        example_inputs: as for `auto_schedule`, like `shapes` and `dims`.
        settings: as for `auto_schedule`, those of a search excepted.

    Raises:
        ArgumentError: the log has no record of the model for the target, or a setting is for a
            search.
        DatabaseError: the log cannot be read.

    Other errors are those of `auto_schedule`.
    """
    began_s = time.monotonic()
    for name in (*_OF_SEARCHES, *_OF_RECORDS):
        if name in settings:
            raise ArgumentError(name, settings[name], "nothing is measured here; leave it out")
    check_models({"model": model}, {})
    with opened_records("log", log) as records:
        given = Settings.of({**settings, "database": records}, networks=1)
        resolved = target_of(target, given)
        check_short_products(given.precision, resolved)
        with opened_session(given, resolved, began_s) as session:
            sizes = {"model": Sizes(shapes, dims)}
            import_models(session, {"model": model}, {"model": example_inputs}, sizes)
            for remark in check_applicable(merged(session.networks)[0], records):
                session.note(remark)
            return finished(session, *search(session))["model"]
