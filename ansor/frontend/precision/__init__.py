"""Mixed precision: which functions of a network multiply short floats, and which tensors are stored
in them."""
