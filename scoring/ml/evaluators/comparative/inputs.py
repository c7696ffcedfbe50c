"""How two texts with their contexts become one input of the encoder, in both forms. No torch here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from scoring.ml.encoders.separate import ReadTexts, read_columns, read_last_turns
from scoring.ml.encoders.source import EncoderSource
from scoring.ml.encoders.tokenizing import Context, Cut, PairTokenizer, Segment, read_context
from scoring.ml.encodings import Encodings, TokenizedTexts
from scoring.ml.errors import EncoderError
from scoring.ml.types import Record

Form: TypeAlias = Literal["own", "shared"]
_SENTENCE_ENDS, _CLOSING = (".", "!", "?", "…"), "\"'”’»)"


def cut_at_sentence(text: str, words: int | None) -> str:
    """Truncate a `text` of more than `words` words at the nearest sentence end within half of that number, else after
    that number of words: a text that begins with "Oh." must not become this word."""
    if words is None:
        return text
    pieces = text.split()
    if len(pieces) <= words:
        return text
    last = words + words // 2
    ends = [
        place
        for place, piece in enumerate(pieces[:last], start=1)
        if place >= words - words // 2 and piece.rstrip(_CLOSING).endswith(_SENTENCE_ENDS)
    ]
    nearest = min(ends, key=lambda end: (abs(end - words), end), default=words)
    return " ".join(pieces[:nearest])


def _said(context: Context) -> bool:
    """Whether a context has a turn that is not blank."""
    return any(turn.strip() for turn in ((context,) if isinstance(context, str) else context))


class PairReader:
    """Tokenises pairs of records.

    own:    [CLS] context_a + a [SEP] context_b + b [SEP], each side with half of the tokens.
    shared: [CLS] context [SEP] a [SEP] b [SEP] where both answer the same, non-empty context, else as own.

    `inputs` "text" leaves the contexts out, "context" the texts. `words` first truncates long texts at a sentence end;
    they count as truncated as well. With `texts` above 0 each text is read alone: 4 are two texts and their contexts,
    2 without contexts.
    """

    def __init__(
        self,
        source: EncoderSource,
        *,
        form: Form = "shared",
        inputs: str = "both",
        max_length: int | None = None,
        words: int | None = None,
        texts: int = 0,
    ) -> None:
        self.tokenizer = PairTokenizer(source, max_length=max_length)
        self.form, self.inputs, self.words, self.texts = form, inputs, words, texts

    @property
    def pad_id(self) -> int:
        """The padding token."""
        return self.tokenizer.pad_id

    @cached_property
    def separator(self) -> tuple[int, int]:
        """The token that ends every text of an input, and how many of it separate two texts.

        Raises `EncoderError` for a tokenizer that ends its texts in another way.
        """
        blank = Segment("", "", "right")
        one = self.tokenizer.texts([""]).encodings[0].ids
        two = self.tokenizer.segments([blank], [blank]).encodings[0].ids
        between = len(two) - len(one)
        if between < 1 or len(set(two[-between - 1 :])) > 1 or one[-1] != two[-1]:
            raise EncoderError(
                self.tokenizer.source.name,
                "its tokenizer does not end every text with one and the same token: choose pooling=mean or pooling=cls",
            )
        return two[-1], between

    def _segment(self, record: Record) -> tuple[Segment, bool]:
        """One side, and whether it lost words."""
        context: Context
        context, cut = read_context(record) if self.inputs != "text" else ((), "right")
        if self.texts and self.inputs != "text":
            context, cut = read_last_turns(record)
        if self.inputs == "context":
            return Segment("", context, cut), False
        text = cut_at_sentence(record.text, self.words)
        return Segment(text, context, cut), text is not record.text and len(text.split()) < len(record.text.split())

    def pairs(self, firsts: Sequence[Record], seconds: Sequence[Record]) -> ReadTexts:
        """Firsts against seconds, in their order."""
        known: dict[int, tuple[Segment, bool]] = {}

        def side(record: Record) -> tuple[Segment, bool]:
            result = known.get(id(record))
            if result is None:
                result = known[id(record)] = self._segment(record)
            return result

        sides = [side(record) for record in firsts], [side(record) for record in seconds]
        one, two = ([segment for segment, _ in each] for each in sides)
        shortened = np.array([a or b for (_, a), (_, b) in zip(*sides, strict=True)], dtype=np.bool_)
        result = self._read(one, two)
        return ReadTexts(result.encodings, result.truncated | shortened)

    def _columns(self, *sides: Sequence[Segment]) -> ReadTexts:
        """Each text alone, and each context if it has one."""
        only = self.inputs == "context"
        columns: list[tuple[list[str], list[Cut]]] = []
        for side in sides:
            texts = [str(segment.context) if only else segment.text for segment in side]
            columns.append((texts, [segment.cut if only else "right" for segment in side]))
        if self.texts > len(sides):
            columns += [([str(one.context) for one in side], [one.cut for one in side]) for side in sides]
        return read_columns(self.tokenizer, columns)

    def _read(self, one: list[Segment], two: list[Segment]) -> TokenizedTexts | ReadTexts:
        """Sides against sides, in their order."""
        if self.texts:
            return self._columns(one, two)
        if self.form == "own":
            return self.tokenizer.segments(one, two)
        shared = np.array([a.context == b.context and _said(a.context) for a, b in zip(one, two, strict=True)], bool)
        together, apart = np.flatnonzero(shared), np.flatnonzero(~shared)
        parts: list[TokenizedTexts] = []
        if len(together):
            contexts: list[Context] = [one[row].context for row in together]
            cuts: list[Cut] = [one[row].cut for row in together]
            texts = [one[row].text for row in together], [two[row].text for row in together]
            parts.append(self.tokenizer.triples(contexts, *texts, cut=cuts))
        if len(apart) or not one:
            parts.append(self.tokenizer.segments([one[row] for row in apart], [two[row] for row in apart]))
        order = np.argsort(np.concatenate([together, apart]), kind="stable")
        joined = Encodings.join(part.encodings for part in parts)
        return TokenizedTexts(joined.take(order), np.concatenate([part.truncated for part in parts])[order])

    def singles(self, records: Sequence[Record]) -> ReadTexts:
        """[CLS] context [SEP] text [SEP], for evaluators without comparison; each alone if `texts` is 2, without
        context if it is 1."""
        sides = [self._segment(record) for record in records]
        cuts: list[Cut] = [side.cut for side, _ in sides]
        segments = [side for side, _ in sides]
        result: TokenizedTexts | ReadTexts
        if self.texts > 1:
            result = self._columns(segments)
        else:
            contexts = ["" if self.texts else side.context for side in segments]
            result = self.tokenizer.pairs(contexts, [side.text for side in segments], cut=cuts)
        return ReadTexts(result.encodings, result.truncated | np.array([cut for _, cut in sides], dtype=np.bool_))
