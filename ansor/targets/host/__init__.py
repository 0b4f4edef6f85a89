"""The host process: its threads, its cores and its memory."""
