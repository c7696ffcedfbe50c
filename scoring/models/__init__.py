"""Evaluators, scores, training curves, leaderboards, snapshots, reports, traces of reference selections, steps of
studies, and answers of judges."""

from .judges import JudgeAnswer, JudgeTemplate
from .leaderboards import Leaderboard, Snapshot
from .reference_selection import SELECTED, SELECTED_KINDS, SelectionTrace
from .scores import UNKNOWN, Evaluator, Score, ScoreSet
from .shared_reports import SharedReport
from .studies import StudyStep
from .training import CurvePoint

__all__ = [
    "SELECTED", "SELECTED_KINDS", "UNKNOWN", "CurvePoint", "Evaluator", "JudgeAnswer", "JudgeTemplate", "Leaderboard",
    "Score",
    "ScoreSet", "SelectionTrace", "SharedReport", "Snapshot", "StudyStep",
]  # fmt: skip
