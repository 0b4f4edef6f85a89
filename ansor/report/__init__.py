"""Reports for people: progress while a search runs, tables when it has ended.

In: events of `ansor.callbacks` (`progress`), the results of a tuned network (`network_table`,
`network_html`), files of results (`document`). Out: text; `formatting` aligns it. `write` makes a
report as HTML, Markdown or JSON.
"""
