"""Compute definitions as read-only graphs (Ansor §4.1).

In: a TensorIR `PrimFunc` (`from_tir.read_dag`). Out: a `ComputeDAG`, stages and the buffers between
them, with access maps, iteration domains, FLOPs and the paper's predicates. Nothing here but
`from_tir` knows TVM. Read `stage.py` first, then `graph.py`, `predicates.py`.
"""
