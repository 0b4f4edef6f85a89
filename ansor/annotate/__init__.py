"""Random annotation (Ansor §4.2): the decisions beside the tiles, and random programs.

In: a structure from `ansor.sketch`. Out: a complete `Sketch` (`complete.py`), and populations drawn
from it (`sample.py`).
"""
