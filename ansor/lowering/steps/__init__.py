"""How the lowering replays each kind of step on a TensorIR schedule."""
