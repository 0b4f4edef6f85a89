"""Programs as traces of TVM's schedule: they replay, print as Python and compute the same."""

from __future__ import annotations
