"""Texts, pairs and triples as an encoder reads them: its own special tokens, token types, and one rule of truncation.

Every distinct text is tokenised once without special tokens; longer inputs are truncated, then the tokenizer's own
special tokens are added. A special token written in a text stays text; half of a surrogate pair, which is not a
character, is read as U+FFFD.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from scoring.ml.encoders.loading import foreign_tokenizer, load_tokenizer
from scoring.ml.encoders.source import EncoderSource
from scoring.ml.encodings import Encodings, Ints, TokenIds, TokenizedTexts, ragged_places
from scoring.ml.errors import EncoderError
from scoring.ml.types import Record

#: One text (a prompt, a source, another output), or the turns of a dialogue, oldest first.
Context: TypeAlias = str | Sequence[str]
Cut: TypeAlias = Literal["left", "right"]
# Texts tokenised at a time: the tokenizer's output is far larger than the numbers kept.
_TEXTS_AT_A_TIME = 1024
_SURROGATE = re.compile("[\ud800-\udfff]")


class Segment(NamedTuple):
    """A text with its own context before it, as one side of a pair; `cut` is the end at which the context is
    truncated."""

    text: str
    context: Context = ()
    cut: Cut = "left"


class _Piece(NamedTuple):
    """One part of every input: an array of tokens, start and number of each input's tokens, token type."""

    ids: TokenIds
    starts: Ints
    lengths: Ints
    type_id: int

    def keep(self, lengths: Ints, from_end: npt.NDArray[np.bool_]) -> _Piece:
        """The first tokens of each, or the last where `from_end`."""
        kept = np.minimum(self.lengths, lengths)
        starts = np.where(from_end, self.starts + self.lengths - kept, self.starts)
        return self._replace(starts=starts, lengths=kept)


class _Template(NamedTuple):
    """The tokens that the tokenizer puts before, between and after its texts: (ids, token type) each, and the texts'
    types."""

    marks: tuple[tuple[TokenIds, int], ...]
    types: tuple[int, ...]

    @property
    def size(self) -> int:
        return sum(len(ids) for ids, _ in self.marks)


