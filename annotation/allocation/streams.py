"""Seeded random numbers. Each depends on its labels only, so every decision can be recomputed from the campaign's
seed."""

import hashlib

#: Ranks and draws are integers in [0, SPAN), which fit into a signed 32-bit column.
SPAN = 2**31 - 1


def draw(*labels: int | str) -> int:
    """A pseudorandom number in [0, SPAN) determined by `labels` (BLAKE2b of their text)."""
    digest = hashlib.blake2b("/".join(map(str, labels)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % SPAN


def coin(*labels: int | str) -> bool:
    """A fair coin determined by `labels`."""
    return draw(*labels) % 2 == 1
