"""Scores while somebody waits: the web process asks (`asking`), the worker of the queue `live` answers (`answering`)
from models that it keeps warm. Request and answer are short-lived keys of Redis; the queue only carries a request's
number, and a request nobody waits for any more is dropped unexecuted. Nothing is stored."""
