"""The base of every evaluator that was trained: its artefact, signature, saving, loading, fixtures.

What it learns and how it scores stands in `evaluators/`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

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
from scoring.ml.base import Evaluator, Floats, Progress, Scores, references_of
from scoring.ml.catalogue import Entry, OptionValue
from scoring.ml.encoders.loading import load_tokenizer
from scoring.ml.encoders.unknown import UnknownTokens
from scoring.ml.engine import resolve_device
from scoring.ml.errors import ArtefactError, InvalidOption
from scoring.ml.signature import SignatureField
from scoring.ml.training.card import write_card
from scoring.ml.training.job import FitJob, Plan
from scoring.ml.training.record import OWN, TrainingRecord, group_of
from scoring.ml.training.store import write_folder
from scoring.ml.types import Record

if TYPE_CHECKING:
    from scoring.ml.network import Network


class TrainedEvaluator(Evaluator):
    """A network with everything that is needed to score with it again. Subclasses implement `plan`, `train` and
    `measure`, name their `network_class`, and may keep values of their own in `Artefact.state`."""

    network_class: ClassVar[type[Network]]

    def __init__(self, entry: Entry, artefact: Artefact, options: Mapping[str, OptionValue] | None = None) -> None:
        super().__init__(entry, entry.parse_options(options or {}))
        self.artefact = artefact
        self._regrouped: frozenset[str] | None = None

    @classmethod
    @abstractmethod
    def plan(cls, job: FitJob) -> Plan:
        """The dry check before any training: counts and time. Raises `TrainingDataError` naming what is missing."""

    @classmethod
    @abstractmethod
    def train(cls, job: FitJob) -> Artefact:
        """Train; checkpoints in `job.folder`. The record's agreement with people and fixtures are added by `fit`."""

    @classmethod
    def fixture_records(cls, job: FitJob) -> Sequence[Record]:
        """Inputs from which the fixtures are taken: the outputs of the held-out part, or else those learned from."""
        return (job.dev if job.dev is not None and job.dev.outputs else job.train).outputs_with_context()

    @property
    def card(self) -> str:
        """Its model card, in Markdown."""
        return write_card(self.entry, self.artefact, self.signature)

    @property
    def record(self) -> TrainingRecord:
        """What remains of the training."""
        return self.artefact.record

    @property
    def settings(self) -> Mapping[str, OptionValue]:
        """The options it was trained with."""
        return self.artefact.settings

    @property
    def aspects(self) -> tuple[str, ...]:
        """The aspects it learned; empty where it learned none."""
        return self.artefact.aspects

    @property
    def trained_on(self) -> frozenset[str]:
        """Split groups whose scores are no evidence: those it learned from and those that chose its weights, and those
        that items out of these are in now (`regroup`); in other data those that hold what it has seen (`recognise`).
        One object as long as that lasts: it is looked at for every text, and may hold a name for each."""
        return self._seen_groups if self._regrouped is None else self._regrouped

    @cached_property
    def _seen_groups(self) -> frozenset[str]:
        return frozenset(self.record.groups) | frozenset(self.record.dev_groups)

    @cached_property
    def _seen_items(self) -> frozenset[str]:
        """The items that it has seen, as far as they were noted or were groups of their own."""
        own = (name.removeprefix(OWN) for name in self._seen_groups if name.startswith(OWN))
        return frozenset({*self.record.items, *own})

    def regroup(self, groups: Mapping[str, str], later: Collection[tuple[str, str, str]] = ()) -> None:
        """Tell it the present group of every item of the data it was trained on, "" where it has none. Of an item that
        it has seen in another group the whole present one counts as seen, since what shares a group shares content.
        Evaluators that were saved before items were noted know those only that were groups of their own.

        `later`: of items that came to these data after its training also name, group and what they are, as for
        `recognise`. What it has seen may have come back by another name, and then counts as seen by that one, too."""
        now = {group_of(group, item) for item, group in groups.items() if item in self._seen_items}
        if later:
            contents = frozenset(self.record.contents)
            now |= {group_of(group, item) for item, group, what in later if what in contents}
        self._regrouped = self._seen_groups | now if now - self._seen_groups else None

    def recognise(self, items: Iterable[tuple[str, str, str]]) -> None:
        """Tell it all items of other data: name, present group ("" where it has none) and what it is (`content_of`).
        There other items may go by the same names, and the same by others, so from now on just the groups that hold
        what it has seen count as seen. Of several items that are the same those count that also have a name it knows,
        where there are any: one context may occur in groups it learned from and in others. One that was saved before
        contents were noted goes by names, as in `regroup`."""
        contents, names = frozenset(self.record.contents), self._seen_items
        if not contents:
            self.regroup({item: group for item, group, _ in items})
            return
        known = [row for row in items if row[2] in contents]
        found_again = {what for item, _, what in known if item in names}
        self._regrouped = frozenset(
            group_of(group, item) for item, group, what in known if item in names or what not in found_again
        )

    @cached_property
    def weights(self) -> str:
        """The hash of its weights."""
        return weights_hash(self.artefact.network)

    @cached_property
    def device(self) -> str:
        """Where the network runs."""
        return resolve_device(str(self.options["device"]))

    @cached_property
    def network(self) -> Network:
        """The network in evaluation mode, on the device of the options and in their number format."""
        import torch

        network = self.artefact.network
        if self.options["dtype"] == "bf16":
            import copy

            network = copy.deepcopy(network).bfloat16()
        network.eval()
        torch.nn.Module.to(network, self.device)
        return network

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
        inputs = self.settings.get("inputs", "both")
        if inputs != "both":
            fields.append(SignatureField("inputs", "in", str(inputs)))
        return [*fields, *self.own_fields(), SignatureField("dt", "dt", str(self.options["dtype"]))]

    def own_fields(self) -> list[SignatureField]:
        """What an evaluator adds to the signature: everything else that changes a score."""
        return []

    def score(
        self, records: Sequence[Record], *, aspect: str | None = None, progress: Progress | None = None
    ) -> Floats:
        """As every evaluator's; `aspect` may name the one it learned. Raises `InvalidOption` for any other."""
        self.check_aspect(aspect)
        self.details = self.evaluate(records, progress=progress)
        return self.of_aspect(self.details, aspect)

    @cached_property
    def unknown_tokens(self) -> UnknownTokens | None:
        """What finds the words that its encoder does not know; None without an encoder."""
        source = self.artefact.encoder
        return None if source is None else UnknownTokens.of_tokenizer(source.short_name, load_tokenizer(source))

    def texts_read(self, record: Record) -> tuple[str, ...]:
        return (*super().texts_read(record), *record.context, record.source or "")

    def check_aspect(self, aspect: object) -> None:
        """Raises `InvalidOption` where it is given and not learned."""
        if aspect is not None and aspect not in self.aspects:
            learned = (
                f"must be one of {', '.join(self.aspects)}" if self.aspects else "is not for it: it learned no aspect"
            )
            raise InvalidOption(self.name, "aspect", learned)

    def of_aspect(self, scores: Scores, aspect: str | None) -> Floats:
        """What `score` gives of what `evaluate` found, by this evaluator or by all models of a cross-fitting."""
        return scores.values

    def identity(self, record: Record) -> Hashable:
        references = references_of(record) if "references" in self.entry.needs else ()
        return (record.text, record.context, record.source, references)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the whole artefact; a folder that stood there is replaced at once. `load(folder)` reads it."""
        artefact, card = self.artefact, self.card
        write_folder(Path(folder), lambda draft: write_artefact(artefact, draft, signature=self.signature, card=card))

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
        """The evaluator of a folder; `verify` scores its fixtures anew; `encoder` is the place of the frozen encoder it
        works on, where that has moved. Raises `ArtefactError` where they differ."""
        artefact = read_artefact(folder, cls.network_class, encoder)
        if verify:
            cls(entry, artefact).verify(folder)
        return cls(entry, artefact, options)

    def with_fixtures(self, records: Sequence[Record]) -> Self:
        """The same evaluator with fixtures from up to ten of the records, evenly taken."""
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
        """The least step of a score that counts decisions; 0 where scores are continuous."""
        return 0.0

    def verify(self, folder: str | Path = "") -> None:
        """Score the fixtures anew. Raises `ArtefactError` when one differs by more than 1e-4 of its size or of 1, or by
        more than the `grain`: one decision on the border may fall otherwise on another machine."""
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
