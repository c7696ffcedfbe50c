"""Wrong values of arguments with choices: the refusal lists the choices. Tables that do not fit name the way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from evalapp.client import ApiError, Client, InvalidArgument, Project, UploadFaulty

pytestmark = pytest.mark.django_db


def alpha(client: Client) -> Project:
    return client.project("alpha")


#: A call with a wrong value, and some of the choices that its refusal lists.
CALLS: dict[str, tuple[Callable[[Client], Any], tuple[str, ...]]] = {
    "leaderboard": (lambda client: alpha(client).leaderboard("sytems"), ("systems", "evaluators", "slices", "matrix")),
    "leaderboard as file": (
        lambda client: client.session.get_text("projects/alpha/leaderboards/sytems/table.tex"), ("systems",)
    ),
    "ending": (
        lambda client: client.session.get_text("projects/alpha/leaderboards/systems/table.pdf"), ("csv", "tex")
    ),
    "method": (lambda client: alpha(client).leaderboard("systems", method="men"), ("mean", "bradley-terry")),
    "level": (lambda client: alpha(client).leaderboard("evaluators", level="men"), ("segment", "system")),
    "parameter": (lambda client: alpha(client).leaderboard("systems", foo="men"), ("aspect", "method")),
    "export": (lambda client: alpha(client).export("xls"), ("jsonl", "parquet", "xlsx", "label-studio")),
    "download": (lambda client: alpha(client).download("unused", format="xls"), ("jsonl", "xlsx")),
    "run": (lambda client: alpha(client).start("scor"), ("score", "train")),
    "evaluator": (lambda client: alpha(client).score("bleurt4"), ("bleurt",)),
    "several evaluators": (lambda client: alpha(client).score_several(["chrff"]), ("chrf",)),
    "references": (lambda client: alpha(client).score("bleu-4", references="nope"), ("original",)),
    "option": (lambda client: alpha(client).score("bleu-4", options={"smooth": "x"}), ("floor", "exp")),
    "campaign": (
        lambda client: alpha(client).create_campaign(name="x", kind="rate", aspects=["a"]), ("likert", "pairwise")
    ),
    "test": (lambda client: alpha(client).power(test="x"), ("preference", "williams")),
    "kind of system": (lambda client: alpha(client).systems(kind="x").first(), ("machine", "human")),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_refusal_lists_the_choices(rita, name):
    call, choices = CALLS[name]
    with pytest.raises(ApiError) as error:
        call(rita)
    assert [choice for choice in choices if choice not in str(error.value)] == []


def test_lists_take_every_kind_of_system(rita):
    project = rita.project("alpha")
    project.upload_rows("systems", [{"id": "a", "kind": "human"}, {"id": "b", "kind": "machine"}])
    assert [row["name"] for row in project.systems(kind="human")] == ["a"]


def test_tables_with_other_columns_name_the_mapping(rita):
    project = rita.project("alpha")
    wide = pd.DataFrame({"prompt": ["a", "b"], "gpt": ["x", "y"]})
    for call in (
        lambda: project.upload_rows("outputs", wide),
        lambda: project.from_pandas({"outputs": wide}),
    ):
        with pytest.raises(UploadFaulty, match=r"no row has item, system, text.*\n?.*`mapping=` of project.upload"):
            call()
    for call in (lambda: project.upload_rows("results", wide), lambda: project.from_pandas({"results": wide})):
        with pytest.raises(InvalidArgument, match=r"no table 'results'.*outputs.*mapping="):
            call()
    with pytest.raises(InvalidArgument, match="upload_rows"):
        project.from_pandas(wide)
    # A column that some rows have is not of another layout.
    mixed = pd.DataFrame({"item": ["i", None], "system": ["a", "a"], "text": ["x", "y"]})
    with pytest.raises(UploadFaulty) as error:
        project.upload_rows("outputs", [{"item": "i", "system": "a", "text": "x"}, {"system": "a", "text": "y"}])
    assert "mapping" not in str(error.value)
    with pytest.raises(UploadFaulty):
        project.upload_rows("outputs", mixed)


def test_integer_ids_survive_missing_values(rita):
    """pandas makes 1.0 of the id 1 if a value of the column is missing."""
    project = rita.project("alpha")
    items = pd.DataFrame({"id": [1, 2, 3], "context": [["x"]] * 3, "group": [7, None, 8]})
    outputs = pd.DataFrame({"item": [1.0, 2.0], "system": ["a", "a"], "text": ["x", "y"]})
    project.from_pandas({"items": items, "outputs": outputs})
    assert [(row["key"], row["group"]) for row in project.items()] == [("1", "7"), ("2", "2"), ("3", "8")]
    assert [row["item"] for row in project.outputs()] == ["1", "2"]
    with pytest.raises(UploadFaulty, match="item must be text"):
        project.upload_rows("outputs", [{"item": 1.5, "system": "a", "text": "x"}])
