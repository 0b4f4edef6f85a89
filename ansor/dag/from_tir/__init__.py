"""Reads TensorIR into a `ComputeDAG`; the only part of `dag` that imports TVM."""
