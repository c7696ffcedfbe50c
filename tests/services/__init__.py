"""The real servers for tests: installed, started, ended, and requested by markers and fixtures."""
