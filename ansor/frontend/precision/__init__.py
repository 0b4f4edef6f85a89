"""Mixed precision: the choice of functions that multiply short floats, and of tensors that are
stored in them."""
