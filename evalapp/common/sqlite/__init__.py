"""The database backend for SQLite; see `base`."""
