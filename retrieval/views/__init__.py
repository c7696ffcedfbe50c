"""Pages of corpora, and the list of candidates for the writing page."""
