"""A report as one page of HTML that loads nothing.

In: a `Document`. Out: HTML. `page` fills the template page.html.j2, and `charts` makes Vega-Lite
specifications, which the page draws with the Vega that it contains. Needs the extra `report`.
"""
