"""The catalogue entries of MAUDE and its rivals. No torch here."""

from __future__ import annotations

from dataclasses import replace

from scoring.ml.catalogue import PAPER, RECOMMENDED, Entry
from scoring.ml.evaluators.unreferenced.options import (
    CLASSIFIER,
    COMMON,
    DIFFERENCE,
    READER,
    RELEASED,
    TRANSITION,
    VECTORS,
)
from scoring.ml.options import SCORING, choice

_PLACE = "scoring.ml.evaluators.unreferenced"
_FORMS = (
    choice(
        "form",
        ("unreferenced", "referenced", "blended"),
        "Kind of score: unreferenced (does the reply follow its context), referenced (is it similar to a reference), "
        "or blended (both; comparable only among texts scored together).",
    ),
    choice("blend", ("min", "max", "arithmetic", "geometric"), "How both scores are combined.", advanced=True),
)
MAUDE = Entry(
    name="maude",
    kind="trained",
    summary="Whether a reply follows its dialogue: a recurrent network over frozen utterance vectors, no reference.",
    scale=(0.0, 1.0),
    needs=("context", "encoder"),
    options=SCORING,
    profiles=(RECOMMENDED, PAPER),
    citation="Sinha et al. 2020, Learning an Unreferenced Metric for Online Dialogue Evaluation",
    implementation=f"{_PLACE}.maude:Maude",
    train_options=(*COMMON, *VECTORS, *TRANSITION, DIFFERENCE, *CLASSIFIER),
    train_needs=("dialogues",),
    profile_defaults={
        PAPER: {
            **RELEASED,
            "layers": 2,
            "pooling": "cls",
            "batches": "replies",
            "pad_attended": True,
            "pool_zeros": True,
        }
    },
)
BERT_NLI = replace(
    MAUDE,
    name="bert-nli",
    summary="Whether a reply follows its dialogue: one frozen vector of the whole context, no reference.",
    citation="Sinha et al. 2020, Learning an Unreferenced Metric for Online Dialogue Evaluation (DistilBERT-NLI)",
    implementation=f"{_PLACE}.rivals:BertNli",
    train_options=(*COMMON, *VECTORS, DIFFERENCE, *CLASSIFIER),
    profile_defaults={PAPER: {**RELEASED, "pooling": "cls", "batch_size": 64}},
)
INFERSENT = replace(
    MAUDE,
    name="infersent",
    summary="Whether a reply follows its dialogue: learned recurrent encoders of context and reply, no reference.",
    citation="Conneau et al. 2017, Supervised Learning of Universal Sentence Representations; as in Sinha et al. 2020",
    implementation=f"{_PLACE}.rivals:InferSent",
    train_options=(*COMMON, *READER, DIFFERENCE, *CLASSIFIER),
    profile_defaults={
        RECOMMENDED: {"max_length": 64},
        PAPER: {**RELEASED, "embedding": 300, "hidden": 300, "batch_size": 1024, "dropout": 0.0},
    },
)
RUBER = replace(
    MAUDE,
    name="ruber",
    summary="Whether a reply follows its context, its similarity to a reference, or both blended.",
    scale=(-1.0, 1.0),
    options=(*SCORING, *_FORMS),
    citation="Tao et al. 2018, RUBER: An Unsupervised Method for Automatic Evaluation of Open-Domain Dialog Systems",
    implementation=f"{_PLACE}.ruber:Ruber",
    train_options=(*COMMON, *READER, *CLASSIFIER),
    profile_defaults={
        RECOMMENDED: {"max_length": 64},
        PAPER: {**RELEASED, "embedding": 300, "hidden": 300, "dropout": 0.0},
    },
)
ENTRIES = (MAUDE, RUBER, INFERSENT, BERT_NLI)
