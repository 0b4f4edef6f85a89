"""Networks in bfloat16 have the calls of the network in float32, and compute nearly the same."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pytest
import tvm
from small_networks import TARGET, results, small_network
from tvm import relax

from ansor.dag.from_tir.read import read_dag
from ansor.frontend import extract_functions, import_model, optimize
from ansor.frontend.distinct_functions import tir_calls
from ansor.frontend.passes.groups.network import with_whole_groups
from ansor.frontend.precision.network_form import NetworkForms, network_forms
from ansor.frontend.precision.reformed_network import with_forms
from ansor.frontend.precision.stages import is_exact
from ansor.frontend.precision.variants import reformed_variants
from ansor.frontend.variants import KINDS, optimize_with_variants, with_variants
from ansor.program.dot_instructions import DOT_INSTRUCTIONS
from ansor.run.check.deviation import squared_error

SHORT = "bfloat16"
INPUT_COPY = "to_bfloat16"


@cache
def forms_of(name: str) -> NetworkForms:
    return network_forms(optimize(import_model(name).mod, TARGET), SHORT)


def in_short(forms: NetworkForms) -> tvm.IRModule:
    return with_forms(forms, forms.forms(forms.multiplying)).mod


def names_of(mod: tvm.IRModule) -> list[str]:
    return [str(call.args[0].name_hint) for call in tir_calls(mod)]


@pytest.mark.parametrize(
    ("name", "copies", "products"),
    [("resnet50", 0, 54), ("mobilenet_v2", 0, 36), ("bert_base", 1, 96)],
)
def test_the_calls_are_those_in_float32(name: str, copies: int, products: int) -> None:
    forms = forms_of(name)
    before, after = names_of(forms.mod), names_of(in_short(forms))
    own = [called for called in after if called != INPUT_COPY]
    assert len(after) - len(own) == copies
    assert [called.split(f"_{SHORT}")[0] for called in own] == before
    assert len(forms.multiplying) == products


@pytest.mark.parametrize(("name", "biases"), [("resnet50", 54), ("mobilenet_v2", 33)])
def test_products_of_a_functions_own_parameters_have_biases_to_correct(
    name: str, biases: int
) -> None:
    """A pointwise convolution that is joined to the depthwise one before has other data."""
    forms = forms_of(name)
    found = [(use, forms.functions[use.function].biased) for use in forms.flow.uses]
    products = [(use, product) for use, product in found if product is not None]
    assert all(use.inputs[product.data] is not None for use, product in products)
    assert len(products) == biases


@pytest.mark.parametrize("name", ["resnet50", "mobilenet_v2", "bert_base"])
def test_no_function_converts_an_activation_and_does_nothing_else(name: str) -> None:
    before = Counter(f.name for f in extract_functions(forms_of(name).mod))
    after = {f.name.split(f"_{SHORT}")[0] for f in extract_functions(in_short(forms_of(name)))}
    assert after - {"to"} == set(before)


@pytest.mark.parametrize("name", ["resnet50", "mobilenet_v2", "bert_base"])
def test_products_read_bfloat16_and_add_up_in_float32(name: str) -> None:
    for function in extract_functions(in_short(forms_of(name))):
        dag = read_dag(function.func)
        for stage in dag.stages.values():
            if stage.name.startswith(("conv", "matmul")) and stage.reduce:
                assert {dag.buffers[read.buffer].dtype for read in stage.reads} == {SHORT}
                assert dag.buffers[stage.output].dtype == "float32"


def test_inputs_and_results_keep_their_dtypes() -> None:
    forms = forms_of("bert_base")
    function = in_short(forms)["forward"]
    assert [str(p.ty.dtype) for p in function.params] == ["float32"]
    assert str(function.ret_ty.dtype) == "float32"


def test_a_small_network_computes_nearly_the_same() -> None:
    forms = network_forms(optimize(small_network(), TARGET), SHORT)
    error = squared_error(results(forms.mod), results(in_short(forms)))
    assert 1e-8 < error < 1e-4  # it rounds, and not more than it should


def test_without_short_calls_a_network_stays_as_it_is() -> None:
    forms = network_forms(optimize(small_network(), TARGET), SHORT)
    mod = with_forms(forms, forms.forms(())).mod
    assert names_of(mod) == names_of(forms.mod)
    np.testing.assert_array_equal(results(mod), results(forms.mod))


def test_any_choice_of_calls_is_a_network() -> None:
    forms = network_forms(optimize(small_network(), TARGET), SHORT)
    expected = results(forms.mod)
    for call in sorted(forms.multiplying):
        mod = with_forms(forms, forms.forms([call])).mod
        assert 0 < squared_error(expected, results(mod)) < 1e-4


def test_what_lies_between_short_tensors_without_arithmetic_is_short() -> None:
    forms = network_forms(optimize(small_network(), TARGET), SHORT)
    stored = forms.stored_short(forms.multiplying)
    exact = [
        use
        for use in forms.flow.uses
        if all(map(is_exact, forms.functions[use.function].dag.stages.values()))  # type: ignore[union-attr]
    ]
    inner = [use for use in exact if not set(use.inputs) & forms.flow.inputs]
    assert inner
    assert all(set(use.outputs) <= stored for use in inner)


def test_what_a_function_makes_of_integers_is_not_short() -> None:
    """A conversion of integers does no arithmetic, but bfloat16 does not hold its results."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((4, 6), "int32"))
    weight = relax.const(np.ones((6, 3), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            floats = builder.emit(relax.op.astype(x, "float32"))
            rows = builder.emit(relax.op.nn.softmax(floats))
            out = builder.emit_output(relax.op.matmul(rows, weight))
        builder.emit_func_output(out)
    forms = network_forms(optimize(builder.get(), TARGET), SHORT)
    first, second, _ = forms.flow.uses
    stored = forms.stored_short(forms.multiplying)
    assert not set(first.outputs) & stored
    assert set(second.outputs) <= stored


def test_variants_of_a_short_function_multiply_both_dtypes() -> None:
    mod, variants = optimize_with_variants(import_model("resnet18").mod, TARGET)
    forms = network_forms(mod, SHORT)
    network = with_forms(forms, forms.forms(forms.multiplying))
    found = reformed_variants(variants, network)
    assert found
    for variant in found:
        replaced = network.mod[variant.replaces]
        assert variant.weight is not None
        position, dtype = variant.weight.position, variant.weight.dtype
        pairs = enumerate(zip(variant.function.func.params, replaced.params, strict=True))
        for number, (param, before) in pairs:
            assert str(param.dtype) == (dtype if number == position else str(before.dtype))
    by_kind = {kind: {v.weight.dtype for v in found if v.kind == kind} for kind in KINDS}  # type: ignore[union-attr]
    assert by_kind["winograd2"] == {"float32", SHORT}
    assert by_kind["winograd4"] == {"float32"}, "its transforms amplify the rounding"


def test_functions_in_float32_keep_their_variants() -> None:
    mod, variants = optimize_with_variants(import_model("resnet18").mod, TARGET)
    forms = network_forms(mod, SHORT)
    whole = with_forms(forms, forms.forms(()))
    kept = reformed_variants(variants, whole)
    assert {v.function.name for v in kept} == {v.function.name for v in variants}
    own = {v.function.name: v.function.func for v in variants}
    assert all(v.function.func.same_as(own[v.function.name]) for v in kept)
    assert {v.weight.dtype for v in kept if v.weight is not None} == {"float32"}


def test_variants_take_the_weights_of_functions_in_whole_groups() -> None:
    """The first convolution has three channels, and a fourth one of zeros."""
    mod, variants = optimize_with_variants(small_network(), TARGET)
    forms = network_forms(mod, SHORT)
    network = with_forms(forms, forms.forms(forms.multiplying))
    grouped = with_whole_groups(network.mod, DOT_INSTRUCTIONS)
    (first,) = (f for f in extract_functions(grouped) if f.name == "fused_conv2d_relu_bfloat16")
    assert [int(size) for size in first.func.params[1].shape] == [3, 3, 4, 8]
    chosen = {v.replaces: v for v in reformed_variants(variants, network)}
    assert chosen
    error = squared_error(results(forms.mod), results(with_variants(grouped, chosen)))
    assert 1e-8 < error < 1e-4
