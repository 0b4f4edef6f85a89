"""What the search knows of the machine: targets, cores, registers, caches, bandwidths.

In: a target as a user names it (`target.resolve_target`). Out: a `Hardware` (`detect.detect`), the
parameters that sketch rules, features and the draft model read. Vector registers come from the
target's features, caches from the system, and what only a clock can tell (peak, bandwidths,
overhead) from a micro-benchmark of three to ten seconds (`probe`) that is run once per machine and
kept (`measured`). Read `cpu.py` first, then `detect.py`.
"""
