"""Sources of candidate references: a retrieval corpus, outputs of systems, or further references of the item."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.models import Item, Output, ReferenceSet, System
from annotation.services import hooks
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, Fault, NotThere, Unavailable

CORPUS, OUTPUTS, WITHHELD = "corpus", "outputs", "withheld"
UNAVAILABLE = gettext_lazy("The corpus %(name)s gives no candidates: %(why)s")


@dataclass(frozen=True)
class Origin:
    """The parsed option `corpus:NAME`, `outputs` or `withheld`."""

    kind: str
    corpus: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.corpus}" if self.corpus else self.kind


@dataclass(frozen=True)
class Candidate:
    """A text with its source."""

    text: str
    source: dict[str, Any] = field(default_factory=dict)


class Source(Protocol):
    """Finds candidates for a batch of items; `notes` collects messages for the user."""

    notes: list[str]

    def of(self, items: Sequence[Item], references: dict[int, list[str]]) -> dict[int, list[Candidate]]: ...


def parse_origin(text: str) -> Origin:
    kind, colon, corpus = text.strip().partition(":")
    if kind == CORPUS and corpus:
        return Origin(kind, corpus)
    if kind in (OUTPUTS, WITHHELD) and not colon:
        return Origin(kind)
    text = _("candidates must be corpus:NAME, outputs or withheld, not “%(value)s”.") % {"value": text}
    raise BadInput(text, faults=[Fault(text, field="candidates")])


def list_corpora(project: Project) -> list[tuple[str, str]]:
    """Return name and label of every corpus that the project may search."""
    return list(hooks.list_corpora(project=project))


def check_origin(project: Project, origin: Origin) -> None:
    """Raise `BadInput` if the corpus does not exist."""
    if origin.kind != CORPUS:
        return
    names = [name for name, _ in list_corpora(project)]
    if origin.corpus not in names:
        text = _("There is no corpus “%(name)s” for %(project)s. There are: %(known)s.")
        known = ", ".join(names) or _("none yet")
        text %= {"name": origin.corpus, "project": project.slug, "known": known}
        raise BadInput(text, faults=[Fault(text, field="candidates")])


def open_source(
    project: Project, origin: Origin, *, references: ReferenceSet, most: int, turns: int | None, systems: Iterable[str]
) -> Source:
    """Return the source of the candidates, with at most `most` for an item."""
    if origin.kind == CORPUS:
        return _FromCorpus(project, origin.corpus, most, turns)
    if origin.kind == OUTPUTS:
        return _FromOutputs(project, most, tuple(systems))
    return _Withheld(most)


@dataclass
class _Withheld:
    """The item's own references; the evaluator samples the one to start from."""

    most: int
    notes: list[str] = field(default_factory=list)

    def of(self, items: Sequence[Item], references: dict[int, list[str]]) -> dict[int, list[Candidate]]:
        return {
            item.pk: [Candidate(text, {"kind": WITHHELD}) for text in references.get(item.pk, ())][: self.most]
            for item in items
        }


@dataclass
class _FromOutputs:
    """Outputs of systems for the item. References then include the outputs to be judged."""

    project: Project
    most: int
    systems: tuple[str, ...]
    notes: list[str] = field(default_factory=list)

    def of(self, items: Sequence[Item], references: dict[int, list[str]]) -> dict[int, list[Candidate]]:
        names = dict(System.objects.filter(project=self.project).values_list("pk", "name"))
        rows = Output.objects.filter(item__in=[item.pk for item in items]).order_by("item", "pk")
        result: dict[int, dict[str, Candidate]] = defaultdict(dict)
        for item, system, step, text in rows.values_list("item", "system", "step", "text"):
            name = names[system]
            if self.systems and name not in self.systems:
                continue
            source = {"kind": OUTPUTS, "system": name, **({} if step is None else {"step": step})}
            result[item].setdefault(text, Candidate(text, source))
        return {item: list(texts.values())[: self.most] for item, texts in result.items()}


@dataclass
class _FromCorpus:
    """Responses to similar queries, without outputs and references of the item."""

    project: Project
    corpus: str
    most: int
    turns: int | None
    notes: list[str] = field(default_factory=list)

    def of(self, items: Sequence[Item], references: dict[int, list[str]]) -> dict[int, list[Candidate]]:
        left_out: dict[int, set[str]] = {item.pk: set(references.get(item.pk, ())) for item in items}
        for item, text in Output.objects.filter(item__in=list(left_out)).values_list("item", "text"):
            left_out[item].add(text)
        result: dict[int, list[Candidate]] = {}
        silent = []
        for item in items:
            answer = hooks.find_candidates(
                project=self.project, corpus=self.corpus, item=item, k=self.most, turns=self.turns,
                exclude=left_out[item.pk],
            )  # fmt: skip
            if not answer.rows and answer.note:
                silent.append(answer.note)
            result[item.pk] = [
                Candidate(
                    row.text, {"kind": CORPUS, "query": row.query, "jaccard": round(row.jaccard, 6), **row.source}
                )
                for row in answer.rows
            ]
        if silent:
            self._check_answering(silent[0])
        self.notes += [note for note in dict.fromkeys(silent) if note not in self.notes]
        return result

    def _check_answering(self, note: str) -> None:
        """Raise `Unavailable` if the corpus is down; otherwise the note says that nothing is similar to the item."""
        from retrieval.index.errors import IndexUnavailable
        from retrieval.selectors.corpora import find_corpus
        from retrieval.services.candidates import find_like

        try:
            find_like(find_corpus(self.project, self.corpus), "a", 1)
        except IndexUnavailable as error:
            raise Unavailable(UNAVAILABLE % {"name": self.corpus, "why": error.why}) from error
        except NotThere as error:
            raise Unavailable(UNAVAILABLE % {"name": self.corpus, "why": note}) from error
