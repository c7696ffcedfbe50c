"""Evaluators that come trained with the package."""
