"""Benchmarks: scripts that measure and write JSON with the environment beside the results.

`network` compares whole networks with peers, `operators` single operators with the machine's peak,
`throughput` times the parts of the search. Run them as ``python -m benchmarks.network --help``.
"""
