"""The real servers that tests use: installed, started, ended, and asked for by markers and fixtures."""
