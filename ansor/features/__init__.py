"""Program features by arithmetic on the loop nests of a whole population (Ansor §5.2, appendix B).

In: a `LoopNest`. Out: `profile.py`, what each access touches at each loop depth, which the draft
model reads too; `extract.py`, `float32 [P, S, F]` for the learned model; `columns.py` names every
column with its unit. Read `profile.py` first.
"""
