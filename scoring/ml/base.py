"""The interface of every evaluator: undefined and empty texts, duplicates, signatures, saving.

Metrics are in `baselines/`, learned evaluators in `evaluators/`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from evalapp.markup import MAX_ROWS, write_html_table
from scoring.ml.catalogue import Entry, OptionValue
from scoring.ml.encoders.unknown import Coverage, UnknownTokens
from scoring.ml.errors import InvalidRecords, need_package
from scoring.ml.plain_texts import TextLists, Texts, as_records
from scoring.ml.signature import VERSION, SignatureField, render
from scoring.ml.sums import within
from scoring.ml.types import Record, check_records

if TYPE_CHECKING:
    import pandas

Floats: TypeAlias = npt.NDArray[np.float64]
Progress: TypeAlias = Callable[[int, int], object]
ARTIFACT = "evaluator.json"
#: How reasons begin that the arguments of a call can change.
_MISSING = ("no references", "no context")
UNKNOWN_WORDS = "records have words that the encoder does not know; it cannot distinguish them"


class Query(NamedTuple):
    """Hypotheses and references; every hypothesis is measured against every reference."""

    hypotheses: Sequence[str]
    references: Sequence[str]


@dataclass(frozen=True)
class Scores:
    """The scores of a call with reasons and counts.

    `values` (n,), nan = undefined; `reasons` then says why ("" if defined). `components` are further columns of the
    same length, such as precision and recall. Counts are of records.
    """

    values: Floats
    reasons: tuple[str, ...] = field(repr=False)
    signature: str
    n_truncated: int = 0
    n_empty: int = 0
    n_duplicate: int = 0
    components: Mapping[str, Floats] = field(default_factory=dict, repr=False)
    #: Records with a truncated text; None if texts are never truncated.
    truncated: npt.NDArray[np.bool_] | None = field(default=None, repr=False)
    #: Records that have a score although the encoder does not know all words of their text or references; None without
    #: an encoder.
    unknown: npt.NDArray[np.bool_] | None = field(default=None, repr=False)
    #: Remarks about this machine, for example a missing resource.
    remarks: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        """The first scores with their components and reasons, for notebooks."""
        n = len(self.values)
        columns: dict[str, Sequence[Any] | Floats] = {"score": self.values, **self.components}
        if any(self.reasons):
            columns["reason"] = self.reasons
        rows = [[column[row] for column in columns.values()] for row in range(min(n, MAX_ROWS))]
        return f"<p>{escape(self.signature)}</p>" + write_html_table(columns, rows, more=max(0, n - MAX_ROWS))

    def to_pandas(self) -> pandas.DataFrame:
        """Return a row per record: `score`, the components and `reason`. Needs pandas."""
        need_package("pandas", "to_pandas()")
        import pandas

        return pandas.DataFrame({"score": self.values, **self.components, "reason": list(self.reasons)})

    @property
    def n_undefined(self) -> int:
        """Number of records without a score."""
        return int(np.isnan(self.values).sum())

    @property
    def n_unknown(self) -> int:
        """Number of scored records with words that the encoder does not know."""
        return 0 if self.unknown is None else int(self.unknown.sum())

    @property
    def notes(self) -> tuple[str, ...]:
        """One short sentence for each thing worth noting; usually empty."""
        lines = []
        for reason in dict.fromkeys(reason for reason in self.reasons if reason):
            lines.append(f"{self.reasons.count(reason)} of {len(self.reasons)} undefined: {reason}")
        if self.n_empty:
            lines.append(f"{self.n_empty} empty texts got the worst value")
        if self.n_truncated:
            lines.append(f"{self.n_truncated} records had a text longer than the encoder reads: it was cut")
        if self.n_unknown:
            lines.append(f"{self.n_unknown} {UNKNOWN_WORDS}")
        if self.n_duplicate:
            lines.append(f"{self.n_duplicate} records repeat an earlier one and share its score")
        return (*lines, *self.remarks)


@dataclass(frozen=True)
class Partial:
    """The result of `Evaluator.measure` for distinct, non-empty, well-defined records."""

    values: Floats
    truncated: npt.NDArray[np.bool_] | None = None
    components: Mapping[str, Floats] = field(default_factory=dict)
    #: Reasons of undefined values, by index.
    reasons: Mapping[int, str] = field(default_factory=dict)


@dataclass
class _Work:
    """The records of a call: `rows` are measured, row `rows[i]` as `unique[places[i]]`; `blank` rows get the worst
    value; all others have a reason."""

    reasons: list[str]
    unknown: npt.NDArray[np.bool_] | None
    unique: list[Record] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    blank: list[int] = field(default_factory=list)
    n_empty: int = 0
    n_duplicate: int = 0


class Evaluator(ABC):
    """Base of all evaluators. Higher is better. `details` holds the `Scores` of the last `score` call."""

    #: Further columns of a score; each gets a column in `Scores.components`.
    component_names: tuple[str, ...] = ()
    #: Whether it compares a text with one reference at a time.
    pairwise: ClassVar[bool] = False

    def __init__(self, entry: Entry, options: Mapping[str, OptionValue]) -> None:
        self.entry = entry
        self.options = dict(options)
        self.details: Scores | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.signature}>"

    @property
    def name(self) -> str:
        """The name in the catalogue."""
        return self.entry.name

    @property
    def signature(self) -> str:
        """One line with everything that changes a score."""
        return render(self.name, self._all_fields(), self.entry.revision)

    @property
    def short_signature(self) -> str:
        """The signature with abbreviated keys."""
        return render(self.name, self._all_fields(), self.entry.revision, short=True)

    def _all_fields(self) -> list[SignatureField]:
        fields = list(self.signature_fields())
        if self.entry.plugin:
            fields.append(SignatureField("plugin", "plugin", self.entry.plugin.replace(" ", "-")))
        return fields

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the last `score` call."""
        return self.details.notes if self.details else ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks about scores on this machine, one short sentence each; usually none."""
        return ()

    def remarks_on(self, records: Sequence[Record]) -> tuple[str, ...]:
        """Remarks about the scores of the `records`, one short sentence each; usually none."""
        return ()

    @property
    def worst(self) -> float:
        """The score of an empty text: the low end of the scale."""
        return float(self.entry.scale[0] or 0.0)

    @property
    def scale(self) -> tuple[float | None, float | None]:
        """The range of its scores with these options; None where it is open."""
        return self.entry.scale

    @property
    def unknown_tokens(self) -> UnknownTokens | None:
        """Finds words that the encoder does not know; None without an encoder."""
        return None

    @property
    def depends_on_batch(self) -> bool:
        """Whether a score depends on the other records of the call, which must then be scored together."""
        return False

    def worst_component(self, component: str) -> float:
        """The value of an empty text in a component."""
        return self.worst

    def score(
        self,
        hypotheses: Sequence[Record] | Texts,
        references: TextLists | None = None,
        *,
        sources: Texts | None = None,
        contexts: TextLists | None = None,
        progress: Progress | bool | None = None,
    ) -> Floats:
        """(n,) scores in their order, nan = undefined; `details` then has reasons and counts.

        `hypotheses` are records, or texts in a list, array or Series with `references` (for each a text or a list of
        texts), `sources` and `contexts` (for each the turns before it). `progress` is a callback, or True for a bar.
        Raises `InvalidRecords` for other arguments, and for texts without what the evaluator needs.
        """
        records = self.read_records(hypotheses, references, sources, contexts, "score()")
        self.details = self.evaluate(records, progress=progress)
        return self.details.values

    def read_records(
        self,
        hypotheses: Sequence[Record] | Texts,
        references: TextLists | None,
        sources: Texts | None,
        contexts: TextLists | None,
        call: str,
    ) -> Sequence[Record]:
        """Return the records of the arguments of `call`, see `score`. Raises `InvalidRecords`."""
        records = as_records(hypotheses, references, sources, contexts, call)
        are_texts = len(records) and not isinstance(next(iter(hypotheses)), Record)
        if are_texts and all(self.undefined(record).startswith(_MISSING) for record in records):
            raise InvalidRecords(
                f"{self.name} cannot score a text with {self.undefined(records[0])}: {call} takes references=, "
                "contexts= and sources=, each with one entry per text"
            )
        return records

    def evaluate(self, records: Sequence[Record], *, progress: Progress | bool | None = None) -> Scores:
        """As `score`, with reasons, counts and components. Stores nothing, so threads may share the evaluator.

        `progress(done, total)` counts distinct records; an exception it raises ends the work. True shows a bar.
        """
        check_records(records, "score()")
        work = self._sort_records(records)
        values = np.full(len(records), np.nan)
        components = {name: np.full(len(records), np.nan) for name in self.component_names}
        values[work.blank] = self.worst
        for name, column in components.items():
            column[work.blank] = self.worst_component(name)
        partial = self.measure(work.unique, choose_progress(progress)) if work.unique else Partial(np.empty(0))
        rows, places = work.rows, np.asarray(work.places, dtype=np.intp)
        truncated: npt.NDArray[np.bool_] | None = None
        if partial.truncated is not None:
            truncated = np.zeros(len(records), dtype=np.bool_)
            truncated[rows] = partial.truncated[places]
        values[rows] = within(partial.values, self.scale)[places]
        for name, column in partial.components.items():
            components[name][rows] = column[places]
        for row, place in zip(rows, work.places, strict=True):
            work.reasons[row] = partial.reasons.get(place, "")
        return Scores(
            values=values,
            reasons=tuple(work.reasons),
            signature=self.signature,
            n_truncated=0 if truncated is None else int(truncated.sum()),
            n_empty=work.n_empty,
            n_duplicate=work.n_duplicate,
            components=components,
            truncated=truncated,
            unknown=work.unknown,
            remarks=(*self.remarks, *self.remarks_on(work.unique)),
        )

    def _sort_records(self, records: Sequence[Record]) -> _Work:
        """Separate the records to measure from duplicates, blank texts and records without a score."""
        readings = self._readings(records)
        work = _Work([""] * len(records), None if readings is None else np.zeros(len(records), dtype=np.bool_))
        place_of: dict[Hashable, int] = {}
        for row, record in enumerate(records):
            is_blank = not record.text.strip()
            work.n_empty += is_blank
            key = self.identity(record)
            is_duplicate = key in place_of
            work.n_duplicate += is_duplicate
            reason = self.undefined(record)
            if readings is not None and work.unknown is not None and not reason and not is_blank:
                reason = self._unreadable(record, readings)
                work.unknown[row] = not reason and any(readings[text] for text in self.texts_read(record))
            work.reasons[row] = reason
            if reason or is_blank:
                place_of.setdefault(key, -1)
                if not reason:
                    work.blank.append(row)
                continue
            if not is_duplicate:
                place_of[key] = len(work.unique)
                work.unique.append(record if readings is None else _drop_unreadable(record, readings))
            work.rows.append(row)
            work.places.append(place_of[key])
        return work

    def texts_read(self, record: Record) -> tuple[str, ...]:
        """The texts of a record that the encoder reads."""
        return (record.text, *(get_references(record) if "references" in self.entry.needs else ()))

    def _readings(self, records: Sequence[Record]) -> dict[str, Coverage] | None:
        """How much of each text the encoder knows; None without an encoder."""
        reader = self.unknown_tokens
        return None if reader is None else reader.look(text for record in records for text in self.texts_read(record))

    def _unreadable(self, record: Record, readings: Mapping[str, Coverage]) -> str:
        """The reason why unknown words prevent a score, "" otherwise."""
        reader = self.unknown_tokens
        if reader is None:
            return ""
        if readings[record.text] == Coverage.NONE:
            return f"text: {reader.reason}"
        references = [text for text in get_references(record) if text in readings]
        if references and all(readings[text] == Coverage.NONE for text in references):
            return f"references: {reader.reason}"
        return ""

    def system_score(
        self,
        hypotheses: Sequence[Record] | Texts,
        references: TextLists | None = None,
        *,
        sources: Texts | None = None,
        contexts: TextLists | None = None,
    ) -> float:
        """The score of a system from its outputs, with arguments as in `score`: from the sums of `system_statistics` if
        it has any, else the mean of the defined scores; nan without data."""
        return self.score_system(self.read_records(hypotheses, references, sources, contexts, "system_score()"))

    def score_system(self, records: Sequence[Record]) -> float:
        """`system_score` of records."""
        statistics = self.system_statistics(records)
        if statistics is not None:
            return float(self.from_sums(statistics.sum(axis=0)))
        values = self.evaluate(records).values
        defined = values[~np.isnan(values)]
        return float(defined.mean()) if defined.size else float("nan")

    def system_statistics(self, records: Sequence[Record]) -> Floats | None:
        """(n, k) statistics per text whose sums give the system's score through `from_sums`, so that texts can be
        resampled; None if the score is a mean, or not a function of sums."""
        return None

    def from_sums(self, sums: Floats) -> Floats:
        """(...) scores of systems from sums (..., k) of `system_statistics`; nan without data."""
        raise NotImplementedError(f"the score of a system by {self.name} is not made of sums")

    def save_pretrained(self, folder: str | Path) -> None:
        """Write `evaluator.json`; `load(folder)` then gives the same scores."""
        from scoring.ml.training.store import write_json

        write_json(Path(folder) / ARTIFACT, self._header(options=self.options))

    def _header(self, **more: Any) -> dict[str, Any]:
        """The content of `evaluator.json`."""
        return {"evaluator": self.name, **more, "signature": self.signature, "version": VERSION}

    def option_text(self, name: str) -> str:
        """A text option."""
        return str(self.options[name])

    def option_int(self, name: str) -> int:
        """An integer option."""
        return int(cast(int, self.options[name]))

    def option_float(self, name: str) -> float:
        """A numeric option."""
        return float(cast(float, self.options[name]))

    def undefined(self, record: Record) -> str:
        """The reason why this record cannot have a score, "" if it can."""
        if "references" in self.entry.needs and not get_references(record):
            return "no references"
        return ""

    def identity(self, record: Record) -> Hashable:
        """The part of a record that its score depends on; records with equal identity are scored once."""
        if "references" in self.entry.needs:
            return (record.text, record.references)
        return record.text

    @abstractmethod
    def signature_fields(self) -> Sequence[SignatureField]:
        """The parts of the signature between name and version."""

    @abstractmethod
    def measure(self, records: Sequence[Record], progress: Progress) -> Partial:
        """The scores of distinct records with a non-empty text and everything that the entry needs."""


class PairEvaluator(Evaluator):
    """A measure m(text, reference); several references: the best one, m(y, R) = max over r of m(y, r)."""

    pairwise = True

    def pair_matrices(self, queries: Sequence[Query]) -> Iterable[Floats]:
        """The matrix (hypotheses, references) of m for each query, in their order."""
        raise NotImplementedError

    def all_pairs(self, queries: Sequence[Query], *, progress: Progress | None = None) -> list[Floats]:
        """For each query the matrix (hypotheses, references) of m. Blank texts get the worst value.

        Queries may be plain tuples of two lists. `progress(done, total)` counts queries.
        """
        matrices = []
        for matrix in self.pair_matrices(queries):
            matrices.append(matrix)
            if progress is not None:
                progress(len(matrices), len(queries))
        return matrices

    def measure(self, records: Sequence[Record], progress: Progress) -> Partial:
        queries, places = group_by_references(records)
        matrices = self.all_pairs(queries, progress=progress)
        return Partial(scatter_best(matrices, places, len(records)))


def get_references(record: Record) -> tuple[str, ...]:
    """The record's references without blank ones."""
    return tuple(text for text in record.references if text.strip())


