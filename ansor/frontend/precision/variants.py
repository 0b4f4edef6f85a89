"""Variants of functions, such as convolutions by minimal filtering, in a network in other forms."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ansor.frontend.distinct_functions import extract_functions
from ansor.frontend.precision.network_form import ReformedNetwork
from ansor.frontend.variants import Variant


def kept_variants(variants: Collection[Variant], network: ReformedNetwork) -> tuple[Variant, ...]:
    """The variants of the functions that still have the form that they had.

    A function in another form has none. With short operands the transforms of minimal filtering
    would round once more. With short tensors TVM compiles them wrongly: a bound value that converts
    bfloat16 becomes a conversion of its bits.
    """
    weights = {function.name: function.weight for function in extract_functions(network.mod)}
    kept = [v for v in variants if v.replaces in weights]
    return tuple(replace(v, function=replace(v.function, weight=weights[v.replaces])) for v in kept)
