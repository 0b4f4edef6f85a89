"""Python's garbage collector, kept from what was there before."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def frozen_heap() -> Iterator[None]:
    """Objects that exist now are not looked at by the garbage collector until the end.

    PyTorch and TVM make a quarter of a million of them when they are imported; one look at all
    takes 0.15 s, and a search makes enough new ones to cause it. Where the caller has frozen some,
    nothing changes.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
