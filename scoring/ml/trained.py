"""The base of every trained evaluator: artefact, signature, saving, loading, fixtures.

The evaluators are in `evaluators/`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self, cast

import numpy as np

from scoring.ml.artefact import (
    FIXTURE_TOLERANCE,
    N_FIXTURES,
    Artefact,
    Fixture,
    read_artefact,
    weights_hash,
    write_artefact,
)
from scoring.ml.base import Evaluator, Floats, Progress, Scores, get_references
from scoring.ml.catalogue import Entry, OptionValue
from scoring.ml.encoders.loading import load_tokenizer
from scoring.ml.encoders.source import EncoderSource
from scoring.ml.encoders.unknown import UnknownTokens
from scoring.ml.engine import Engine, resolve_device
from scoring.ml.errors import ArtefactError, InvalidOption
from scoring.ml.hub import send_evaluator
from scoring.ml.plain_texts import TextLists, Texts
from scoring.ml.signature import SignatureField
from scoring.ml.training.card import write_card
from scoring.ml.training.hub_card import write_hub_card
from scoring.ml.training.job import FitJob, Plan
from scoring.ml.training.record import OWN, TrainingRecord, name_group
from scoring.ml.training.store import write_folder
from scoring.ml.types import Record

if TYPE_CHECKING:
    from scoring.ml.network import Network


class LearnedEvaluator(Evaluator):
    """Base of a trained model and of the models of all folds: scores by aspect, and the hub."""

    @property
    @abstractmethod
    def models(self) -> Sequence[TrainedEvaluator]:
        """Its models; all have learned the same aspects."""

    @abstractmethod
    def save_pretrained(self, folder: str | Path, *, portable: bool = False) -> None:
        """Write a folder that `load` reads; `portable` with its encoder."""

    def score(
        self,
        hypotheses: Sequence[Record] | Texts,
        references: TextLists | None = None,
        *,
        sources: Texts | None = None,
        contexts: TextLists | None = None,
        aspect: str | None = None,
        progress: Progress | bool | None = None,
    ) -> Floats:
        """As for every evaluator, with the learned `aspect` to score by. One of several aspects returns (n, aspects) in
        the order of `aspects`, or (n,) with `aspect` or its option `aspect`. Raises `InvalidOption` for any other."""
        first = self.models[0]
        first.check_aspect(aspect)
        records = self.read_records(hypotheses, references, sources, contexts, "score()")
        self.details = self.evaluate(records, progress=progress)
        return first.select_aspect(self.details, aspect)

    def push_to_hub(
        self,
        name: str,
        *,
        private: bool = True,
        licence: str = "",
        datasets: Sequence[str] = (),
        languages: Sequence[str] = (),
        message: str = "",
        endpoint: str | None = None,
    ) -> str:
        """Save the evaluator on the Hugging Face hub as `name` ("organisation/model") and return its address.

        The card becomes README.md with the hub's metadata; `licence`, `datasets` and `languages` are its identifiers.
        The files contain ten texts of the training data (`fixtures.jsonl`), its names of items (`split.json`), and the
        texts that some evaluators compare with (`evaluator.json`), so a new model is private unless you say otherwise.
        Raises `HubError`.

            evaluator.push_to_hub("my-lab/fluency", licence="apache-2.0", languages=["en"])
        """
        artefacts = [model.artefact for model in self.models]
        card = write_hub_card(
            name, self.entry, artefacts, self.signature, licence=licence, datasets=datasets, languages=languages
        )
        return send_evaluator(self, name, card, private=private, message=message, endpoint=endpoint)


class TrainedEvaluator(LearnedEvaluator):
    """A network with everything needed to score with it again. Subclasses implement `plan`, `train` and `measure`, name
    their `network_class`, and may store values of their own in `Artefact.state`."""

    network_class: ClassVar[type[Network]]

    def __init__(self, entry: Entry, artefact: Artefact, options: Mapping[str, OptionValue] | None = None) -> None:
        super().__init__(entry, entry.parse_options(options or {}))
        self.artefact = artefact
        self._regrouped: frozenset[str] | None = None

    @classmethod
    @abstractmethod
    def plan(cls, job: FitJob) -> Plan:
        """The dry check before training: counts and estimated time. Raises `TrainingDataError` naming what is
        missing."""

    @classmethod
    @abstractmethod
    def train(cls, job: FitJob) -> Artefact:
        """Train; checkpoints in `job.folder`. `fit` adds agreement with people and fixtures."""

    @classmethod
    def chooses_weights(cls, job: FitJob) -> bool:
        """Whether a held-out part decides anything in the training of a `job`. If not, cross-fitting holds none out."""
        return True

    @classmethod
    def fixture_records(cls, job: FitJob) -> Sequence[Record]:
        """Records to take fixtures from: the outputs of the held-out part, or else of the training data."""
        return (job.dev if job.dev is not None and job.dev.outputs else job.train).outputs_with_context()

    @property
    def models(self) -> Sequence[TrainedEvaluator]:
        return (self,)

    @property
    def card(self) -> str:
        """Its model card, in Markdown."""
        return write_card(self.entry, self.artefact, self.signature)

    @property
    def record(self) -> TrainingRecord:
        """The record of the training."""
        return self.artefact.record

    @property
    def source(self) -> EncoderSource:
        """The encoder that it reads texts with."""
        source = self.artefact.encoder
        assert source is not None
        return source

    @property
    def max_length(self) -> int | None:
        """The option `max_length` of the training."""
        return cast("int | None", self.settings["max_length"])

    @property
    def longest(self) -> int:
        """The longest input in tokens."""
        return self.source.max_length(self.max_length)

    @property
    def batch_tokens(self) -> int | None:
        """The token budget of a batch; None suits the device."""
        return cast("int | None", self.options["batch_tokens"])

    def make_engine(self, pad_id: int) -> Engine:
        """An engine on the evaluator's device with its token budget."""
        return Engine(device=self.device, batch_tokens=self.batch_tokens, pad_id=pad_id)

    @property
    def settings(self) -> Mapping[str, OptionValue]:
        """The options of the training."""
        return self.artefact.settings

    @property
    def aspects(self) -> tuple[str, ...]:
        """The aspects it learned; empty if it learned none."""
        return self.artefact.aspects

    @property
    def trained_on(self) -> frozenset[str]:
        """Split groups whose scores are no evidence: groups that it learned from or that chose its weights, groups that
        items moved to since (`regroup`), and in other data the groups with known content (`recognise`). The same object
        until these change: it is queried for every text and may hold a name per item."""
        return self._seen_groups if self._regrouped is None else self._regrouped

    @cached_property
    def _seen_groups(self) -> frozenset[str]:
        return frozenset(self.record.groups) | frozenset(self.record.dev_groups)

    @cached_property
    def _seen_items(self) -> frozenset[str]:
        """The items of its training data, if they were noted or were groups of their own."""
        own = (name.removeprefix(OWN) for name in self._seen_groups if name.startswith(OWN))
        return frozenset({*self.record.items, *own})

    def regroup(self, groups: Mapping[str, str], later: Collection[tuple[str, str, str]] = ()) -> None:
        """Set the present group of every item of its training data, "" for none. If an item from the training data is
        now in another group, that whole group counts as seen, because a group shares content. Evaluators saved before
        items were noted know only items that were groups of their own.

        `later`: items added to these data after the training, each with name, group and content hash, as for
        `recognise`. Content from the training data counts as seen under its new name as well.
        """
        now = {name_group(group, item) for item, group in groups.items() if item in self._seen_items}
        if later:
            contents = frozenset(self.record.contents)
            now |= {name_group(group, item) for item, group, what in later if what in contents}
        self._regrouped = self._seen_groups | now if now - self._seen_groups else None

    def recognise(self, items: Iterable[tuple[str, str, str]]) -> None:
        """Set the items of other data: name, present group ("" for none) and content hash (`hash_content`). Names mean
        nothing there, so from now on exactly the groups with content from the training data count as seen. If several
        items have the same content and some have a known name, only those count: one context may occur in
        groups inside and outside the training data. Evaluators saved before content hashes were noted compare names, as
        in `regroup`."""
        contents, names = frozenset(self.record.contents), self._seen_items
        if not contents:
            self.regroup({item: group for item, group, _ in items})
            return
        known = [row for row in items if row[2] in contents]
        found_again = {what for item, _, what in known if item in names}
        self._regrouped = frozenset(
            name_group(group, item) for item, group, what in known if item in names or what not in found_again
        )

    @cached_property
    def weights(self) -> str:
        """The hash of its weights."""
        return weights_hash(self.artefact.network)

    @cached_property
    def device(self) -> str:
        """The device of the network."""
        return resolve_device(str(self.options["device"]))

    @cached_property
    def network(self) -> Network:
        """The network in evaluation mode, on the device and in the number format of the options."""
        import torch

        network = self.artefact.network
        if self.options["dtype"] == "bf16":
            import copy

            network = copy.deepcopy(network).bfloat16()
        network.eval()
        torch.nn.Module.to(network, self.device)
        return network

    @property
    def feature_fields(self) -> list[SignatureField]:
        """The field of the signature for texts that are read separately; none if together, as before the option."""
        if self.settings.get("features", "joint") == "joint":
            return []
        return [SignatureField("features", "fe", str(self.settings["features"]))]

    def signature_fields(self) -> list[SignatureField]:
        artefact = self.artefact
        fields = [SignatureField("profile", "p", artefact.profile)]
        if artefact.aspects:
            fields.append(SignatureField("aspect", "a", "+".join(artefact.aspects)))
        if artefact.encoder is not None:
            encoder = f"{artefact.encoder.short_name}@{artefact.encoder.weights[:8]}"
            fields.append(SignatureField("enc", "enc", encoder))
        fields += [
            SignatureField("w", "w", self.weights[:8]),
            SignatureField("train", "tr", f"{artefact.record.dataset}@{artefact.record.data_hash}"),
            SignatureField("seed", "s", str(artefact.seed)),
        ]
        if artefact.record.init is not None:
            fields.append(SignatureField("init", "i", artefact.record.init["weights"][:8]))
        inputs = self.settings.get("inputs", "both")
        if inputs != "both":
            fields.append(SignatureField("inputs", "in", str(inputs)))
        return [*fields, *self.own_fields(), SignatureField("dt", "dt", str(self.options["dtype"]))]

    def own_fields(self) -> list[SignatureField]:
        """Further fields of the signature: everything else that changes a score."""
        return []

    @cached_property
    def unknown_tokens(self) -> UnknownTokens | None:
        """Finds words that the encoder does not know; None without an encoder."""
        source = self.artefact.encoder
        return None if source is None else UnknownTokens.from_tokenizer(source.short_name, load_tokenizer(source))

    def texts_read(self, record: Record) -> tuple[str, ...]:
        return (*super().texts_read(record), *record.context, record.source or "")

    def check_aspect(self, aspect: object) -> None:
        """Raises `InvalidOption` for an aspect that it did not learn."""
        if aspect is not None and aspect not in self.aspects:
            learned = (
                f"must be one of {', '.join(self.aspects)}" if self.aspects else "is not for it: it learned no aspect"
            )
            raise InvalidOption(self.name, "aspect", learned)

    def select_aspect(self, scores: Scores, aspect: str | None) -> Floats:
        """The return value of `score`, from the result of `evaluate` of this evaluator or of all folds."""
        return scores.values

    def identity(self, record: Record) -> Hashable:
        references = get_references(record) if "references" in self.entry.needs else ()
        return (record.text, record.context, record.source, references)

    def save_pretrained(self, folder: str | Path, *, portable: bool = False) -> None:
        """Write the whole artefact, replacing an existing folder in one step. `load(folder)` reads it.

        If its encoder was trained, `AutoModel` and `AutoTokenizer` of transformers read the encoder from the folder. If
        the encoder is frozen and lies in a folder of this machine, `portable` copies it into the artefact.
        """
        artefact, card, signature = self.artefact, self.card, self.signature
        write_folder(
            Path(folder),
            lambda draft: write_artefact(artefact, draft, signature=signature, card=card, portable=portable),
        )

    @classmethod
    def from_folder(
        cls,
        entry: Entry,
        folder: Path,
        options: Mapping[str, OptionValue] | None = None,
        *,
        verify: bool = True,
        encoder: str | None = None,
    ) -> Self:
        """The evaluator of a folder. `verify` scores its fixtures again; `encoder` is the location of its frozen
        encoder if that has moved. Raises `ArtefactError` if scores differ."""
        artefact = read_artefact(folder, cls.network_class, encoder)
        if verify:
            cls(entry, artefact).verify(folder)
        return cls(entry, artefact, options)

    def with_fixtures(self, records: Sequence[Record]) -> Self:
        """The same evaluator with fixtures from up to ten of the records, evenly spaced."""
        places = np.unique(np.linspace(0, len(records) - 1, min(N_FIXTURES, len(records))).astype(int))
        chosen = [records[int(place)] for place in places]
        values = self.evaluate(chosen).values if chosen else np.empty(0)
        fixtures = [
            Fixture(record, None if math.isnan(value) else float(value))
            for record, value in zip(chosen, values, strict=True)
        ]
        return type(self)(self.entry, self.artefact.with_fixtures(fixtures), self.options)

    @property
    def grain(self) -> float:
        """The smallest step of a score that counts decisions; 0 for continuous scores."""
        return 0.0

    def verify(self, folder: str | Path = "") -> None:
        """Score the fixtures again. Raises `ArtefactError` if one differs by more than 1e-4 (relative or absolute) plus
        the `grain`: a borderline decision may differ on another machine."""
        fixtures = self.artefact.fixtures
        if not fixtures:
            return
        values = self.evaluate([fixture.record for fixture in fixtures]).values
        for number, (fixture, value) in enumerate(zip(fixtures, values, strict=True), start=1):
            saved = math.nan if fixture.score is None else fixture.score
            tolerance = FIXTURE_TOLERANCE + self.grain
            if not np.isclose(value, saved, rtol=FIXTURE_TOLERANCE, atol=tolerance, equal_nan=True):
                raise ArtefactError(
                    str(folder or self.name),
                    f"fixture {number} scores {value:.6g} here but scored {saved:.6g} when it was saved: the "
                    "libraries or the files differ. Train it again, or install the versions its card names.",
                )


class SeveralAspects(TrainedEvaluator):
    """A trained evaluator with a score for each aspect that it learned, as components. Its scoring option `aspect`
    names the one that is the score; none is a mean over all."""

    @property
    def component_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """One component per aspect."""
        return self.aspects

    def evaluate(self, records: Sequence[Record], *, progress: Progress | bool | None = None) -> Scores:
        self.check_aspect(self.options["aspect"])
        return super().evaluate(records, progress=progress)

    def select_aspect(self, scores: Scores, aspect: str | None) -> Floats:
        if aspect is not None:
            return scores.components[aspect]
        if self.options["aspect"] is not None:
            return scores.values
        return np.stack([scores.components[name] for name in self.aspects], axis=1)
