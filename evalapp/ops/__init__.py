"""How the parts of an installation are found, started, watched and ended on one machine.

Plain processes, sockets and files; nothing here knows Django, so that a test runner can use it too.
"""

#: Bytes of a body that is a form or a small JSON document. Without a sign-in no more is taken; more is an upload.
SMALL_BODY = 64 * 1024
