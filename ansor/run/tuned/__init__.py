"""`TunedModel`, its search data, and its file."""
