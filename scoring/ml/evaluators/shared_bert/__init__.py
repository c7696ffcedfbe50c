"""Shared BERT with one head per aspect (Reddy 2022): P(output is good) for several aspects together."""
