"""Programs as data: steps, decisions, sketches, and the loops of a whole population.

This package imports no TVM. `ansor.lowering` turns one program into TensorIR.
"""
