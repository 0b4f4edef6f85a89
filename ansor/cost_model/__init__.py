"""Cost models: an analytic draft, and boosted trees that learn what the draft gets wrong.

In: a population's `LoopNest` and features. Out: a score per program, the logarithm of its expected
throughput. `draft.py` and `gpu_draft.py` need no measurement; `constants.py` holds their constants.
`gbdt.py` learns from records (Ansor §5.2). `scorer.py` adds the two, and `model.py` trains.
"""
