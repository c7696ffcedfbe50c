"""How the parts of an installation are found, started, watched and ended on one machine.

Plain processes, sockets and files; nothing here knows Django, so that a test runner can use it too.
"""
