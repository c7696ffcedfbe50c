"""Pages of the scoring room."""
