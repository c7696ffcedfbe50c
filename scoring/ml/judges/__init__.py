"""Language models as judges: prompts from a rubric, requests to servers and to models in folders, ratings from answers.

    >>> from scoring.ml.judges import Rubric
    >>> Rubric("How fluent is the text?", 1, 5).points
    (1.0, 2.0, 3.0, 4.0, 5.0)

Explained in docs/how-to/judge-with-a-language-model.md. Nothing here knows a project; `client` needs aiohttp, `local`
torch and transformers.
"""

from scoring.ml.judges.answers import (
    Answer,
    Reading,
    read_rating,
    read_reward,
    read_verdict,
    settle_orders,
    settle_rewards,
)
from scoring.ml.judges.prompts import TEMPLATES, Example, PromptTemplate, check_template
from scoring.ml.judges.requests import Judge, Request
from scoring.ml.judges.rubric import Rubric, RubricError

__all__ = [
    "TEMPLATES", "Answer", "Example", "Judge", "PromptTemplate", "Reading", "Request", "Rubric", "RubricError",
    "check_template", "read_rating", "read_reward", "read_verdict", "settle_orders", "settle_rewards",
]  # fmt: skip
