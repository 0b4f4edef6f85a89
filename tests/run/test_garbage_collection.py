"""The garbage collector ignores earlier objects, and only these."""

from __future__ import annotations

import gc

import pytest

from ansor.run.garbage_collection import frozen_heap


def test_only_what_comes_later_is_scanned() -> None:
    gc.collect()
    before = [object()]
    with frozen_heap():
        assert gc.get_freeze_count() > 0
        assert not any(x is before for x in gc.get_objects())
        later = [object()]
        assert any(x is later for x in gc.get_objects())
    assert gc.get_freeze_count() == 0
    assert any(x is before for x in gc.get_objects())


def test_an_error_ends_it() -> None:
    with pytest.raises(KeyError), frozen_heap():
        raise KeyError
    assert gc.get_freeze_count() == 0


def test_what_the_caller_froze_stays_frozen() -> None:
    kept = [object()]
    gc.freeze()
    try:
        with frozen_heap():
            later = [object()]
            assert not any(x is kept for x in gc.get_objects())
            assert any(x is later for x in gc.get_objects()), "nothing more is frozen"
        assert not any(x is kept for x in gc.get_objects())
    finally:
        gc.unfreeze()
