"""Reports for people: progress while a search runs, tables when it has ended.

In: events of `ansor.callbacks` (`progress`), the results of a tuned network (`network_table`).
Out: text; `formatting` aligns it. Nothing here computes what a machine reads.
"""
