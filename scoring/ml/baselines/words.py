"""The base of metrics that compare words, and the options of their tokeniser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scoring.ml.base import Evaluator
from scoring.ml.catalogue import Entry, OptionValue
from scoring.ml.options import choice, flag, text
from scoring.ml.text.tokens import BLEU_TOKENIZERS, TokenTable, token_table, tokenizer_for, unspaced_remark
from scoring.ml.types import Record

TOKEN_OPTIONS = (
    choice(
        "tokenize",
        ("auto", *BLEU_TOKENIZERS),
        "Tokeniser: 13a, zh, char or none (white space only); auto takes the one of `lang`.",
    ),
    text("lang", "en", "Language of the texts; zh uses the tokeniser zh, ja th lo km my use char."),
    flag("lowercase", False, "Ignore case."),
)


class WordMetric(Evaluator):
    """A metric with `TOKEN_OPTIONS`. It remarks on texts without spaces that its tokeniser splits at spaces."""

    def __init__(self, entry: Entry, options: Mapping[str, OptionValue]) -> None:
        super().__init__(entry, options)
        asked = self.option_text("tokenize")
        self.tokenizer = tokenizer_for(self.option_text("lang")) if asked == "auto" else asked

    def remarks_on(self, records: Sequence[Record]) -> tuple[str, ...]:
        return unspaced_remark((record.text for record in records), self.tokenizer)

    def tokenize(self, texts: Sequence[str]) -> TokenTable:
        """The tokens of texts, in lower case if the options say so."""
        return token_table(texts, self.tokenizer, bool(self.options["lowercase"]))
