"""Rewrites of an imported network before it is split into tasks."""
