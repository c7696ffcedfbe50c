"""Pages of corpora and the list of candidates beside the editor."""
