"""Rewrites of TensorIR that its schedule cannot express, or that compilers do badly."""