def _drop_unreadable(record: Record, readings: Mapping[str, Coverage]) -> Record:
    """The record without references that the encoder does not know at all, unless none would remain."""
    kept = tuple(text for text in record.references if readings.get(text) != Coverage.NONE)
    return record if len(kept) in (0, len(record.references)) else replace(record, references=kept)


def group_by_references(records: Sequence[Record]) -> tuple[list[Query], list[list[int]]]:
    """Return a query for all `records` with the same references, and the indices of the records behind its
    hypotheses."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for place, record in enumerate(records):
        groups.setdefault(get_references(record), []).append(place)
    queries = [Query([records[p].text for p in places], refs) for refs, places in groups.items()]
    return queries, list(groups.values())


def scatter_best(matrices: Sequence[Floats], places: Sequence[Sequence[int]], n: int) -> Floats:
    """Return (n,) the score of each record with its best reference, in the order of the records.

    `matrices[i]` (hypotheses, references) are the scores of query i, and `places[i]` the records behind its hypotheses,
    as `group_by_references` returns them.
    """
    values = np.full(n, np.nan)
    for matrix, rows in zip(matrices, places, strict=True):
        values[list(rows)] = matrix.max(axis=1)
    return values


def shift_progress(progress: Progress, before: int, total: int) -> Progress:
    """Return a callback for a part of the work that begins after `before` of `total` records and reports to
    `progress`."""
    return lambda done, _: progress(before + done, total)


def choose_progress(progress: Progress | bool | None) -> Progress:
    """Return the callback for `progress`: for True a bar by tqdm, which `scoring.ml` does not need otherwise."""
    if progress is not True:
        return progress or _ignore_progress
    need_package("tqdm", "progress=True")
    from tqdm.auto import tqdm

    bar = tqdm(unit="texts")

    def show(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)
        if done >= total:
            bar.close()

    return show


def _ignore_progress(done: int, total: int) -> None:
    """No-op progress callback."""
