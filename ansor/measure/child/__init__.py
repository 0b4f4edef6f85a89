"""The worker process: it builds, times and checks programs."""
