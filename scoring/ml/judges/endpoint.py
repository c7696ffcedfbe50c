"""Where judges are asked, and the outcome of a request: servers by `client`, models in folders by `local`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scoring.ml.errors import ScoringError
from scoring.ml.judges.answers import Answer
from scoring.ml.judges.requests import Request

if TYPE_CHECKING:
    from scoring.ml.engine import Dtype


class EndpointError(ScoringError):
    """The endpoint cannot be used; the message says why and never contains the key."""


@dataclass(frozen=True)
class Endpoint:
    """A language model as the administrator configured it: an OpenAI-compatible server at `url`, or a model in a
    `folder` of this machine.

    Prices are per million tokens; `timeout` is in seconds. `key` returns the API key; it is read when requests are sent
    and stored nowhere. `dtype`, `device` and `batch_tokens` (None: what suits the device) are for a folder.
    """

    name: str
    url: str
    models: tuple[str, ...]
    at_once: int = 8
    price_in: float = 0.0
    price_out: float = 0.0
    timeout: float = 60.0
    has_logprobs: bool = True
    key: Callable[[], str] = str
    folder: str = ""
    dtype: Dtype = "fp32"
    device: str = "auto"
    batch_tokens: int | None = None

    def compute_cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the price of so many tokens."""
        return (prompt_tokens * self.price_in + completion_tokens * self.price_out) / 1e6


@dataclass(frozen=True)
class Outcome:
    """The answer to a request, or the `reason` why there is none. `settle` frees its place; call it when stored."""

    request: Request
    answer: Answer | None
    reason: str
    settle: Callable[[], None]
