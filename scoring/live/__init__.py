"""Online scores: the web process asks (`asking`), the worker of the queue `live` answers (`answering`) with models that
stay in memory. Request and answer are short-lived Redis keys; the queue carries only the request id, and a request
whose client has given up is dropped. Nothing is stored."""
