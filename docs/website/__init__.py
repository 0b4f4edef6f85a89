"""The documentation site: pages from outside `docs/`, and pictures drawn from the code."""
