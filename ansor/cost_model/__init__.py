"""Cost models: the draft of a target, and boosted trees that learn the errors of the draft.

In: a population of programs. Out: a score per program, the logarithm of its expected throughput.
The draft needs no measurement; it belongs to the kind of target (`ansor.targets.search`). `gbdt.py`
learns from records (Ansor §5.2). `scorer.py` adds the two, and `model.py` trains.
"""
