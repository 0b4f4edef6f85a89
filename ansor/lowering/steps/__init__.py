"""Replay of each kind of step on a TensorIR schedule."""
