"""One model per fold as one evaluator: every group is scored by the model that did not see it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, Self, cast, runtime_checkable

import numpy as np

from scoring.ml.artefact import ENCODER_FOLDER
from scoring.ml.base import ARTIFACT, Floats, Partial, Progress, shift_progress
from scoring.ml.catalogue import Entry, OptionValue
from scoring.ml.encoders.unknown import UnknownTokens
from scoring.ml.errors import ArtefactError
from scoring.ml.signature import SignatureField, text_hash
from scoring.ml.sums import weighted_mean, weighted_statistics
from scoring.ml.trained import LearnedEvaluator, TrainedEvaluator
from scoring.ml.training.store import write_folder, write_json
from scoring.ml.types import Record, training_names


@runtime_checkable
class WeightedBySystem(Protocol):
    """An evaluator whose system score weighs texts: their values and weights, (n,) each, nan = undefined."""

    def system_weights(self, records: Sequence[Record]) -> tuple[Floats, Floats]: ...


@runtime_checkable
class BlendedOverCall(Protocol):
    """An evaluator whose score blends components that are brought to one scale over the texts of a call."""

    def blended(self, components: Mapping[str, Floats]) -> Floats | None:
        """(n,) scores from components of all texts; None where it blends nothing."""


class CrossFitted(LearnedEvaluator):
    """The models of all folds as one evaluator. A record is scored by the model that did not see its group; if no model
    saw the group, by the mean of all models."""

    def __init__(
        self, entry: Entry, members: Sequence[TrainedEvaluator], options: Mapping[str, OptionValue] | None = None
    ) -> None:
        super().__init__(entry, entry.parse_options(options or {}))
        self.members = tuple(members)

    @property
    def models(self) -> Sequence[TrainedEvaluator]:
        return self.members

    @property
    def aspects(self) -> tuple[str, ...]:
        """The aspects it learned."""
        return self.members[0].aspects

    @property
    def component_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """As its members have them."""
        return self.members[0].component_names

    @property
    def trained_on(self) -> frozenset[str]:
        """Groups that every model saw; none with complete folds."""
        return frozenset.intersection(*(member.trained_on for member in self.members))

    def regroup(self, groups: Mapping[str, str], later: Collection[tuple[str, str, str]] = ()) -> None:
        """As `TrainedEvaluator.regroup`, for each model."""
        for member in self.members:
            member.regroup(groups, later)

    def recognise(self, items: Collection[tuple[str, str, str]]) -> None:
        """As `TrainedEvaluator.recognise`, for each model: models that have not seen an item score it."""
        for member in self.members:
            member.recognise(items)

    @property
    def scale(self) -> tuple[float | None, float | None]:
        return self.members[0].scale

    @property
    def unknown_tokens(self) -> UnknownTokens | None:
        return self.members[0].unknown_tokens

    def texts_read(self, record: Record) -> tuple[str, ...]:
        return self.members[0].texts_read(record)

    @property
    def worst(self) -> float:
        return min(member.worst for member in self.members)

    @property
    def remarks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(remark for member in self.members for remark in member.remarks))

    def worst_component(self, component: str) -> float:
        return min(member.worst_component(component) for member in self.members)

    @property
    def depends_on_batch(self) -> bool:
        return any(member.depends_on_batch for member in self.members)

    def signature_fields(self) -> list[SignatureField]:
        every = [member.signature_fields() for member in self.members]
        weights = text_hash(member.weights for member in self.members)
        # Values that each fold chooses, such as a penalty, may differ.
        values = {field.key: dict.fromkeys(f.value for fields in every for f in fields if f.key == field.key)
                  for field in every[0]}  # fmt: skip
        common = [
            replace(field, value=_join_values(list(values[field.key])))
            for field in every[0]
            if field.key not in ("w", "train")
        ]
        return [*common, SignatureField("folds", "f", str(len(self.members))), SignatureField("w", "w", weights)]

    def undefined(self, record: Record) -> str:
        # Only models that score the record count: another one may lack its system.
        reasons = (self.members[number].undefined(record) for number in self.unseen(record))
        return next((reason for reason in reasons if reason), "")

    def identity(self, record: Record) -> Hashable:
        return (self.members[0].identity(record), self.unseen(record))

    def measure(self, records: Sequence[Record], progress: Progress) -> Partial:
        by_member: dict[int, list[int]] = {}
        for place, record in enumerate(records):
            for member in self.unseen(record):
                by_member.setdefault(member, []).append(place)
        values, times = np.zeros(len(records)), np.zeros(len(records))
        columns = {name: np.zeros(len(records)) for name in self.component_names}
        truncated = np.zeros(len(records), dtype=np.bool_)
        done, total = 0, sum(len(places) for places in by_member.values())
        for number in sorted(by_member):
            places = by_member[number]
            part = self.members[number].measure(
                [records[place] for place in places], shift_progress(progress, done, total)
            )
            values[places] += part.values
            times[places] += 1
            for name, column in part.components.items():
                columns[name][places] += column
            if part.truncated is not None:
                truncated[places] |= part.truncated
            done += len(places)
        means: dict[str, Floats] = {name: column / times for name, column in columns.items()}
        # Blend on one scale for all texts, not on one per fold.
        first = self.members[0]
        mixed = first.blended(means) if isinstance(first, BlendedOverCall) else None
        return Partial(values / times if mixed is None else mixed, truncated, means)

    def system_statistics(self, records: Sequence[Record]) -> Floats | None:
        if not isinstance(self.members[0], WeightedBySystem):
            return None
        values, weights, times = np.zeros(len(records)), np.zeros(len(records)), np.zeros(len(records))
        for number, member in enumerate(self.members):
            places = [place for place, record in enumerate(records) if number in self.unseen(record)]
            if places:
                assert isinstance(member, WeightedBySystem)
                value, weight = member.system_weights([records[place] for place in places])
                values[places] += value
                weights[places] += weight
                times[places] += 1
        return weighted_statistics(values / times, weights / times)

    def from_sums(self, sums: Floats) -> Floats:
        return weighted_mean(sums)

    def unseen(self, record: Record) -> tuple[int, ...]:
        """Indices of the models that may score a record: those that did not see its group, or all if each one did."""
        names = training_names(record.group, record.item)
        result = tuple(n for n, member in enumerate(self.members) if member.trained_on.isdisjoint(names))
        return result or tuple(range(len(self.members)))

    def save_pretrained(self, folder: str | Path, *, portable: bool = False) -> None:
        """Write `evaluator.json` and one folder per fold; the folder appears whole or not at all. `portable` is as for
        a single model; the encoder is copied once."""

        def write(draft: Path) -> None:
            for number, member in enumerate(self.members):
                place = draft / f"fold-{number}"
                member.save_pretrained(place, portable=portable)
                if (copied := place / ENCODER_FOLDER).is_dir():
                    copied.rename(draft / ENCODER_FOLDER) if number == 0 else shutil.rmtree(copied)
            write_json(draft / ARTIFACT, self._header(folds=len(self.members)))

        write_folder(Path(folder), write)

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
        """The models of all folds. Raises `ArtefactError` if one is missing or damaged."""
        content = json.loads((folder / ARTIFACT).read_text(encoding="utf-8"))
        n_folds = int(content["folds"])
        missing = [f"fold-{n}" for n in range(n_folds) if not (folder / f"fold-{n}" / ARTIFACT).is_file()]
        if missing or n_folds < 2:
            raise ArtefactError(str(folder), f"{', '.join(missing) or 'folds'} missing; save the evaluator again")
        implementation: type[TrainedEvaluator] = entry.load_implementation()
        members = [
            implementation.from_folder(entry, folder / f"fold-{n}", options, verify=verify, encoder=encoder)
            for n in range(n_folds)
        ]
        return cls(entry, members, options)


def join_folds(members: Sequence[TrainedEvaluator]) -> CrossFitted:
    """Return the models of all folds, `members`, as one evaluator of the class that their entry names."""
    entry = members[0].entry
    return cast(CrossFitted, entry.load_cross_fitted()(entry, members))


def _join_values(values: Sequence[str]) -> str:
    """One value, two joined, or the hash of more: signatures have a maximum length."""
    return "+".join(values) if len(values) < 3 else f"{len(values)}@{text_hash(values)}"
