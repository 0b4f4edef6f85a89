"""Checks that a network computes what the original model computes in its framework."""
