"""Rows of the annotation room: what is judged (data), what judging is (campaigns), what was uploaded,
and reference writing."""

# ruff: noqa: F401 - other modules import these names from here
from .campaigns import (
    Assignment,
    Campaign,
    CampaignAspect,
    CampaignMember,
    ItemFlag,
    Judgement,
    Slot,
    Unit,
)
from .data import (
    Aspect,
    Comparison,
    CorpusPair,
    Dialogue,
    Item,
    Output,
    Rating,
    Reference,
    ReferenceSet,
    System,
)
from .filters import RaterFilter
from .imported_references import AttemptElsewhere, WrittenElsewhere
from .kept import TextBlock
from .recruitment import ConsentText, Participant, ParticipantBan, Recruitment
from .uploads import Upload, UploadChange, UploadFault
from .writing import (
    WritingAttempt,
    WritingCampaign,
    WritingCandidate,
    WritingFlag,
    WritingMember,
    WritingTask,
    WritingUnit,
    WrittenConfirmation,
    WrittenReference,
)
