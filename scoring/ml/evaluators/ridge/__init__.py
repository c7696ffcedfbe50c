"""Regression of people's judgements on frozen text vectors, trained in seconds."""
