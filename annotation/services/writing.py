"""Reference writing as doors call it: pages, API and commands import from here. The work is in `writing_plans` (a
campaign from plan to end), `writing_handout` and `writing_desk` (what lies before somebody who writes),
`writing_attempts` (texts that are sent), `writing_acts` (draft, end, skip, flag), `writing_back` (one's own last text
taken back) and `writing_later` (confirm, withdraw)."""

from .writing_acts import Draft, finish_task, flag_task, save_draft, skip_task
from .writing_answers import CandidateClosed, Outcome, RoundConflict, SubmissionConflict, TaskClosed
from .writing_attempts import TEXT_LENGTH, drop_candidate, submit_attempt
from .writing_back import NotLast, take_back_last
from .writing_candidates import remember_candidates
from .writing_desk import WHY_TEXT, Desk, DeskCandidate, DeskReference, get_desk
from .writing_handout import next_task
from .writing_later import ToConfirm, confirm_reference, next_confirmation, restore_reference, withdraw_reference
from .writing_plans import (
    CHANGEABLE,
    close_writing,
    create_writing,
    delete_writing,
    estimate_writing,
    list_opening_problems,
    open_writing,
    pause_writing,
    resume_writing,
    update_writing,
)

__all__ = [
    "CHANGEABLE",
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
    "close_writing",
    "confirm_reference",
    "create_writing",
    "delete_writing",
    "drop_candidate",
    "estimate_writing",
    "finish_task",
    "flag_task",
    "get_desk",
    "list_opening_problems",
    "next_confirmation",
    "next_task",
    "open_writing",
    "pause_writing",
    "remember_candidates",
    "restore_reference",
    "resume_writing",
    "save_draft",
    "skip_task",
    "submit_attempt",
    "take_back_last",
    "update_writing",
    "withdraw_reference",
]
