"""Winograd's minimal filtering: transforms, weights, stages, and the definitions they replace."""
