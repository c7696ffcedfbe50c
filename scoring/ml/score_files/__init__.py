"""`evalapp score`: scores of text files without project or database."""
