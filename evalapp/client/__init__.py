"""Typed Python client of an installation, over HTTP and without Django. Early stopping for training loops is in
`evalapp.client.callback`, which needs transformers and is not imported here."""

from evalapp.client.campaigns import Assignment, Campaign
from evalapp.client.client import Client
from evalapp.client.errors import (
    ApiError,
    BadRequest,
    ClientError,
    Conflict,
    ConnectionFailed,
    Fault,
    InvalidArgument,
    MissingFile,
    MissingPackage,
    NotAllowed,
    NotFinished,
    NotFound,
    NotSignedIn,
    RunCancelled,
    RunFailed,
    ServerError,
    TimedOut,
    TooManyRequests,
    Unavailable,
    UnexpectedAnswer,
    UploadCancelled,
    UploadFaulty,
    WrongOrder,
)
from evalapp.client.evaluators import Evaluator, OnlineScores, Pair, Record
from evalapp.client.exports import Export
from evalapp.client.leaderboards import Leaderboard
from evalapp.client.progress import Progress
from evalapp.client.projects import Project
from evalapp.client.reports import Report
from evalapp.client.rows import Rows
from evalapp.client.runs import Run
from evalapp.client.session import Retry
from evalapp.client.uploads import Upload

__all__ = [
    "ApiError",
    "Assignment",
    "BadRequest",
    "Campaign",
    "Client",
    "ClientError",
    "Conflict",
    "ConnectionFailed",
    "Evaluator",
    "Export",
    "Fault",
    "InvalidArgument",
    "Leaderboard",
    "MissingFile",
    "MissingPackage",
    "NotAllowed",
    "NotFinished",
    "NotFound",
    "NotSignedIn",
    "OnlineScores",
    "Pair",
    "Progress",
    "Project",
    "Record",
    "Report",
    "Retry",
    "Rows",
    "Run",
    "RunCancelled",
    "RunFailed",
    "ServerError",
    "TimedOut",
    "TooManyRequests",
    "Unavailable",
    "UnexpectedAnswer",
    "Upload",
    "UploadCancelled",
    "UploadFaulty",
    "WrongOrder",
]
