"""Keeps Python's garbage collector from objects that existed before."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def frozen_heap() -> Iterator[None]:
    """The garbage collector ignores all objects that exist at the start of the context.

    Imports of PyTorch and TVM create a quarter of a million objects. A full collection takes
    0.15 s, and the new objects of a search trigger it. If the caller has frozen objects, nothing
    changes.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
