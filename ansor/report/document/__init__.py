"""The content of a report, independent of its format.

In: a saved network, the data of its search and of a comparison (`inputs`), or records of a
database. Out: one frozen `Document` (`document`), made by `collect`. The package
`ansor.report.html` and the modules `ansor.report.markdown` and `ansor.report.write` turn it into
text. Read `document` first.
"""
