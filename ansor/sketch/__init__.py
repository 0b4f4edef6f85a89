"""Sketch generation by derivation rules (Ansor §4.1).

In: a `ComputeDAG`. Out: structures (`State`) whose stages are inlined, tiled, fused, cached or
factored, with tile decisions but without numbers; `ansor.annotate` adds the rest of the holes.
Read `generate.py` first, then `rules.py`.
"""
