"""The services of the writing page, for pages and API: `writing_handout` and `writing_desk` (the page of an item),
`writing_attempts` (submitted texts), `writing_acts` (draft, finish, skip, flag), `writing_back` (take back the last
text) and `writing_later` (confirm, withdraw)."""

from .writing_acts import Draft, finish_task, flag_task, save_draft, skip_task
from .writing_answers import CandidateClosed, Outcome, RoundConflict, SubmissionConflict, TaskClosed
from .writing_attempts import TEXT_LENGTH, drop_candidate, submit_attempt
from .writing_back import NotLast, take_back_last
from .writing_candidates import remember_candidates
from .writing_desk import WHY_TEXT, Desk, DeskCandidate, DeskReference, get_desk
from .writing_handout import next_task
from .writing_later import ToConfirm, confirm_reference, next_confirmation, restore_reference, withdraw_reference

__all__ = [
    "TEXT_LENGTH",
    "WHY_TEXT",
    "CandidateClosed",
    "Desk",
    "DeskCandidate",
    "DeskReference",
    "Draft",
    "NotLast",
    "Outcome",
    "RoundConflict",
    "SubmissionConflict",
    "TaskClosed",
    "ToConfirm",
    "confirm_reference",
    "drop_candidate",
    "finish_task",
    "flag_task",
    "get_desk",
    "next_confirmation",
    "next_task",
    "remember_candidates",
    "restore_reference",
    "save_draft",
    "skip_task",
    "submit_attempt",
    "take_back_last",
    "withdraw_reference",
]
