"""Retrieval of (query, response) pairs as a library: another name of the package `retrieval.index`.

from evalapp.index import build, open_index
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from retrieval.index import *  # noqa: F403
else:
    from evalapp.layout import add_alias

    add_alias(__name__, "retrieval.index")
