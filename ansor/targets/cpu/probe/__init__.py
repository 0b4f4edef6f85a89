"""The micro-benchmark of a CPU, which runs once per machine; `kept.py` keeps its results."""