class PairTokenizer:
    """Makes the `Encodings` of an encoder for one, two or three texts, at most `max_length` tokens each.

    Turns of a context are joined by `separator`, by default a space. The second text of a pair keeps up to half of the
    tokens (more, if the first leaves them), then loses its end; the first is truncated at the requested end: `left` for
    a dialogue, whose oldest turns go first, `right` for a prompt, a story or a source. Truncated inputs are reported.
    Token types are set if the encoder has them.
    """

    def __init__(self, source: EncoderSource, *, max_length: int | None = None, separator: str = " ") -> None:
        self.source = source
        self.max_length = source.max_length(max_length)
        self.separator = separator
        #: Progress callback (texts done, all texts), called between batches; an exception it raises ends the work.
        self.tick: Callable[[int, int], object] | None = None

    @cached_property
    def tokenizer(self) -> Any:
        """The encoder's own tokenizer, without truncation and padding; it treats all input as plain text."""
        tokenizer = load_tokenizer(self.source)
        backend = tokenizer.backend_tokenizer
        backend.no_truncation()
        backend.no_padding()
        backend.encode_special_tokens = True
        return tokenizer

    @property
    def pad_id(self) -> int:
        """The padding token."""
        pad = self.tokenizer.pad_token_id
        return 0 if pad is None else int(pad)

    def texts(self, texts: Sequence[str], *, cut: Cut | Sequence[Cut] = "right") -> TokenizedTexts:
        """`[CLS] text [SEP]`; a longer text is truncated at the requested end."""
        template = self._single
        piece = self._pieces(texts, template.types[0])
        budget = self._budget(template.size, 1)
        kept = piece.keep(_full(len(texts), budget), _from_end(cut, len(texts)))
        return self._compose([piece], [kept], template)

    def pairs(self, firsts: Sequence[Context], seconds: Sequence[str], *, cut: Cut | Sequence[Cut]) -> TokenizedTexts:
        """`[CLS] first [SEP] second [SEP]`; `cut` is the end at which firsts are truncated, for all or for each."""
        template = self._pair
        first = self._pieces([self._joined(context) for context in firsts], template.types[0])
        second = self._pieces(seconds, template.types[1])
        budget = self._budget(template.size, 2)
        room = np.maximum(budget // 2, budget - first.lengths)
        kept_second = second.keep(room, np.zeros(len(seconds), dtype=np.bool_))
        kept_first = first.keep(budget - kept_second.lengths, _from_end(cut, len(firsts)))
        return self._compose([first, second], [kept_first, kept_second], template)

    def records(self, records: Sequence[Record]) -> TokenizedTexts:
        """Pairs of each record's context and text; see `read_context`."""
        contexts = [read_context(record) for record in records]
        cuts = [cut for _, cut in contexts]
        return self.pairs([context for context, _ in contexts], [record.text for record in records], cut=cuts)

    def segments(self, firsts: Sequence[Segment], seconds: Sequence[Segment]) -> TokenizedTexts:
        """`[CLS] context + text [SEP] context + text [SEP]`; each side may use half of the tokens."""
        template = self._pair
        budget = self._budget(template.size, 2) // 2
        whole: list[_Piece] = []
        kept: list[_Piece] = []
        for side, type_id in zip((firsts, seconds), template.types, strict=True):
            contexts = [self._joined(segment.context) for segment in side]
            leads = [self.separator if context else "" for context in contexts]
            before = self._pieces(contexts, type_id)
            text = self._pieces([lead + s.text for lead, s in zip(leads, side, strict=True)], type_id)
            room = np.maximum(budget // 2, budget - before.lengths)
            kept_text = text.keep(room, np.zeros(len(side), dtype=np.bool_))
            kept_before = before.keep(budget - kept_text.lengths, _from_end([s.cut for s in side], len(side)))
            whole += [before, text]
            kept += [kept_before, kept_text]
        (opening, between, closing), none = template.marks, (np.zeros(0, dtype=np.int32), 0)
        return self._compose(whole, kept, _Template((opening, none, between, none, closing), template.types))

    def triples(
        self, contexts: Sequence[Context], firsts: Sequence[str], seconds: Sequence[str], *, cut: Cut | Sequence[Cut]
    ) -> TokenizedTexts:
        """`[CLS] context [SEP] first [SEP] second [SEP]`: two texts that answer the same context.

        Token types 0, 0, 1. The two texts together keep up to half of the tokens, then each up to a quarter, and lose
        their ends; the context is truncated at the requested end.
        """
        (opening, between, closing), (one, two) = self._pair.marks, self._pair.types
        template = _Template((opening, (between[0], one), between, closing), (one, one, two))
        context = self._pieces([self._joined(text) for text in contexts], one)
        first, second = self._pieces(firsts, one), self._pieces(seconds, two)
        budget = self._budget(template.size, 4)
        room = np.maximum(budget // 2, budget - context.lengths)
        head = np.zeros(len(firsts), dtype=np.bool_)
        kept_first = first.keep(np.maximum(room // 2, room - second.lengths), head)
        kept_second = second.keep(np.maximum(room // 2, room - first.lengths), head)
        left = budget - kept_first.lengths - kept_second.lengths
        kept_context = context.keep(left, _from_end(cut, len(contexts)))
        return self._compose([context, first, second], [kept_context, kept_first, kept_second], template)

    def _joined(self, context: Context) -> str:
        return context if isinstance(context, str) else self.separator.join(context)

    def _budget(self, special: int, least: int) -> int:
        budget = self.max_length - special
        if budget < least:
            message = f"a length of {self.max_length} leaves no room next to {special} special tokens: raise max_length"
            raise EncoderError(self.source.name, message)
        return budget

    def _pieces(self, texts: Sequence[str], type_id: int) -> _Piece:
        """The tokens of texts, every distinct one tokenised once."""
        number: dict[str, int] = {}
        places = np.fromiter((number.setdefault(text, len(number)) for text in texts), np.int64, len(texts))
        unique = list(number)
        backend = self.tokenizer.backend_tokenizer
        parts: list[TokenIds] = []
        sizes: list[int] = []
        for start in range(0, len(unique), _TEXTS_AT_A_TIME):
            if start and self.tick is not None:
                self.tick(start, len(unique))
            result = encode_texts(backend, unique[start : start + _TEXTS_AT_A_TIME])
            rows = [encoding.ids for encoding in result]
            sizes += map(len, rows)
            parts.append(np.fromiter(chain.from_iterable(rows), np.int32))
        lengths = np.array(sizes, dtype=np.int64)
        starts = np.cumsum(lengths) - lengths
        ids = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32)
        # SentencePiece treats special tokens as words and finds them in a text.
        unknown = self.tokenizer.unk_token_id
        if unknown is not None:
            ids[np.isin(ids, self.tokenizer.all_special_ids)] = unknown
        return _Piece(ids, starts[places], lengths[places], type_id)

    def _compose(self, whole: Sequence[_Piece], kept: Sequence[_Piece], template: _Template) -> TokenizedTexts:
        """Marks and texts in turn, end to end."""
        n = len(kept[0].lengths)
        parts: list[_Piece] = []
        for place, (ids, type_id) in enumerate(template.marks):
            parts.append(_Piece(ids, _full(n, 0), _full(n, len(ids)), type_id))
            if place < len(kept):
                parts.append(kept[place])
        lengths = np.sum([part.lengths for part in parts], axis=0)
        # A tokenizer without special tokens may return nothing; one padding token is inserted.
        filler = _Piece(np.array([self.pad_id], dtype=np.int32), _full(n, 0), (lengths == 0).astype(np.int64), 0)
        lengths = lengths + filler.lengths
        ids = np.empty(int(lengths.sum()), dtype=np.int32)
        types = np.empty(len(ids), dtype=np.int8) if self._typed else None
        free = np.cumsum(lengths) - lengths
        for part in (*parts, filler):
            places = ragged_places(free, part.lengths)
            ids[places] = part.ids[ragged_places(part.starts, part.lengths)]
            if types is not None:
                types[places] = part.type_id
            free = free + part.lengths
        words = self.source.words
        if words is not None and len(ids) and int(ids.max()) >= words:
            raise EncoderError(self.source.name, foreign_tokenizer(int(ids.max()), words))
        cut = np.zeros(n, dtype=np.bool_)
        for before, after in zip(whole, kept, strict=True):
            cut |= after.lengths < before.lengths
        return TokenizedTexts(Encodings(ids, lengths, types), cut)

    @cached_property
    def _typed(self) -> bool:
        """Whether the encoder has token types and the tokenizer uses them."""
        return self.source.type_vocabulary > 1 and any(self._pair.types)

    @cached_property
    def _single(self) -> _Template:
        return self._template("a")

    @cached_property
    def _pair(self) -> _Template:
        return self._template("a", "a")

    def _template(self, *probe: str) -> _Template:
        """Derived from the tokenizer's output for short texts."""
        result = self.tokenizer.backend_tokenizer.encode(*probe)
        marks: list[list[int]] = [[] for _ in range(len(probe) + 1)]
        mark_types, types = [0] * len(marks), [0] * len(probe)
        seen = -1
        for token, type_id, text in zip(result.ids, result.type_ids, result.sequence_ids, strict=True):
            if text is None:
                marks[seen + 1].append(token)
                mark_types[seen + 1] = type_id
            else:
                seen = text
                types[text] = type_id
        if seen != len(probe) - 1:
            raise EncoderError(self.source.name, "its tokenizer does not know the letter a: it reads no texts")
        rows = (np.array(ids, dtype=np.int32) for ids in marks)
        return _Template(tuple(zip(rows, mark_types, strict=True)), tuple(types))


def encode_texts(backend: Any, texts: Sequence[str]) -> Any:
    """Return the encodings of `texts` by a `backend` of the package tokenizers, without special tokens; see
    `well_formed` for invalid text."""
    try:
        return backend.encode_batch_fast(list(texts), add_special_tokens=False)
    except TypeError:
        # Checked only now: hardly any text needs it, and the check takes time.
        return backend.encode_batch_fast([well_formed(text) for text in texts], add_special_tokens=False)


def well_formed(text: str) -> str:
    """The text with U+FFFD for every half of a surrogate pair: JSON can contain one, but no tokenizer accepts it."""
    return _SURROGATE.sub("\ufffd", text)


def read_context(record: Record) -> tuple[Context, Cut]:
    """The context that a record's text answers, and the end at which it is truncated: turns at the left, a source alone
    at the right.

    A source next to turns counts as the first turn; without either the context is empty.
    """
    if record.context:
        return (record.source, *record.context) if record.source else record.context, "left"
    return record.source or "", "right"


def _full(n: int, value: int) -> Ints:
    return np.full(n, value, dtype=np.int64)


def _from_end(cut: Cut | Sequence[Cut], n: int) -> npt.NDArray[np.bool_]:
    """Whether the end of each text is kept."""
    if isinstance(cut, str):
        return np.full(n, cut == "left")
    return np.fromiter((side == "left" for side in cut), np.bool_, n)
