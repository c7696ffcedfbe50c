"""Exact top-k by Jaccard similarity, from searches that Elasticsearch can answer without a script.

Let q be the number of tokens asked for, l that of a row and i how many they share: J = i / (q + l - i). For any t =
a/b, with m = a / (a + b): J >= t exactly when i - m l >= m q. Shared tokens and length enter this sum separately, so a
plain disjunction gives it: each token of the text counts 1, each length l in question q + 1 + m (L - l), L being the
longest of them. A row of such a length has a higher score than any other, and among such rows those with J >= t are
those with a score of at least q + 1 + m (q + L). From that, three searches are made:

*Estimate*: the best rows of a sample (every 16th row) predict the value of the k-th best. Only speed depends on it.

*Gather* (t, low, size): the first `size` rows by score and then row number, of the lengths that J >= low allows,
among rows that share as many tokens as that demands. i is the whole number nearest to the score less the length's
share, and J is computed here from whole numbers, so no digit depends on the server's single precision. If fewer than
`size` rows came, all with J >= low are among them. Otherwise no row that did not come has a higher score than the last,
s: of a length it shares at most as many tokens as s leaves, hence the best J that it can have is known. The first k are
final when the k-th of them is better than that; or as good, if the only rows left that can be as good are of the length
of the last one and share as many (then they have the same score, and greater row numbers than the last), and those that
are needed have no greater row number. Else the k-th best of what was seen, v, is not above the true one, and rows are
gathered again with t = low = v: whatever is better than v has then a higher score than whatever is not.

*Settle* (v): where all rows better than v are known, but not enough of those with J = v: rows with J >= v by ascending
row number, among the lengths where J = v is possible.

Terms are counted against the server's limit of clauses (at least 1,024): lengths are divided among searches of at most
CLAUSES terms, and their rows put together here; the arguments above hold for the parts and so for the whole. A text of
very many tokens is compared row by row, longest rows first, until no shorter row can be better: J <= l / q."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any

from retrieval.index import elastic_layout as layout
from retrieval.index.hits import Hit, jaccard

CLAUSES = 1000
#: Smaller corpora are gathered at once, starting from a value that most texts reach.
_SMALL, _USUAL = 20_000, Fraction(3, 10)
#: The server adds in double precision and rounds weights and sums to single precision: relative error at most 6e-8.
_ROUNDING = 4e-7
#: The sample is searched for rows at most this many times shorter or longer: 5 makes a page a fifth slower, 1.5 no
#: faster.
_FAR = 2
_PAGE = 1000
_TERMS_AT_ONCE = 50_000
_RESTARTS = 6

Body = dict[str, Any]
#: Sends several search bodies in one request and returns the hits of each.
Ask = Callable[[list[Body]], list[list[dict[str, Any]]]]


@dataclass(frozen=True)
class ScoredHit:
    """One row with its exact Jaccard value."""

    hit: Hit
    value: Fraction

    @property
    def place(self) -> tuple[float, int]:
        return -self.hit.jaccard, self.hit.row


@dataclass(frozen=True)
class Part:
    """One disjunction: the weight of each length, and the minimum number of shared tokens."""

    weights: dict[int, float]
    least: int


@dataclass(frozen=True)
class Rest:
    """Rows that one search may have missed: for each length the maximum number of shared tokens; and length, shared
    tokens and row number of the last returned row."""

    most: dict[int, int]
    last: tuple[int, int]
    row: int

    def values(self, q: int) -> Iterator[tuple[Fraction, tuple[int, int]]]:
        """Return the best possible value of a missed row of each length."""
        return ((Fraction(common, q + length - common), (length, common)) for length, common in self.most.items())


class Search:
    """Search for one text in one index. `count` and `longest` (tokens of the longest query) may be outdated: they
    only choose the method; `measure` asks for the current longest length where exactness needs it."""

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
        """Return the best k rows whose responses are not in `barred` (terms of `layout.reply`)."""
        if self._q > CLAUSES * 4 // 5:
            return self._longest_first(k, barred)
        estimate = self._estimate(k, barred) if self._count >= _SMALL else Fraction(0)
        # Slightly below the expected k-th value: cheaper than a second search.
        tilt, low = estimate or _USUAL, estimate * 9 / 10
        size = _size(k)
        for _ in range(_RESTARTS):
            seen, rests = self._gather(tilt, low, size, barred)
            if len(seen) < k:
                if not rests and not low:
                    return [one.hit for one in seen]
                # The bound was too high, or rows were deleted between two searches.
                tilt = low = low * 7 / 10 if low > Fraction(1, 20) else Fraction(0)
                continue
            value = seen[k - 1].value
            if value >= low:
                unseen = max((limit for rest in rests for limit, _ in rest.values(self._q)), default=Fraction(0))
                if value > unseen or (value == unseen and self._are_first(seen, k, rests)):
                    return [one.hit for one in seen[:k]]
                if value == unseen:
                    settled = self._settle([one for one in seen if one.value > value], value, k, barred)
                    if settled is not None:
                        return settled
                    value = Fraction(0)  # rows went away between two searches
            if value == tilt:  # long texts, whose values lie closer together than the server's single precision
                size = min(4 * size, layout.WINDOW)
            tilt = low = value
        return self._longest_first(k, barred)

    # ---- the three searches ----------------------------------------------------------------------------------

    def _estimate(self, k: int, barred: Sequence[str]) -> Fraction:
        rank = -(-k * 13 // (10 * layout.SAMPLE)) + 1
        parts = [
            _match_bucket(bucket, self._wanted, 1 / (self._q + bucket.first))
            for bucket in layout.buckets(self._q // _FAR, min(self._longest, self._q * _FAR))
        ]
        each = max(1, CLAUSES // (self._q + 1))
        groups = [parts[at : at + each] for at in range(0, len(parts), each)]
        bodies = [
            self._body({"dis_max": {"queries": group}}, barred, rank) | {"_source": False, "track_total_hits": False}
            for group in groups
        ]
        # A text far longer than any row has no candidates in the sample.
        answers = self._ask(bodies) if bodies else []
        scores = sorted((hit["_score"] for hits in answers for hit in hits), reverse=True)
        if len(scores) < rank:
            return Fraction(0)
        score = scores[rank - 1]
        return Fraction(int(0.98 * 1000 * score / (1 - score)), 1000)

    def _gather(
        self, tilt: Fraction, low: Fraction, size: int, barred: Sequence[str]
    ) -> tuple[list[ScoredHit], list[Rest]]:
        """Return matching rows in order, and for each search that returned its maximum the rows that it may have
        missed."""
        first, last = self._lengths(low)
        parts = self._parts(tilt, range(first, last + 1), low)
        bodies = [
            self._body(self._sums(part), barred, size) | {"sort": ["_score", "row"], "track_total_hits": True}
            for part in parts
        ]
        seen, rests = [], []
        for part, hits in zip(parts, self._ask(bodies) if bodies else (), strict=True):
            result = [hit for hit in hits if _length(hit) in part.weights]
            seen += [self._seen(hit, hit["sort"][0], part) for hit in result]
            # Rows of other lengths come last: if one was returned, no row was missed.
            if len(hits) >= size and len(result) == len(hits):
                rests.append(self._rest(part, hits[-1]))
        return sorted(seen, key=lambda one: one.place), rests

    def _rest(self, part: Part, hit: dict[str, Any]) -> Rest:
        score = hit["sort"][0]
        most = {}
        for length, weight in part.weights.items():
            common = min(self._q, length, int(score * (1 + _ROUNDING) - weight))
            if common >= part.least:
                most[length] = common
        length = _length(hit)
        return Rest(most, (length, round(score - part.weights[length])), int(hit["_id"]))

    def _are_first(self, seen: list[ScoredHit], k: int, rests: list[Rest]) -> bool:
        """Return whether no missed row can precede the k-th, or tie with it and precede it."""
        value = seen[k - 1].value
        for rest in rests:
            open_ = {kind for limit, kind in rest.values(self._q) if limit == value}
            if open_ and (open_ != {rest.last} or seen[k - 1].hit.row > rest.row):
                return False
        return True

    def _settle(self, better: list[ScoredHit], value: Fraction, k: int, barred: Sequence[str]) -> list[Hit] | None:
        """Return the best k, given all rows better than the k-th; None if rows were deleted meanwhile."""
        low, high = self._lengths(value)
        lengths = [length for length in range(low, high + 1) if self._can_be_equal(value, length)]
        missing = k - len(better)
        parts = self._parts(value, lengths, value)
        bodies = [
            self._body(self._sums(part), barred, k)
            | {
                "sort": ["row"],
                "track_scores": True,
                "track_total_hits": False,
                "min_score": self._compute_score(value, part) * (1 - _ROUNDING),
            }
            for part in parts
        ]
        # Fewer than k rows are better, so the first k rows with this value include all that are needed.
        ties = [
            one
            for part, hits in zip(parts, self._ask(bodies) if bodies else (), strict=True)
            for hit in hits
            if (one := self._seen(hit, hit["_score"], part)).value == value
        ]
        ties = sorted(ties, key=lambda one: one.place)[:missing]
        return [one.hit for one in (*better, *ties)] if len(ties) == missing else None

    # ---- texts of very many tokens ------------------------------------------------------------------------------

    def _longest_first(self, k: int, barred: Sequence[str]) -> list[Hit]:
        taken: list[ScoredHit] = []
        for length, rows in groupby(self._by_length(barred), key=lambda pair: pair[0]):
            if length < self._q and len(taken) >= k and taken[k - 1].hit.jaccard > length / self._q:
                break
            # The search also returns rows that share a token only in their response.
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
        """Return the lengths that a row with J >= value can have."""
        if not value:
            return 1, self._measure()
        low = -(-value.numerator * self._q // value.denominator)
        high = self._q * value.denominator // value.numerator
        return low, high if high <= self._longest else min(high, self._measure())

    def _parts(self, tilt: Fraction, lengths: Sequence[int], low: Fraction) -> list[Part]:
        """Return the lengths divided among disjunctions of at most CLAUSES terms, without those that cannot reach
        `low`."""
        slope = float(tilt / (1 + tilt))
        room = CLAUSES - self._q
        wanted = [length for length in lengths if max(1, self._least(low, length)) <= min(self._q, length)]
        parts = []
        for at in range(0, len(wanted), room):
            some = wanted[at : at + room]
            weights = {length: self._q + 1 + slope * (some[-1] - length) for length in some}
            parts.append(Part(weights, max(1, self._least(low, some[0]))))
        return parts

    def _compute_score(self, value: Fraction, part: Part) -> float:
        """Return the score of a row with this value in a disjunction built for it."""
        return self._q + 1 + float(value / (1 + value)) * (self._q + max(part.weights))

    def _least(self, value: Fraction, length: int) -> int:
        """Return the minimum number of shared tokens of a row of this length with J >= value."""
        a, b = value.numerator, value.denominator
        return -(-a * (self._q + length) // (a + b))

    def _can_be_equal(self, value: Fraction, length: int) -> bool:
        a, b = value.numerator, value.denominator
        return a * (self._q + length) % (a + b) == 0

    def _sums(self, part: Part) -> Body:
        should = [_counting("tokens", token, 1) for token in self._wanted]
        should += [_counting("of_length", str(length), weight) for length, weight in part.weights.items()]
        return {"bool": {"should": should, "minimum_should_match": part.least + 1}}

    def _body(self, query: Body, barred: Sequence[str], size: int) -> Body:
        if barred:
            inside = query.get("bool") or {"must": [query]}
            query = {"bool": {**inside, "must_not": _barring(barred)}}
        return {"query": query, "size": size, "docvalue_fields": ["length"]}

    def _seen(self, hit: dict[str, Any], score: float, part: Part) -> ScoredHit:
        """Return a row with its J, from a score in which each shared token counts 1."""
        length = _length(hit)
        return self._made(hit, round(score - part.weights[length]), length)

    def _compared(self, hit: dict[str, Any]) -> ScoredHit:
        """Return a row with its J, computed from its text."""
        own = self._tokens(hit["_source"]["query"])
        return self._made(hit, len(own & self._set), len(own))

    def _made(self, hit: dict[str, Any], common: int, length: int) -> ScoredHit:
        query, response, meta = layout.texts(hit["_source"])
        value = jaccard(common, self._q, length)
        return ScoredHit(
            Hit(int(hit["_id"]), value, query, response, meta), Fraction(common, self._q + length - common)
        )


def _length(hit: dict[str, Any]) -> int:
    return int(hit["fields"]["length"][0])


def _size(k: int) -> int:
    """Return the number of rows gathered for k, usually enough for the k-th to be final."""
    return min(2 * k + 50, layout.WINDOW)


def _counting(field: str, term: str, weight: float) -> Body:
    return {"constant_score": {"filter": {"term": {field: term}}, "boost": weight}}


def _match_bucket(bucket: layout.Bucket, tokens: Sequence[str], weight: float) -> Body:
    """Return a query for sample rows in a bucket, in which each shared token counts `weight`."""
    return {"bool": {"should": [_counting("sample", layout.term(bucket.number, token), weight) for token in tokens]}}


def _barring(replies: Sequence[str]) -> list[Body]:
    return [
        {"terms": {"reply": list(replies[at : at + _TERMS_AT_ONCE])}} for at in range(0, len(replies), _TERMS_AT_ONCE)
    ]
