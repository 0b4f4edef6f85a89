"""From a program to TensorIR and machine code: the package that knows TVM's schedule.

`lower` replays the steps of a program on a schedule. `reference` is the definition without a
schedule. `passes` rewrite TensorIR, `prefetch` adds prefetches to it.
"""
