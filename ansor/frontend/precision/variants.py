"""Variants of functions, such as convolutions by minimal filtering, in a network in other forms."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from ansor.config import PRECISION
from ansor.frontend.distinct_functions import extract_functions
from ansor.frontend.precision.function_form import FunctionForm, in_form
from ansor.frontend.precision.reformed_network import ReformedNetwork
from ansor.frontend.precision.stages import WIDE
from ansor.frontend.variants import ConvertedWeight, Variant


def reformed_variants(
    variants: Collection[Variant], network: ReformedNetwork
) -> tuple[Variant, ...]:
    """The variants of the functions of a network in other forms.

    A variant stores its tensors like the function that it replaces. Its products multiply float32,
    or the same dtype as the products of that function.
    """
    weights = {function.name: function.weight for function in extract_functions(network.mod)}
    return tuple(
        made
        for name, (origin, form) in network.origins.items()
        for variant in variants
        if variant.replaces == origin
        for made in _reformed(variant, name, form, weights[name])
    )


def _reformed(variant: Variant, name: str, form: FunctionForm, calls: int) -> Iterator[Variant]:
    """The forms of a variant that stand for a function.

    Args:
        variant: of the function in its first form.
        name: of the function.
        form: of the function.
        calls: of the function.
    """
    if name == variant.replaces:
        yield replace(variant, function=replace(variant.function, weight=calls))
        return
    for operands in dict.fromkeys((WIDE, form.operands)):
        weight, dtypes = variant.weight, list(form.dtypes)
        if operands != WIDE and not _multiplies_short(weight):
            continue
        own = f"{name}_{variant.kind}" + ("" if operands == WIDE else f"_{operands}")
        if weight is not None:
            weight = replace(weight, dtype=operands)
            dtypes[weight.position] = operands
        func = in_form(variant.function.func, FunctionForm(tuple(dtypes), operands))
        function = replace(variant.function, name=own, func=func, weight=calls)
        yield replace(variant, replaces=name, function=function, weight=weight)


def _multiplies_short(weight: ConvertedWeight | None) -> bool:
    """Whether products with a transformed weight may multiply short floats."""
    return weight is not None and weight.transform.size <= PRECISION.max_short_transform
