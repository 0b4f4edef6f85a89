"""Evolutionary search over the programs of a task (Ansor §5.1).

In: populations, a score, a random generator. Out: better populations. One operator per file:
`mutate.py` (a decision moves to a neighbour), `crossover.py` (stages change parents), `descend.py`
(all neighbours of one program); `evolution.py` runs the generations.
"""
