"""The search of one task: it proposes programs and learns from measurements, and never measures.

In: a compute definition, a cost model, a random generator. Out: batches of programs. The loop that
spends trials is `ansor.run.search.tuner`.
"""
