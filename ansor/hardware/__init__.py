"""What the search knows of the machine: targets, cores, registers, caches, bandwidths."""
