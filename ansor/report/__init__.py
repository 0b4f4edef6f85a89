"""Reports for people: tables of tasks and latencies, progress on a terminal."""
