"""Find, start, monitor and stop the servers of an installation on one machine.

Processes, sockets and files without Django, so that the test runner uses it as well.
"""

#: Largest body, in bytes, of a form or small JSON document. Larger ones are uploads, which need a session or token.
SMALL_BODY = 64 * 1024
