"""Retrieval of (query, response) pairs by exact Jaccard similarity of token sets: a library of its own, no Django."""
