"""Settings of a link for hired participants as people write them (on a page, in the API, in a JSON file): format,
defaults and validation; the answers to its questions; and the rules that decide who passed.

    {"label": "Prolific, November", "places": 100, "id_parameter": "PROLIFIC_PID",
     "meta_parameters": ["STUDY_ID", "SESSION_ID"], "consent": "Markdown", "contact": "study@example.org",
     "questions": [{"name": "age", "question": "How old are you?", "kind": "number", "low": 18, "high": 99},
                   {"name": "english", "question": "Is English your first language?", "kind": "choice",
                    "choices": ["yes", "no"]},
                   {"name": "remarks", "question": "Anything we should know?", "kind": "text", "required": false}],
     "pass_mark": 0.75, "min_controls": 0.7, "min_seconds": 3, "min_agreement": 0.5, "replace_failed": true,
     "outcomes": {"passed": {"address": "https://app.prolific.com/submissions/complete?cc=C1"},
                  "failed": {"code": "C2"}, "screened": {"code": "C3"}, "full": {"code": "C4"}},
     "pay": 2.5, "pay_screened": 0.3, "bonus": 0.5, "bonus_controls": 0.9, "currency": "GBP"}

Rules are left out by null. Shares are from 0 to 1."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from evalapp.names import explain_hidden
from evalapp.translation import gettext as _

from .answers import Problem
from .plan_reading import Option, Reader, get_defaults

#: What a link can end with: the answers count; a rule was failed; too few practice items as expected; no place left;
#: consent refused.
OUTCOMES = ("passed", "failed", "screened", "full", "refused")
QUESTION_KINDS = ("choice", "number", "text")
#: Platform -> name of its parameter with the participant's id, and names of its further parameters.
PLATFORMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "prolific": ("PROLIFIC_PID", ("STUDY_ID", "SESSION_ID")),
    "mturk": ("workerId", ("assignmentId", "hitId")),
    "cloudresearch": ("participantId", ("assignmentId", "projectId")),
    "sona": ("survey_code", ()),
}
ID_LENGTH, META_LENGTH, QUESTION_LENGTH, ANSWER_LENGTH = 100, 200, 300, 2_000
MAX_PLACES, MAX_QUESTIONS, MAX_META = 10_000, 30, 10
#: Columns of the file for payment, before the further parameters.
PAY_COLUMNS = (
    "participant", "rater", "state", "failed_rules", "units", "minutes", "median_seconds", "practice_share", "controls",
    "controls_as_expected", "shared_texts", "agreement", "pay", "bonus", "currency", "code", "consent_version",
    "consented_at", "joined_at", "ended_at", "other_ids_in_browser", "banned", "remark",
)  # fmt: skip
#: A rule on agreement needs this many texts that others have judged, too.
MIN_SHARED = 5
_PARAMETER = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,39}")
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_AMOUNT, _SHARE = Option(0.0, 0, 10_000, type=float), Option(None, 0, 1, type=float, optional=True)
#: Of a number as an answer; larger ones are not stored exactly.
_LIMIT = Option(None, -1e15, 1e15, type=float)
RULES: dict[str, Option] = {
    "lease_minutes": Option(60, 5, 1440, type=int),
    "only_new": Option(False),
    "any_browser": Option(False),
    "ask_export": Option(True),
    "pass_mark": _SHARE,
    "min_controls": _SHARE,
    "min_seconds": Option(None, 0, 3600, type=float, optional=True),
    "min_agreement": _SHARE,
    "replace_failed": Option(False),
    "personal_codes": Option(False),
    "pay": _AMOUNT,
    "pay_failed": _AMOUNT,
    "pay_screened": _AMOUNT,
    "bonus": _AMOUNT,
    "bonus_controls": _SHARE,
}
_FIELDS = {
    "label", "places", "platform", "id_parameter", "meta_parameters", "consent", "contact", "currency", "questions",
    "outcomes", *RULES,
}  # fmt: skip


@dataclass(frozen=True)
class Question:
    """A question before the first text. `low` and `high` limit a number; None: no limit."""

    name: str
    question: str
    kind: str
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    required: bool = True


@dataclass(frozen=True)
class Outcome:
    """What a participant takes back to the platform: a code, an address to return to, and a text in their words."""

    code: str = ""
    address: str = ""
    text: str = ""

    def make_address(self, values: Mapping[str, str]) -> str:
        """The address with `{participant}`, `{code}` and the names of parameters replaced."""
        return _PLACEHOLDER.sub(lambda match: quote(values.get(match[1], ""), safe=""), self.address)


@dataclass(frozen=True, kw_only=True)
class RecruitmentPlan:
    """The settings of a link."""

    label: str = ""
    places: int
    id_parameter: str
    meta_parameters: tuple[str, ...] = ()
    consent: str = ""
    contact: str = ""
    currency: str = ""
    questions: tuple[Question, ...] = ()
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    lease_minutes: int
    only_new: bool
    any_browser: bool
    ask_export: bool
    pass_mark: float | None
    min_controls: float | None
    min_seconds: float | None
    min_agreement: float | None
    replace_failed: bool
    personal_codes: bool
    pay: float
    pay_failed: float
    pay_screened: float
    bonus: float
    bonus_controls: float | None

    def as_dict(self) -> dict[str, Any]:
        """The settings in the form that `read_recruitment` takes."""
        return asdict(self)

    def get_outcome(self, name: str) -> Outcome:
        return self.outcomes.get(name, Outcome())


def read_recruitment(raw: Any) -> tuple[RecruitmentPlan | None, list[Problem]]:
    """The settings with their defaults, or None and the errors by field."""
    if not isinstance(raw, Mapping):
        return None, [("", _("The settings of a link are an object with at least the number of places."))]
    reader = Reader(raw)
    reader.refuse_others(_FIELDS)
    id_parameter, meta = _read_parameters(reader)
    rules = get_defaults(RULES)
    for name, rule in RULES.items():
        if (value := raw.get(name, rule.default)) is not None and (message := rule.explain(value)):
            reader.say(name, message)
        elif value is not None:
            rules[name] = value
    if rules["replace_failed"] and rules["pay_failed"]:
        reader.say("replace_failed", _("A failed participant who is paid keeps the place. Set pay_failed to 0."))
    if raw.get("places") is None:
        reader.say("places", _("Give the number of places: how many participants can complete the study."))
    plan = RecruitmentPlan(
        label=reader.name("label", limit=100),
        places=reader.whole("places", 1, 1, MAX_PLACES),
        id_parameter=id_parameter,
        meta_parameters=meta,
        consent=reader.text("consent", limit=100_000),
        contact=reader.name("contact", limit=200),
        currency=reader.name("currency", limit=10),
        questions=_read_questions(reader),
        outcomes=_read_outcomes(reader, {"participant", "code", id_parameter, *meta}, rules["personal_codes"]),
        **rules,
    )
    return (None if reader.problems else plan), reader.problems


def _read_parameters(reader: Reader) -> tuple[str, tuple[str, ...]]:
    platform = reader.raw.get("platform")
    if platform is not None and platform not in tuple(PLATFORMS):
        reader.say("platform", _("Use one of: %(choices)s.", choices=", ".join(PLATFORMS)))
        platform = None
    usual = PLATFORMS[platform] if platform else ("participant", ())
    name = reader.text("id_parameter", limit=40) or usual[0]
    meta = reader.raw.get("meta_parameters")
    names = usual[1] if meta is None else meta
    if not isinstance(names, (list, tuple)) or len(names) > MAX_META:
        reader.say("meta_parameters", _("Use a list of at most %(n)d names.", n=MAX_META))
        names = ()
    allowed = _("Use a letter, then letters, digits and . _ -, at most 40 characters.")
    if not _PARAMETER.fullmatch(name):
        reader.say("id_parameter", allowed)
    if not all(isinstance(one, str) and _PARAMETER.fullmatch(one) for one in names):
        reader.say("meta_parameters", allowed)
        return name, ()
    if name in names or len(set(names)) < len(names):
        reader.say("meta_parameters", _("A parameter is named twice."))
    elif taken := [one for one in names if one in PAY_COLUMNS]:
        text = _("The file of participants has a column %(name)s already. Use another name.", name=taken[0])
        reader.say("meta_parameters", text)
    return name, tuple(names)


def _read_questions(reader: Reader) -> tuple[Question, ...]:
    rows = reader.raw.get("questions") or []
    if not isinstance(rows, (list, tuple)) or len(rows) > MAX_QUESTIONS:
        reader.say("questions", _("Use a list of at most %(n)d questions.", n=MAX_QUESTIONS))
        return ()
    questions = [_read_question(reader, row, f"questions[{index}]") for index, row in enumerate(rows)]
    names = [row.name for row in questions if row]
    if len(set(names)) < len(names):
        reader.say("questions", _("Two questions have the same name."))
    return tuple(row for row in questions if row)


def _read_question(reader: Reader, row: Any, where: str) -> Question | None:
    if not isinstance(row, Mapping) or not isinstance(row.get("question"), str) or not row["question"].strip():
        reader.say(where, _("A question is an object with name, question and kind."))
        return None
    for key in row:
        if key not in Question.__dataclass_fields__:
            reader.say(f"{where}.{key}", _("A question has name, question, kind, choices, low, high and required."))
    text, kind, name = row["question"].strip(), row.get("kind", "text"), row.get("name")
    if len(text) > QUESTION_LENGTH:
        reader.say(f"{where}.question", _("Use at most %(n)d characters.", n=QUESTION_LENGTH))
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        reader.say(f"{where}.name", _("Use a letter, then a-z, 0-9, - and _, at most 40 characters."))
        name = ""
    if kind not in QUESTION_KINDS:
        reader.say(f"{where}.kind", _("Use one of: %(choices)s.", choices=", ".join(QUESTION_KINDS)))
    choices = row.get("choices") or ()
    if isinstance(choices, (list, tuple)):  # answers are compared without spaces around them
        choices = [one.strip() if isinstance(one, str) else one for one in choices]
    if kind == "choice" and not (
        isinstance(choices, list)
        and len(set(map(str, choices))) == len(choices) >= 2
        and all(isinstance(one, str) and 0 < len(one) <= 200 for one in choices)
    ):
        reader.say(f"{where}.choices", _("Give at least two different answers to choose from."))
        choices = ()
    low, high = row.get("low"), row.get("high")
    for end, limit in (("low", low), ("high", high)):
        if limit is not None and (message := _LIMIT.explain(limit)):
            reader.say(f"{where}.{end}", message)
            low = high = None
    if low is not None and high is not None and low > high:
        reader.say(f"{where}.high", _("The highest value must not be below the lowest."))
    required = row.get("required", True)
    if not isinstance(required, bool):
        reader.say(f"{where}.required", _("Use true or false."))
    return Question(name, text, kind, tuple(choices), low, high, required is not False)


def _read_outcomes(reader: Reader, known: set[str], personal: bool) -> dict[str, Outcome]:
    rows = reader.raw.get("outcomes") or {}
    if not isinstance(rows, Mapping):
        reader.say("outcomes", _("Outcomes are an object by name: %(names)s.", names=", ".join(OUTCOMES)))
        return {}
    outcomes: dict[str, Outcome] = {}
    for name, row in rows.items():
        where = f"outcomes.{name}"
        if name not in OUTCOMES or not isinstance(row, Mapping) or set(row) - {"code", "address", "text"}:
            message = _("An outcome has code, address and text. Outcomes: %(names)s.", names=", ".join(OUTCOMES))
            reader.say(where, message)
            continue
        inner = Reader(row)
        code, text = inner.name("code", limit=100), inner.text("text", limit=2_000)
        address = inner.name("address", limit=500)
        reader.problems += [(f"{where}.{part}", message) for part, message in inner.problems]
        if message := _explain_address(address, known):
            reader.say(f"{where}.address", message)
        if personal and code and name in ("passed", "failed", "screened"):
            reader.say(f"{where}.code", _("Each participant gets a code of their own, so leave this empty."))
        outcomes[name] = Outcome(code, address, text)
    codes = [row.code for row in outcomes.values() if row.code]
    if len(set(codes)) < len(codes):
        reader.say("outcomes", _("Two outcomes have the same code, so the platform could not tell them apart."))
    return outcomes


def _explain_address(address: str, known: set[str]) -> str:
    """The error message for an address to return to; empty if it is valid."""
    if not address:
        return ""
    try:
        parts = urlsplit(address)
        is_web = parts.scheme in ("https", "http") and bool(parts.hostname) and not re.search(r"\s", address)
    except ValueError:
        is_web = False
    if not is_web or "{" in parts.netloc:
        return _("Enter an address that begins with https://.")
    unknown = {name for name in _PLACEHOLDER.findall(address) if name not in known}
    if unknown:
        names = ", ".join(f"{{{name}}}" for name in sorted(known))
        return _("There is no placeholder %(unknown)s. Known: %(known)s.", unknown=", ".join(unknown), known=names)
    return ""


# ---- what participants send -------------------------------------------------------------------------------


def read_participant_id(value: str) -> tuple[str, str]:
    """(id, error message). Spaces around it are removed; an empty message means that the id is valid."""
    text = value.strip()
    if not text:
        return "", _("Your participant id is missing. Open the study with the link of the platform that sent you here.")
    if len(text) > ID_LENGTH or explain_hidden(text) or _PLACEHOLDER.search(text):
        # An address whose placeholder was not replaced, such as {{%PROLIFIC_PID%}}, would give everybody the same id.
        return "", _(
            "Your participant id is not valid. Open the study with the link of the platform that sent you here."
        )
    return text, ""


def make_withdrawn_id(number: int) -> str:
    """The id of a withdrawn participant, with braces so that nobody can come with it."""
    return f"{{withdrawn-{number}}}"


def read_question_answers(
    questions: tuple[Question, ...], given: Mapping[str, str]
) -> tuple[dict[str, Any], list[Problem]]:
    """The answers by name of the question, without those that were left empty, and the errors by name."""
    answers: dict[str, Any] = {}
    problems: list[Problem] = []
    for question in questions:
        text = str(given.get(question.name) or "").strip()
        value, message = _read_question_answer(question, text)
        if message:
            problems.append((question.name, message))
        elif value is not None:
            answers[question.name] = value
    return answers, problems


def _read_question_answer(question: Question, text: str) -> tuple[Any, str]:
    if not text:
        return None, _("Please answer this question.") if question.required else ""
    if question.kind == "choice":
        return (text, "") if text in question.choices else (None, _("Please choose one of the answers."))
    if question.kind == "number":
        return _read_number(question, text)
    if len(text) > ANSWER_LENGTH:
        return None, _("Please write at most %(n)d characters.", n=ANSWER_LENGTH)
    return text, ""


def _read_number(question: Question, text: str) -> tuple[float | None, str]:
    try:
        value = float(text)
    except ValueError:
        return None, _("Please enter a number.")
    low, high = question.low, question.high
    if not abs(value) < 1e15 or (low is not None and value < low) or (high is not None and value > high):
        if low is not None and high is not None:
            return None, _("Please enter a number from %(low)g to %(high)g.", low=low, high=high)
        if low is not None:
            return None, _("Please enter a number from %(low)g.", low=low)
        if high is not None:
            return None, _("Please enter a number up to %(high)g.", high=high)
        return None, _("Please enter a number.")
    return int(value) if value.is_integer() else value, ""


# ---- who passed -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Work:
    """The figures of a participant's answers. Shares are None without answers that they could be computed from;
    `shared` counts the answers to texts that other annotators have judged, too."""

    units: int = 0
    seconds: float = 0.0
    median_seconds: float | None = None
    practice: int = 0
    practice_passed: int = 0
    controls: int = 0
    controls_passed: int = 0
    shared: int = 0
    agreed: int = 0

    @property
    def practice_share(self) -> float | None:
        return self.practice_passed / self.practice if self.practice else None

    @property
    def controls_share(self) -> float | None:
        return self.controls_passed / self.controls if self.controls else None

    @property
    def agreement(self) -> float | None:
        return self.agreed / self.shared if self.shared else None


def list_failed_rules(plan: RecruitmentPlan, work: Work) -> list[str]:
    """The rules that a participant failed: `controls`, `speed`, `agreement`. A rule without data is not failed."""
    failed = []
    if plan.min_controls is not None and work.controls and work.controls_passed / work.controls < plan.min_controls:
        failed.append("controls")
    if plan.min_seconds is not None and work.median_seconds is not None and work.median_seconds < plan.min_seconds:
        failed.append("speed")
    if plan.min_agreement is not None and work.shared >= MIN_SHARED and work.agreed / work.shared < plan.min_agreement:
        failed.append("agreement")
    return failed


def suggest_pay(plan: RecruitmentPlan, state: str, work: Work) -> tuple[float, float]:
    """(pay, bonus) for the state of a participant. The bonus takes the share `bonus_controls` of the controls."""
    pay = {"passed": plan.pay, "failed": plan.pay_failed, "screened": plan.pay_screened}.get(state, 0.0)
    enough = plan.bonus_controls is None or (
        work.controls_share is not None and work.controls_share >= plan.bonus_controls
    )
    return pay, plan.bonus if state == "passed" and enough else 0.0


def agrees_with_others(kind: str, value: Any, others: list[Any], width: float) -> bool | None:
    """Whether an answer agrees with those of other annotators to the same question about the same text. Ratings: at
    most a quarter of the scale (`width`) from their median; verdicts: one of the most frequent. None without others."""
    if not others:
        return None
    if kind == "likert":
        ordered = sorted(others)
        middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
        return bool(abs(value - middle) <= width / 4)
    most = max(others.count(one) for one in others)
    return others.count(value) == most
