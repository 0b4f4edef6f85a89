"""Networks in other precisions than the model's: which calls multiply short floats.

In: a network in float32 and an error budget. Out: the network with a form for each call. Either the
budget alone decides (`assignment`), or measured latencies do, too (`mixture`). `phase` has the
steps of a run.
"""
