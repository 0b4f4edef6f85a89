"""The plan of a network's calls: each call finds its operands."""

from __future__ import annotations

import math
from collections import Counter

import tvm
from tvm import relax
from tvm.ir import GenericConst

from ansor.frontend import optimize
from ansor.frontend.call_planning import call_plan
from ansor.frontend.distinct_functions import extract_functions, tir_calls
from ansor.frontend.importers.from_relax import from_relax
from ansor.frontend.operator import import_operator
from ansor.frontend.signature import entry_of
from ansor.measure.call_plan import CallPlan
from ansor.models import build_model
from ansor.workloads import build


def residual() -> tvm.IRModule:
    """ResNet-18, whose shortcuts outlive the calls between."""
    built = build_model("resnet18")
    bound = relax.transform.BindParams("forward", dict(built.params))(built.mod)
    return optimize(from_relax(bound).mod, tvm.target.Target("llvm"))


def two_outputs() -> tvm.IRModule:
    """Two outputs, one of them a view, and an input that is read twice."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((4, 6), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.nn.softmax(x))
            z = builder.emit(relax.op.add(relax.op.sum(y, axis=1, keepdims=True), x))
            view = builder.emit(relax.op.reshape(z, (24,)))
            out = builder.emit_output(relax.Tuple([y, view]))
        builder.emit_func_output(out)
    return optimize(builder.get(), tvm.target.Target("llvm"))


def contents(mod: tvm.IRModule, plan: CallPlan) -> list[tuple[str, str]]:
    """Two calls for each computed operand: the one that computes it, and the last one that wrote to
    its place in the plan."""
    maker: dict[object, str] = {}
    held: dict[int, str] = {}
    pairs = []
    number = 0
    for block in mod[entry_of(mod)].body.blocks:
        for binding in block.bindings:
            value = binding.value
            if not isinstance(value, relax.Call) or str(value.op.name) != "relax.call_tir":
                if isinstance(value, relax.Call):
                    maker[binding.var] = maker.get(value.args[0], "input")
                continue
            call = plan.calls[number]
            fields = list(value.args[1].fields)
            for field, place in zip(fields, call.buffers, strict=False):
                assert (place is None) == isinstance(field, GenericConst)
                if place is not None:
                    pairs.append((maker.get(field, "input"), held.get(place, "input")))
            maker[binding.var] = f"call {number}"
            held |= {int(b): f"call {number}" for b in call.buffers[len(fields) :] if b is not None}
            number += 1
    return pairs


def test_every_operand_lies_where_it_was_written() -> None:
    for mod in (residual(), two_outputs()):
        pairs = contents(mod, call_plan(mod))
        assert pairs
        assert all(expected == found for expected, found in pairs)


def test_calls_are_those_of_the_network() -> None:
    mod = residual()
    plan = call_plan(mod)
    names = [str(call.args[0].name_hint) for call in tir_calls(mod)]
    assert [call.function for call in plan.calls] == names
    weights = {f.name: f.weight for f in extract_functions(mod)}
    assert Counter(names) == Counter(weights)
    for call in plan.calls:
        assert len(call.buffers) == len(mod[call.function].params)


def test_storage_is_shared_and_large_enough() -> None:
    mod = residual()
    plan = call_plan(mod)
    params = [mod[call.function].params for call in plan.calls]
    sizes = [[4 * math.prod(int(n) for n in p.shape) for p in own] for own in params]
    for call, own in zip(plan.calls, sizes, strict=True):
        for place, size in zip(call.buffers, own, strict=True):
            assert place is None or plan.storage_bytes[place] >= size
    assert len(plan.storage_bytes) < len(plan.calls) / 2


def test_an_operator_is_one_call() -> None:
    workload = build("matmul", rows=4, columns=8, depth=2)
    plan = call_plan(import_operator(workload.func))
    assert len(plan.calls) == 1
    assert sorted(b for b in plan.calls[0].buffers if b is not None) == [0, 1, 2]
    assert sorted(plan.storage_bytes) == [32, 64, 128]
