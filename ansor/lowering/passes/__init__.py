"""Rewrites of TensorIR for what its schedule cannot express, or compilers do badly."""
