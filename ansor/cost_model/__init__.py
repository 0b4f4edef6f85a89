"""Cost models: an analytic draft, and boosted trees that learn what the draft gets wrong.

In: a population's `LoopNest` and features. Out: a score per program, the logarithm of its expected
throughput. `draft.py` needs no measurement; `gbdt.py` learns from records (Ansor §5.2);
`scorer.py` puts the two together, and `model.py` is what learns.
"""
