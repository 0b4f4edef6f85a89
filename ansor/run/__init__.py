"""One run: a model becomes tasks, the tuner spends trials, winners go into the network."""
