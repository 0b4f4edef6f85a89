"""The search policies of OpEvo, of G-BFS and N-A2C, and of AutoTVM.

In: sketches and measured latencies. Out: batches of programs. Unlike `SearchPolicy`, these policies
know latencies alone. `row_policy.py` has their common parts, and the draft as a filter.
The published parameters are in `ansor.config.policies`, and `ansor.policy.registry` has the names.
"""
