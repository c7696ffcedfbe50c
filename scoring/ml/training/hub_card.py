"""The README.md of an evaluator on the Hugging Face hub: the hub's metadata, how to load it, the model card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalapp.markup import one_line
from scoring.ml.artefact import Artefact
from scoring.ml.catalogue import Entry
from scoring.ml.encoders.source import DEFAULT_ENCODER
from scoring.ml.training.card import write_card

#: The measured statistics with their names on the hub: correlations with ratings, then shares of right verdicts.
CORRELATIONS = {"pearson": "pearsonr", "spearman": "spearmanr", "kendall": "kendalltau"}
SHARES = {"decided": "accuracy"}


def write_hub_card(
    name: str,
    entry: Entry,
    artefacts: Sequence[Artefact],
    signature: str,
    *,
    licence: str = "",
    datasets: Sequence[str] = (),
    languages: Sequence[str] = (),
) -> str:
    """Return README.md for the model `name` ("organisation/model") on the hub.

    `artefacts` has one model, or one for each fold; `entry` is its line in the catalogue. `licence`, `datasets` and
    `languages` are identifiers of the hub; what is not given is not stated.
    """
    from huggingface_hub import EvalResult, ModelCardData

    results = [EvalResult(**row) for row in _list_results(entry, artefacts[0], datasets)] if len(artefacts) == 1 else []
    metrics = list(dict.fromkeys(result.metric_type for result in results))
    data = ModelCardData(
        model_name=name.rpartition("/")[2],
        library_name="evalapp",
        license=licence or None,
        language=list(languages) or None,
        datasets=list(datasets) or None,
        base_model=_find_base_model(artefacts[0]),
        metrics=metrics or None,
        tags=list(_list_tags(entry, artefacts)),
        eval_results=results or None,
    )
    if len(artefacts) == 1:
        body = write_card(entry, artefacts[0], signature)
    else:
        folds = "\n".join(f"- [fold {number}](fold-{number}/card.md)" for number in range(len(artefacts)))
        body = (
            f"# {entry.name}\n\n{entry.summary}\n\n```\n{one_line(signature)}\n```\n\n"
            f"One model per fold: a text is scored by a model that has not seen its group. Their cards:\n\n{folds}\n"
        )
    return f"---\n{data.to_yaml()}\n---\n\n{body}\n{_usage(name, artefacts[0], len(artefacts) > 1)}"


def _list_results(entry: Entry, artefact: Artefact, datasets: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The agreement of the evaluator itself with human judgements, as the hub's evaluation results."""
    record = artefact.record
    where = {
        "task_type": "text-evaluation",
        "task_name": "Evaluation of generated text",
        "dataset_type": datasets[0] if datasets else record.dataset or "unnamed",
        "dataset_name": f"{record.dataset or 'unnamed'}, held-out groups",
        "dataset_split": "dev",
    }
    for rows, names, what in (
        (record.correlations, CORRELATIONS, "correlation with ratings"),
        (record.verdicts, SHARES, "right verdicts on decided pairs"),
    ):
        for row in rows:
            for kind, metric in names.items():
                if row["evaluator"] == entry.name and row[kind]["value"] is not None:
                    yield {
                        **where,
                        "metric_type": metric,
                        "metric_value": round(float(row[kind]["value"]), 4),
                        "metric_name": f"{kind.capitalize()}: {what}, {row['aspect']}{_describe_estimate(row[kind])}",
                    }


def _describe_estimate(estimate: Mapping[str, Any]) -> str:
    text = f" (n = {estimate['n']}"
    if estimate["low"] is not None:
        text += f", 95 % [{estimate['low']:.3f}, {estimate['high']:.3f}]"
    return f"{text})"


def _list_tags(entry: Entry, artefacts: Sequence[Artefact]) -> Iterator[str]:
    yield from ("evalapp", "text-evaluation", entry.name)
    if "references" not in entry.needs:
        yield "reference-free"
    if artefacts[0].network.encoder is not None:
        yield from ("feature-extraction", "sentence-transformers")
    if any(artefact.record.simulated_judgements for artefact in artefacts):
        yield "simulated-judgements"


def _find_base_model(artefact: Artefact) -> str | None:
    """The encoder's name on the hub, if it has one."""
    if artefact.encoder is None:
        return None
    name = artefact.encoder.name
    if name == DEFAULT_ENCODER:
        return f"sentence-transformers/{name}"
    return name if name.count("/") == 1 and not name.startswith("/") else None


def _usage(name: str, artefact: Artefact, folds: bool) -> str:
    lines = [
        "## Use",
        "",
        "```python",
        "from scoring.ml import Record, load",
        "",
        f'evaluator = load("{name}")',
        'evaluator.score([Record("a text", references=("a reference",), context=("the turn before",))])',
        "```",
        "",
        "`load` checks that the ten inputs in `fixtures.jsonl` still get the scores they had when it was saved.",
        "",
    ]
    if artefact.network.encoder is not None and not folds:
        lines += [
            "Its encoder alone, as token vectors or as the mean of a text's vectors:",
            "",
            "```python",
            "from sentence_transformers import SentenceTransformer",
            "from transformers import AutoModel, AutoTokenizer",
            "",
            f'tokenizer, encoder = AutoTokenizer.from_pretrained("{name}"), AutoModel.from_pretrained("{name}")',
            f'vectors = SentenceTransformer("{name}").encode(["a text"])',
            "```",
            "",
        ]
    return "\n".join(lines)
