"""Tags of the OpenAPI document, which readers show as its chapters."""

from typing import Any

#: The chapters in the order of the document, with the parts of addresses that they cover.
TAGS = {
    "Projects": ("projects", "members", "invitations", "webhooks", "deliveries"),
    "Data": (
        "items", "systems", "outputs", "ratings", "comparisons", "dialogues", "uploads", "exports", "confirmations",
    ),
    "Campaigns": ("campaigns", "assignments", "flags", "rater-filters", "power", "recruitments", "participants"),
    "Writing": ("writing", "writing-tasks", "writing-flags", "written"),
    "References": ("references", "reference-sets", "candidates", "corpora"),
    "Evaluators": ("evaluators", "scores"),
    "Leaderboards": ("leaderboards", "agreement", "snapshots", "reports"),
    "Runs": ("runs",),
    "Account": ("tokens",),
}  # fmt: skip
_BY_PART = {part: tag for tag, parts in TAGS.items() for part in parts}


def find_tag(path: str) -> str:
    """Return the chapter of an address: of the part of the project, or else of the first part."""
    parts = [part for part in path.removeprefix("/api/v1").split("/") if part]
    return _BY_PART.get(parts[2] if parts[0] == "projects" and len(parts) > 2 else parts[0], parts[0])


def add_tags(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Put every call into a chapter (a hook of drf-spectacular)."""
    for path, calls in result["paths"].items():
        for call in calls.values():
            call["tags"] = [find_tag(path)]
    result["tags"] = [{"name": tag} for tag in TAGS]
    return result
