"""Minimal filtering (Winograd): transforms, weights and definitions of convolutions."""
