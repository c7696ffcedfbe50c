"""Rows of the scoring room: evaluators as applied or trained in a project, curves of trainings, sets of scores, scores,
computed leaderboards and snapshots of them, traces of annotations."""

from .annotating import AnnotationTrace
from .leaderboards import Leaderboard, Snapshot
from .scores import UNKNOWN, Evaluator, Score, ScoreSet
from .training import CurvePoint

__all__ = ["UNKNOWN", "AnnotationTrace", "CurvePoint", "Evaluator", "Leaderboard", "Score", "ScoreSet", "Snapshot"]
