"""Rows of the scoring room: evaluators as applied or trained in a project, curves of trainings, sets of scores, scores,
computed leaderboards."""

from .leaderboards import Leaderboard
from .scores import Evaluator, Score, ScoreSet
from .training import CurvePoint

__all__ = ["CurvePoint", "Evaluator", "Leaderboard", "Score", "ScoreSet"]
