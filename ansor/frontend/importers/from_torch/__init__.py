"""PyTorch models: capture, decomposition, conversion to Relax. Needs the optional PyTorch."""
