"""The exact k best rows by Jaccard similarity, out of searches that Elasticsearch can answer without a script.

Let q be the number of tokens asked for, l that of a row and i how many they share: J = i / (q + l - i), and
i / (q + l) = J / (1 + J) grows with J. A row with J >= t = a/b shares at least a(q + l) / (a + b) tokens and has
a q / b <= l <= b q / a. From that, three searches are made:

*Estimate*: the best rows of a sample (every 16th row) tell where the k-th best will lie about. Nothing depends on it
but the time.

*Gather* (t, size): for each bucket of lengths first..last that can hold J >= t a disjunction of its terms, of which at
least a(q + first) / (a + b), rounded up, must match; each matching term counts 1 / (q + first), so that the score is i
/ (q + first) >= i / (q + l). The rows come back with score and l; i is the whole number nearest to the score times (q +
first), and J is computed here from whole numbers, so no digit depends on the server's single precision (the sum of i
equal terms is off by less than 2e-7 of itself, so i by less than 1e-3 of CLAUSES terms). If fewer than `size` rows
came, all with J >= t are among them. Otherwise every row that did not come has a score of at most the last one, s:
hence J <= s / (1 - s), with s made larger by 1e-6 because the server computes it in single precision (the sum of i
equal terms and two roundings are off by less than 2e-7). The first k are final when the k-th is better than that bound.

*Settle* (t): t is the J of the k-th best among rows that were really seen, so the true k-th is at least that. Two
searches: rows with J > t (fewer than k, or t was too low and is raised), and rows with J >= t among lengths where
J = t is possible, by ascending row: the first k of them hold the first ties that are wanted, because at most as many
better ones stand among them as the first search found. The first is left out when no fraction lies between t and the
bound of the gathering, which is the usual case of many equal rows.

Terms are counted against the server's limit of clauses (at least 1,024): lengths are divided among searches of at most
CLAUSES terms, and their rows put together here; the arguments above hold for the parts and so for the whole. A text of
more tokens than that is compared row by row, longest rows first, until no shorter row can be better: J <= l / q.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any

from retrieval.index import elastic_layout as layout
from retrieval.index.hits import Hit, jaccard

CLAUSES = 1000
#: Corpora below this size are gathered at once.
_SMALL = 20_000
_ROUNDING = 1e-6
#: The sample is searched among rows at most so many times shorter or longer: with 5 a page waits a fifth longer, with
#: 1.5 no less.
_FAR = 2
_PAGE = 1000
_TERMS_AT_ONCE = 50_000
_RESTARTS = 5

Body = dict[str, Any]
#: Sends search bodies in one go; gives the hits of each.
Ask = Callable[[list[Body]], list[list[dict[str, Any]]]]


@dataclass(frozen=True)
class Seen:
    """One row with the exact size of what it shares."""

    hit: Hit
    value: Fraction

    @property
    def place(self) -> tuple[float, int]:
        return -self.hit.jaccard, self.hit.row


class Search:
    """One text against one index. `count` and `longest` (tokens of the longest query) may be out of date: they only
    choose the way; where exactness needs the length of the longest, `measure` asks for it."""

    def __init__(
        self,
        ask: Ask,
        tokens: Callable[[str], frozenset[str]],
        measure: Callable[[], int],
        wanted: frozenset[str],
        count: int,
        longest: int,
    ) -> None:
        self._ask, self._tokens, self._measure = ask, tokens, measure
        self._set, self._wanted = wanted, sorted(wanted)
        self._count, self._longest = count, longest
        self._q = len(wanted)

    def best(self, k: int, barred: Sequence[str] = ()) -> list[Hit]:
        """The best k rows whose responses are none of `barred` (terms of `layout.reply`)."""
        if self._q > CLAUSES:
            return self._longest_first(k, barred)
        size = _size(k)
        lowest = self._estimate(k, barred) if self._count >= _SMALL else Fraction(0)
        for _ in range(_RESTARTS):
            found = self._descend(lowest, k, size, barred)
            if found is not None:
                return found
            lowest = Fraction(0)  # rows went away between two searches
        return self._longest_first(k, barred)

    def _descend(self, lowest: Fraction, k: int, size: int, barred: Sequence[str]) -> list[Hit] | None:
        while True:
            seen, bound = self._gather(lowest, size, barred)
            sure = [one for one in seen if one.value >= lowest]
            if bound is None and (len(sure) >= k or not lowest):
                return [one.hit for one in sure[:k]]
            if bound is not None:
                if len(sure) >= k and sure[k - 1].hit.jaccard > bound:
                    return [one.hit for one in sure[:k]]
                if len(seen) >= k:
                    return self._settle(seen, bound, k, barred)
            lowest = lowest * 7 / 10 if lowest > Fraction(1, 20) else Fraction(0)

    # ---- the three searches ----------------------------------------------------------------------------------

    def _estimate(self, k: int, barred: Sequence[str]) -> Fraction:
        rank = -(-k * 13 // (10 * layout.SAMPLE)) + 1
        parts = [
            _part(bucket, self._wanted, 1, 1 / (self._q + bucket.first), "sample")
            for bucket in layout.buckets(self._q // _FAR, min(self._longest, self._q * _FAR))
        ]
        bodies = [self._body(group, barred, rank) | {"_source": False} for group in self._groups(parts)]
        # A text far longer than any row leaves nothing to look at.
        answers = self._ask(bodies) if bodies else []
        scores = sorted((hit["_score"] for hits in answers for hit in hits), reverse=True)
        if len(scores) < rank:
            return Fraction(0)
        score = scores[rank - 1]
        return Fraction(int(0.98 * 1000 * score / (1 - score)), 1000)

    def _gather(self, lowest: Fraction, size: int, barred: Sequence[str]) -> tuple[list[Seen], float | None]:
        """Rows seen in order, and what no unseen row exceeds (none: no unseen row reaches `lowest`)."""
        low, high = self._lengths(lowest)
        parts, firsts = [], {}
        for bucket in layout.buckets(low, high):
            first = max(bucket.first, low)
            least = max(1, self._least(lowest, first))
            if least <= min(self._q, bucket.last):
                parts.append(_part(bucket, self._wanted, least, 1 / (self._q + first)))
                firsts[bucket.number] = first
        bound, seen = None, []
        groups = self._groups(parts)
        for hits in self._ask([self._body(group, barred, size) for group in groups]) if groups else ():
            seen += [self._seen(hit, firsts[layout.bucket_of(_length(hit))]) for hit in hits]
            if len(hits) >= size:
                score = hits[-1]["_score"] * (1 + _ROUNDING)
                bound = max(bound or 0.0, score / (1 - score) if score < 0.5 else 1.0)
        return sorted(seen, key=lambda one: one.place), bound

    def _settle(self, seen: list[Seen], bound: float, k: int, barred: Sequence[str]) -> list[Hit] | None:
        """The best k, or none if rows went away meanwhile."""
        value = seen[k - 1].value
        longest = self._q * value.denominator // value.numerator
        # Two fractions with denominators up to q + longest differ by more than this.
        gap = 1 / (value.denominator * (self._q + longest))
        complete = bound < float(value) + 0.5 * gap
        while True:
            low, high = self._lengths(value)
            lengths = range(low, high + 1)
            better = [one for one in seen if one.value > value]
            if not complete:
                parts = [part for length in lengths if (part := self._of_length(length, value, above=True))]
                better = self._union(parts, k, barred, None)
                if len(better) >= k:
                    value = better[k - 1].value
                    continue
            parts = [part for length in lengths if (part := self._of_length(length, value, above=False))]
            ties = [one for one in self._union(parts, k, barred, "row") if one.value == value]
            together = sorted({one.hit.row: one for one in (*better, *ties)}.values(), key=lambda one: one.place)
            return [one.hit for one in together[:k]] if len(together) >= k else None

    def _of_length(self, length: int, value: Fraction, *, above: bool) -> Body | None:
        """Rows of one length with J above the value; or with J at least that, where it can be equal."""
        least = self._least(value, length)
        exact = self._least_is_equal(value, length)
        if above and exact:
            least += 1
        if least > min(self._q, length) or not (above or exact):
            return None
        bucket = layout.Bucket(layout.bucket_of(length), length, length)
        part = _part(bucket, self._wanted, least, 1 / (self._q + length))
        (whole,) = layout.buckets(length, length)
        if whole.first != whole.last:
            part["bool"]["filter"] = [{"term": {"length": length}}]
        return part

    def _union(self, parts: list[Body], size: int, barred: Sequence[str], sort: str | None) -> list[Seen]:
        bodies = [self._body(group, barred, size) for group in self._groups(parts)]
        for body in bodies:
            if sort:
                body |= {"sort": [sort], "track_scores": True}
        seen = [self._seen(hit, _length(hit)) for hits in (self._ask(bodies) if bodies else ()) for hit in hits]
        return sorted(seen, key=lambda one: one.place)

    # ---- texts beyond the server's limit of clauses ------------------------------------------------------------

    def _longest_first(self, k: int, barred: Sequence[str]) -> list[Hit]:
        taken: list[Seen] = []
        for length, rows in groupby(self._by_length(barred), key=lambda found: found[0]):
            if length < self._q and len(taken) >= k and taken[k - 1].hit.jaccard > length / self._q:
                break
            # Rows come that share a token only by their response.
            taken += [one for _, row in rows if (one := self._compared(row)).value]
            taken = sorted(taken, key=lambda one: one.place)[:k]
        return [one.hit for one in taken]

    def _by_length(self, barred: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
        chunks = [self._wanted[at : at + _TERMS_AT_ONCE] for at in range(0, self._q, _TERMS_AT_ONCE)]
        any_of = [{"terms": {"words": chunk}} for chunk in chunks]
        body: Body = {
            "query": {"bool": {"filter": [{"bool": {"should": any_of}}], "must_not": _barring(barred)}},
            "sort": [{"length": "desc"}, {"row": "asc"}],
            "size": _PAGE,
            "track_total_hits": False,
        }
        while True:
            (hits,) = self._ask([body])
            for hit in hits:
                yield hit["sort"][0], hit
            if len(hits) < _PAGE:
                return
            body = body | {"search_after": hits[-1]["sort"]}

    # ---- parts ---------------------------------------------------------------------------------------------------

    def _lengths(self, value: Fraction) -> tuple[int, int]:
        """Which lengths a row with J >= value can have."""
        if not value:
            return 1, self._measure()
        low = -(-value.numerator * self._q // value.denominator)
        high = self._q * value.denominator // value.numerator
        return low, high if high <= self._longest else min(high, self._measure())

    def _least(self, value: Fraction, length: int) -> int:
        """How many tokens a row of that length shares at least when J >= value."""
        a, b = value.numerator, value.denominator
        return -(-a * (self._q + length) // (a + b))

    def _least_is_equal(self, value: Fraction, length: int) -> bool:
        a, b = value.numerator, value.denominator
        return a * (self._q + length) % (a + b) == 0

    def _groups(self, parts: list[Body]) -> list[list[Body]]:
        each = max(1, CLAUSES // (self._q + 1))
        return [parts[at : at + each] for at in range(0, len(parts), each)]

    def _body(self, parts: list[Body], barred: Sequence[str], size: int) -> Body:
        query: Body = {"dis_max": {"queries": parts}}
        if barred:
            query = {"bool": {"must": [query], "must_not": _barring(barred)}}
        return {"query": query, "size": size, "docvalue_fields": ["length"], "track_total_hits": False}

    def _seen(self, hit: dict[str, Any], first: int) -> Seen:
        """A row with its J, from a score in which each token it shares counts 1 / (q + first)."""
        return self._made(hit, round(hit["_score"] * (self._q + first)), _length(hit))

    def _compared(self, hit: dict[str, Any]) -> Seen:
        """A row with its J, from its text."""
        own = self._tokens(hit["_source"]["query"])
        return self._made(hit, len(own & self._set), len(own))

    def _made(self, hit: dict[str, Any], common: int, length: int) -> Seen:
        query, response, meta = layout.texts(hit["_source"])
        value = jaccard(common, self._q, length)
        return Seen(Hit(int(hit["_id"]), value, query, response, meta), Fraction(common, self._q + length - common))


def _length(hit: dict[str, Any]) -> int:
    return int(hit["fields"]["length"][0])


def _size(k: int) -> int:
    """How many rows are gathered for k: usually the k-th is then better than the last, and nothing is to be settled."""
    return min(2 * k + 50, layout.WINDOW)


def _part(bucket: layout.Bucket, tokens: Sequence[str], least: int, weight: float, field: str = "terms") -> Body:
    """Rows of a bucket that share at least `least` tokens, each counting `weight`."""
    should = [
        {"constant_score": {"filter": {"term": {field: layout.term(bucket.number, token)}}, "boost": weight}}
        for token in tokens
    ]
    return {"bool": {"should": should, "minimum_should_match": least}}


def _barring(replies: Sequence[str]) -> list[Body]:
    return [
        {"terms": {"reply": list(replies[at : at + _TERMS_AT_ONCE])}} for at in range(0, len(replies), _TERMS_AT_ONCE)
    ]
