"""Rows of the scoring room: evaluators as applied in a project, sets of scores, scores, computed leaderboards."""

from .leaderboards import Leaderboard
from .scores import Evaluator, Score, ScoreSet

__all__ = ["Evaluator", "Leaderboard", "Score", "ScoreSet"]
