"""Sketch generation by derivation rules (Ansor §4.1).

In: a `ComputeDAG`. Out: structures (`State`) whose stages are inlined, tiled, fused, cached or
factored. They have decisions on tiles, but no chosen numbers. `ansor.annotate` adds the other
decisions.
Read `generate.py` first, then `rules.py`.
"""
