"""Variants of functions, such as convolutions by minimal filtering, after functions took other
forms."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ansor.frontend.distinct_functions import extract_functions
from ansor.frontend.precision.function_form import in_form
from ansor.frontend.precision.network_form import ReformedNetwork
from ansor.frontend.precision.stages import WIDE
from ansor.frontend.variants import Variant


def reformed_variants(
    variants: Collection[Variant], network: ReformedNetwork
) -> tuple[Variant, ...]:
    """The variants of the functions of a network in other forms.

    A variant stores its tensors as the function does that it replaces. Functions that multiply
    short floats have none: the transforms of minimal filtering would round once more.
    """
    weights = {function.name: function.weight for function in extract_functions(network.mod)}
    found = []
    for name, (origin, form) in network.origins.items():
        for variant in variants:
            if variant.replaces == origin and form.operands == WIDE:
                own = variant.function
                func = in_form(own.func, form)
                made = replace(own, name=f"{name}_{variant.kind}", func=func, weight=weights[name])
                found.append(replace(variant, replaces=name, function=made))
    return tuple(found)
