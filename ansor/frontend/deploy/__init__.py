"""The tuned network: compiled, called, saved and loaded."""
