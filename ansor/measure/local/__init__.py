"""Worker processes of this machine, and their jobs."""
