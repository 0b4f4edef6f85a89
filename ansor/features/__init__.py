"""Program features by arithmetic on the loop nests of a whole population (Ansor §5.2, appendix B).

In: a `LoopNest`. Out: features `float32 [P, S, F]` for the learned model. File `profile.py`
    computes
the elements that each access touches at each loop depth; the draft reads this profile, too. File
`extract.py` computes the features, and `columns.py` names every column with its unit. Read
`profile.py` first.
"""
