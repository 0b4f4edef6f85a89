"""CPUs: machine parameters, draft model, and code for LLVM."""
