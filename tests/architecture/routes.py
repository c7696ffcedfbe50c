"""The permission table: for each address, who may do what; `test_permissions` checks it. A new address needs a line
here.

`R(need)` means: roles that cover the need get access, members with a lesser role get 403 (or 404), strangers 404,
anonymous users are sent to sign in (pages) or get 401 (API). Needs are those of `evalapp.accounts.roles`, and

- `open`: everybody, without signing in,
- `signed-in`: everybody with an account; the address names no project,
- `mine`: the object belongs to Anna, the annotator, and to no other user, whatever their role.

Named parts of the address are filled from the test's world (see `World.part`): `pk="campaign"` takes the number of a
campaign; the same goes for values of the body. An address that only takes POST says so; one with several methods has a
line for each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Rule:
    need: str
    method: str = "get"
    parts: dict[str, Any] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)
    query: str = ""


def R(need: str, method: str = "get", body: dict[str, Any] | None = None, query: str = "", **parts: Any) -> Rule:
    return Rule(need, method, parts, body or {}, query)


UUID = "5c2f8a4e-8a0e-4a6e-9d3c-0a2b7f1c9e11"
SUBMISSION = {"submission": UUID, "answer": {"quality": 3}}
ANSWER = {"submission": UUID, "answer.quality": "3"}

PAGES: dict[str, list[Rule]] = {
    # ---- the ground
    "home": [R("open")],
    "docs": [R("open")],
    "docs-errors": [R("open")],
    "docs-image": [R("open", name="results/figures/power-power.svg")],
    "docs-page": [R("open", name="how-to/annotate")],
    "docs-search": [R("open", query="?q=agreement")],
    "health-live": [R("open")],
    "health-ready": [R("open")],
    "metrics": [R("open")],  # on this machine; tests/evalapp/common/test_health.py covers other clients
    "project": [R("member")],
    "project-search": [R("read", query="?q=a")],
    "run-list": [R("read")],
    "run": [R("read", pk="run")],
    "run-cancel": [R("write", "post", pk="run")],
    "run-retry": [R("write", "post", pk="run")],
    # ---- people
    "accounts:login": [R("open"), R("open", "post")],
    "accounts:logout": [R("open", "post")],
    "accounts:password-reset": [R("open"), R("open", "post")],
    "accounts:password-reset-sent": [R("open")],
    "accounts:password-reset-confirm": [
        R("open", uidb64="MQ", token="x"),
        R("open", "post", uidb64="MQ", token="x"),
    ],
    "accounts:invitation": [R("open", secret="secret"), R("open", "post", secret="secret")],
    "accounts:account": [R("signed-in"), R("signed-in", "post")],
    "accounts:display": [R("open"), R("open", "post")],
    "accounts:password": [R("signed-in"), R("signed-in", "post")],
    "accounts:own-data": [R("signed-in"), R("signed-in", "post")],
    "accounts:own-data-file": [R("signed-in")],
    "accounts:token-list": [R("signed-in"), R("signed-in", "post")],
    "accounts:token-revoke": [R("mine", "post", pk="token")],
    "accounts:project-create": [R("researcher-somewhere"), R("researcher-somewhere", "post")],
    "accounts:project-settings": [R("manage"), R("manage", "post")],
    "accounts:project-delete": [R("manage"), R("manage", "post")],
    "accounts:member-list": [R("read")],
    "accounts:invitation-create": [R("manage"), R("manage", "post")],
    "accounts:member-role": [R("manage", "post", {"role": "viewer"}, pk="member")],
    "accounts:member-remove": [R("manage", "post", pk="member")],
    "accounts:invitation-revoke": [R("manage", "post", pk="invitation")],
    # ---- data
    "annotation:item-list": [R("read")],
    "annotation:item-show": [R("read", pk="item")],
    "annotation:system-list": [R("read")],
    "annotation:system-kind": [R("write", "post", pk="system")],
    "annotation:upload-list": [R("read"), R("write", "post")],
    "annotation:upload-sample": [R("read", name="items.csv")],
    "annotation:upload-show": [R("read", pk="upload")],
    "annotation:upload-store": [R("write", "post", pk="upload")],
    "annotation:upload-undo": [R("write", "post", pk="upload")],
    "annotation:export-list": [R("read"), R("write", "post")],
    "annotation:export-file": [R("read", pk="export", name="items.jsonl")],
    "annotation:export-delete": [R("write", "post", pk="export")],
    # ---- judging
    "annotation:my-work": [R("signed-in")],
    "annotation:judge": [R("annotate", pk="campaign")],
    "annotation:judge-next": [R("annotate", pk="campaign")],
    "annotation:judge-back": [R("annotate", pk="campaign")],
    "annotation:my-guidelines": [R("annotate", pk="campaign"), R("annotate", "post", pk="campaign")],
    "annotation:my-answers": [R("annotate", pk="campaign")],
    "annotation:judge-one": [
        R("mine", pk="campaign", public="assignment"),
        R("mine", "post", ANSWER, pk="campaign", public="assignment"),
    ],
    "annotation:judge-submit": [R("mine", "post", SUBMISSION, pk="campaign", public="assignment")],
    "annotation:judge-skip": [
        R("mine", pk="campaign", public="assignment"),
        R("mine", "post", {"reason": "unclear"}, pk="campaign", public="assignment"),
    ],
    "annotation:judge-flag": [
        R("mine", pk="campaign", public="assignment"),
        R("mine", "post", {"reason": "broken"}, pk="campaign", public="assignment"),
    ],
    "annotation:campaign-list": [R("read")],
    "annotation:campaign-new": [R("write"), R("write", "post")],
    "annotation:campaign-guidelines-preview": [R("write", "post")],
    "annotation:campaign-estimate": [R("write", "post")],
    "annotation:writing-estimate": [R("write", "post")],
    "annotation:campaign": [R("read", pk="campaign")],
    "annotation:campaign-edit": [R("write", pk="campaign"), R("write", "post", pk="campaign")],
    "annotation:campaign-preview": [R("read", pk="campaign")],
    "annotation:campaign-delete": [R("write", pk="campaign"), R("write", "post", pk="campaign")],
    "annotation:campaign-checks": [R("write", pk="campaign"), R("write", "post", pk="campaign")],
    "annotation:campaign-check-remove": [R("write", "post", pk="campaign", name="practice", number=0)],
    "annotation:campaign-quality": [R("read", pk="campaign")],
    "annotation:campaign-judgements": [R("read", pk="campaign")],
    "annotation:campaign-units": [R("read", pk="campaign")],
    "annotation:campaign-flags": [R("read", pk="campaign")],
    "annotation:campaign-flag-resolve": [R("write", "post", pk="campaign", flag="flag")],
    "annotation:campaign-people": [R("write", pk="campaign"), R("write", "post", pk="campaign")],
    "annotation:campaign-invitation-revoke": [R("write", "post", pk="campaign", invitation="campaign link")],
    "annotation:campaign-move": [
        R("write", pk="campaign", move="pause"),
        R("write", "post", pk="campaign", move="pause"),
    ],
    # ---- corpora
    "retrieval:corpus-list": [R("read")],
    "retrieval:corpus-new": [R("write"), R("write", "post")],
    "retrieval:corpus": [R("read", name="corpus")],
    "retrieval:corpus-add": [R("write", name="corpus"), R("write", "post", name="corpus")],
    "retrieval:corpus-index": [R("write", "post", name="corpus")],
    "retrieval:corpus-delete": [R("write", name="corpus"), R("write", "post", name="corpus")],
    "retrieval:candidates": [R("mine", public="writing task")],
    # ---- writing
    "annotation:write": [R("annotate", pk="writing campaign")],
    "annotation:write-guidelines": [
        R("annotate", pk="writing campaign"),
        R("annotate", "post", pk="writing campaign"),
    ],
    "annotation:write-texts": [R("annotate", pk="writing campaign")],
    "annotation:write-confirm": [
        R("annotate", pk="writing campaign"),
        R("annotate", "post", {"submission": UUID, "text": "no-such-text", "better": "?"}, pk="writing campaign"),
    ],
    "annotation:write-one": [
        R("mine", pk="writing campaign", public="writing task"),
        R("mine", "post", {"submission": UUID, "text": ""}, pk="writing campaign", public="writing task"),
    ],
    "annotation:write-draft": [
        R("mine", "post", {"version": 0, "draft": {}}, pk="writing campaign", public="writing task")
    ],
    "annotation:write-drop": [
        R("mine", "post", {"submission": UUID, "candidate": ""}, pk="writing campaign", public="writing task")
    ],
    "annotation:write-back": [R("mine", "post", {"reference": "none"}, pk="writing campaign", public="writing task")],
    "annotation:write-done": [R("mine", "post", {"submission": UUID}, pk="writing campaign", public="writing task")],
    "annotation:write-flag": [
        R("mine", pk="writing campaign", public="writing task"),
        R("mine", "post", {"reason": "broken"}, pk="writing campaign", public="writing task"),
    ],
    "annotation:write-skip": [
        R("mine", pk="writing campaign", public="writing task"),
        R("mine", "post", {"reason": "unclear"}, pk="writing campaign", public="writing task"),
    ],
    "annotation:writing-new": [R("write"), R("write", "post")],
    "annotation:writing": [R("read", pk="writing campaign")],
    "annotation:writing-edit": [R("write", pk="writing campaign"), R("write", "post", pk="writing campaign")],
    "annotation:writing-preview": [R("read", pk="writing campaign")],
    "annotation:writing-references": [R("read", pk="writing campaign")],
    "annotation:writing-flags": [R("read", pk="writing campaign")],
    "annotation:writing-flag-resolve": [R("write", "post", pk="writing campaign", flag="writing flag")],
    "annotation:writing-attempts": [R("read", pk="writing campaign")],
    "annotation:writing-withdraw": [
        R("write", pk="writing campaign", reference="written"),
        R("write", "post", pk="writing campaign", reference="written"),
    ],
    "annotation:writing-restore": [R("write", "post", pk="writing campaign", reference="written")],
    "annotation:writing-people": [R("write", pk="writing campaign"), R("write", "post", pk="writing campaign")],
    "annotation:writing-invitation-revoke": [R("write", "post", pk="writing campaign", invitation="writing link")],
    "annotation:writing-move": [
        R("write", pk="writing campaign", move="pause"),
        R("write", "post", pk="writing campaign", move="pause"),
    ],
    "annotation:writing-delete": [R("write", pk="writing campaign"), R("write", "post", pk="writing campaign")],
    # ---- scores and rankings
    "scoring:evaluator-list": [R("read")],
    "scoring:score-selected": [
        R("write", query="?evaluators=chrf"),
        R("write", "post", {"evaluators": "chrf"}),
    ],
    "scoring:score-sentinels": [R("write", "post")],
    "scoring:evaluator-apply": [R("write", name="chrf"), R("write", "post", name="chrf")],
    "scoring:combine": [R("write"), R("write", "post")],
    "scoring:combine-again": [R("write", "post", evaluator="evaluator")],
    "scoring:evaluator": [R("read", evaluator="evaluator")],
    "scoring:scores-csv": [R("read", evaluator="evaluator")],
    "scoring:scores-delete": [R("write", evaluator="evaluator"), R("write", "post", evaluator="evaluator")],
    "scoring:distribution-svg": [R("read", evaluator="evaluator")],
    "scoring:distribution-pdf": [R("read", evaluator="evaluator")],
    "scoring:train": [R("write", name="maude"), R("write", "post", name="maude")],
    "scoring:train-start": [R("write", "post", {"check": "check"}, name="maude")],
    "scoring:training-curve": [R("read", pk="run")],
    "scoring:evaluator-upload": [R("write"), R("write", "post")],
    "scoring:evaluator-file": [R("read", evaluator="trained", name="card.md")],
    "scoring:evaluator-tar": [R("read", evaluator="trained")],
    "scoring:evaluator-delete": [R("write", evaluator="trained"), R("write", "post", evaluator="trained")],
    "scoring:systems": [R("read")],
    "scoring:systems-svg": [R("read")],
    "scoring:systems-file": [R("read", ending="csv")],
    "scoring:evaluation": [R("read")],
    "scoring:evaluation-svg": [R("read")],
    "scoring:evaluation-file": [R("read", ending="csv")],
    "scoring:evaluation-board": [R("read", kind="aspects"), R("read", kind="matrix")],
    "scoring:evaluation-board-svg": [R("read", kind="matrix")],
    "scoring:evaluation-board-pdf": [R("read", kind="matrix")],
    "scoring:evaluation-board-file": [R("read", kind="matrix", ending="csv")],
    "scoring:scatter-svg": [R("read", evaluator="evaluator")],
    "scoring:systems-pdf": [R("read")],
    "scoring:evaluation-pdf": [R("read")],
    "scoring:scatter-pdf": [R("read", evaluator="evaluator")],
    "scoring:steps": [R("read")],
    "scoring:choose": [R("write", "post")],
    "scoring:games": [R("write", "post", {"by": "evaluator"})],
    "scoring:steps-svg": [R("read", panel="people")],
    "scoring:steps-pdf": [R("read", panel="people")],
    "scoring:snapshots": [R("read"), R("write", "post", {"board": "systems"})],
    "scoring:snapshots-compare": [R("read")],
    "scoring:snapshot": [R("read", name="snapshot")],
    "scoring:snapshot-file": [R("read", name="snapshot", ending="csv")],
    "scoring:snapshot-delete": [R("write", name="snapshot"), R("write", "post", name="snapshot")],
    "scoring:agreement": [R("read")],
    "scoring:agreement-file": [R("read", ending="csv")],
    "scoring:agreement-svg": [R("read")],
    "scoring:agreement-pdf": [R("read")],
    "scoring:agreement-raters": [R("read"), R("write", "post")],
    "scoring:agreement-calibration": [R("read")],
    "scoring:agreement-power": [R("read")],
    "scoring:rater-filter-move": [R("write", "post", name="filter", move="withdraw")],
    "scoring:live-score": [R("mine", "post", public="writing task")],
    "scoring:item-scores": [R("read", item="item")],
    # ---- references
    "scoring:reference-sets": [R("read")],
    "scoring:reference-set": [R("read", name="original")],
    "scoring:reference-set-file": [R("read", name="original")],
    "scoring:reference-set-delete": [R("write", name="original"), R("write", "post", name="original")],
    "scoring:reference-sets-compare": [R("read")],
    "scoring:reference-sets-merge": [R("write"), R("write", "post")],
    "scoring:annotate": [R("write"), R("write", "post")],
    "scoring:select-references": [R("write"), R("write", "post")],
    "scoring:enhanced": [R("read")],
    "scoring:enhanced-file": [R("read", ending="csv")],
    "scoring:enhanced-svg": [R("read")],
    "scoring:enhanced-pdf": [R("read")],
    "scoring:writing-gold": [R("read", pk="writing campaign")],
    "scoring:robustness": [R("read"), R("write", "post")],
    "scoring:reliability-curves": [R("read"), R("write", "post")],
    "scoring:reliability-curves-svg": [R("read", pk="run", panel="size")],
    "scoring:reliability-curves-pdf": [R("read", pk="run", panel="size")],
}

API: dict[str, list[Rule]] = {
    "api-schema": [R("open")],
    "api-docs": [R("open")],
    # ---- people
    "api-project-list": [R("signed-in"), R("researcher-somewhere", "post", {"slug": "neu"})],
    "api-project": [R("read"), R("manage", "patch"), R("manage", "delete")],
    "api-member-list": [R("read")],
    "api-member": [
        R("read", pk="member"),
        R("manage", "patch", {"role": "viewer"}, pk="member"),
        R("manage", "delete", pk="member"),
    ],
    "api-invitation-list": [R("manage"), R("manage", "post")],
    "api-invitation": [R("manage", pk="invitation"), R("manage", "delete", pk="invitation")],
    "api-token-list": [R("signed-in"), R("signed-in", "post")],
    "api-token": [R("mine", pk="token"), R("mine", "delete", pk="token")],
    # ---- runs
    "api-run-list": [R("read"), R("write", "post")],
    "api-run": [R("read", pk="run")],
    "api-run-cancel": [R("write", "post", pk="run")],
    "api-run-retry": [R("write", "post", pk="run")],
    # ---- reference writing
    "api-project-writing": [R("read"), R("write", "post")],
    "api-writing": [
        R("read", pk="writing campaign"),
        R("write", "patch", pk="writing campaign"),
        R("write", "delete", pk="writing campaign"),
    ],
    "api-writing-open": [R("write", "post", pk="writing campaign")],
    "api-writing-pause": [R("write", "post", pk="writing campaign")],
    "api-writing-resume": [R("write", "post", pk="writing campaign")],
    "api-writing-close": [R("write", "post", pk="writing campaign")],
    "api-writing-progress": [R("read", pk="writing campaign")],
    "api-writing-references": [R("read", pk="writing campaign")],
    "api-writing-attempts": [R("read", pk="writing campaign")],
    "api-writing-flags": [R("read", pk="writing campaign")],
    "api-writing-flag-resolve": [R("write", "post", pk="writing flag")],
    "api-writing-next": [R("annotate", "post", pk="writing campaign")],
    "api-writing-next-confirmation": [R("annotate", "post", pk="writing campaign")],
    "api-writing-task": [
        R("mine", public="writing task"),
        R("mine", "patch", {"version": 0, "draft": {}}, public="writing task"),
    ],
    "api-writing-submit": [R("mine", "post", {"submission": UUID, "text": "Again."}, public="writing task")],
    "api-writing-drop": [R("mine", "post", {"submission": UUID}, public="writing task")],
    "api-writing-back": [R("mine", "post", {"reference": "none"}, public="writing task")],
    "api-writing-done": [R("mine", "post", public="writing task")],
    "api-writing-flag": [R("mine", "post", {"reason": "broken"}, public="writing task")],
    "api-writing-skip": [R("mine", "post", public="writing task")],
    "api-written-withdraw": [R("write", "post", pk="written")],
    "api-written-restore": [R("write", "post", pk="written")],
    "api-confirm-written": [
        R("annotate", "post", {"submission": UUID, "better": "a"}, public="written public"),
    ],
    # ---- data
    "api-uploads": [R("read"), R("write", "post")],
    "api-upload": [R("read", pk="upload"), R("write", "delete", pk="upload")],
    "api-items": [R("read")],
    "api-item": [R("read", pk="item")],
    "api-systems": [R("read")],
    "api-system": [R("read", pk="system"), R("write", "patch", pk="system")],
    "api-outputs": [R("read")],
    "api-references": [R("read")],
    "api-ratings": [R("read")],
    "api-comparisons": [R("read")],
    "api-dialogues": [R("read")],
    "api-exports": [R("read"), R("write", "post")],
    "api-export": [R("read", pk="export"), R("write", "delete", pk="export")],
    "api-export-file": [R("read", pk="export", name="items.jsonl")],
    # ---- judging
    "api-project-campaigns": [R("read"), R("write", "post")],
    "api-campaign": [R("read", pk="campaign"), R("write", "patch", pk="campaign"), R("write", "delete", pk="campaign")],
    "api-campaign-open": [R("write", "post", pk="campaign")],
    "api-campaign-pause": [R("write", "post", pk="campaign")],
    "api-campaign-resume": [R("write", "post", pk="campaign")],
    "api-campaign-close": [R("write", "post", pk="campaign")],
    "api-campaign-progress": [R("read", pk="campaign")],
    "api-campaign-flags": [R("read", pk="campaign")],
    "api-flag-resolve": [R("write", "post", pk="flag")],
    "api-campaign-judgements": [R("read", pk="campaign")],
    "api-campaign-next": [R("annotate", "post", pk="campaign")],
    "api-assignments": [R("signed-in")],
    "api-assignment": [
        R("mine", public="assignment"),
        R("mine", "patch", {"version": 0, "draft": {}}, public="assignment"),
    ],
    "api-assignment-submit": [R("mine", "post", SUBMISSION, public="assignment")],
    "api-assignment-skip": [R("mine", "post", {"reason": "unclear"}, public="assignment")],
    "api-assignment-flag": [R("mine", "post", {"reason": "broken"}, public="assignment")],
    # ---- corpora
    "api-corpora": [R("read"), R("write", "post")],
    "api-corpus": [R("read", name="corpus"), R("write", "delete", name="corpus")],
    "api-corpus-parts": [R("read", name="corpus"), R("write", "post", name="corpus")],
    "api-candidates": [R("read")],
    # ---- scores and rankings
    "api-catalogue": [R("signed-in")],
    "api-evaluator-list": [R("read")],
    "api-trained-list": [R("read"), R("write", "post")],
    "api-trained": [R("read", evaluator="trained"), R("write", "delete", evaluator="trained")],
    "api-trained-file": [R("read", evaluator="trained", name="card.md")],
    "api-online-score": [R("signed-in", "post", name="chrf")],
    "api-online-compare": [R("signed-in", "post", name="chrf")],
    "api-online-reliability": [R("signed-in", "post", name="chrf")],
    "api-reference-set-list": [R("read"), R("write", "post", {"name": "x", "merge": ["original", "original"]})],
    "api-reference-set": [R("read", name="original"), R("write", "delete", name="original")],
    "api-reference-set-comparison": [R("read", name="original", other="original")],
    "api-reference-set-traces": [R("read", name="original")],
    "api-score-list": [R("read"), R("write", "post", {"evaluators": ["chrf"]})],
    "api-score-set": [R("write", "delete", pk="score set")],
    "api-agreement": [R("read")],
    "api-power": [R("read")],
    "api-rater-filter-list": [R("read"), R("write", "post", {"name": "x", "raters": ["r0"], "reason": "why"})],
    "api-rater-filter": [R("read", name="filter"), R("write", "patch", {"active": False}, name="filter")],
    "api-leaderboard-pairs": [R("read")],
    "api-leaderboard-slices": [R("read")],
    "api-leaderboard-aspects": [R("read")],
    "api-leaderboard-matrix": [R("read")],
    "api-leaderboard": [R("read", kind="matrix")],
    "api-snapshot-list": [R("read"), R("write", "post", {"board": "systems"})],
    "api-snapshot": [R("read", name="snapshot"), R("write", "delete", name="snapshot")],
    "api-snapshot-comparison": [R("read", name="snapshot", other="snapshot")],
    "api-leaderboard-systems": [R("read")],
    "api-leaderboard-evaluators": [R("read")],
}
