"""The winner of each function: leaders are timed again and checked."""
