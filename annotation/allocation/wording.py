"""Differences between two wordings: shared content words and changed words, for writing under a constraint.

Words are those of `evalapp.words`, without surrounding apostrophes. Content words are the distinct words of a text
except the English function words below and single Latin letters. Writing without spaces (Chinese, Japanese, Thai ...)
is split into pairs of neighbouring characters. Function words of other languages count as content words."""

from collections.abc import Iterator
from difflib import SequenceMatcher

from evalapp.words import word_runs

_ENGLISH = """
    a about above after again against all almost also although always am an and another any anybody anyone anything
    are aren't around as at away be because been before behind being below beside between both but by can can't cannot
    could couldn't did didn't do does doesn't doing don't down during each either else ever every everybody everyone
    everything few for from further had hadn't has hasn't have haven't having he he'd he'll he's her here hers herself
    him himself his how however i i'd i'll i'm i've if in into is isn't it it's its itself just let's like may me might
    mine more most much must mustn't my myself near neither never no nobody none nor not nothing now of off on once one
    only onto or other others our ours ourselves out over own perhaps quite rather same shall shan't she she'd she'll
    she's should shouldn't since so some somebody someone something still such than that that's the their theirs them
    themselves then there there's these they they'd they'll they're they've this those though through till to too
    toward towards under until up upon us very was wasn't we we'd we'll we're we've well were weren't what what's when
    where whether which while who who's whom whose why will with within without won't would wouldn't yes yet you you'd
    you'll you're you've your yours yourself yourselves"""
FUNCTION_WORDS = frozenset(_ENGLISH.split())


def split_words(text: str) -> list[str]:
    """The words of a text in order, case folded. In writing without spaces each character, with its marks, is a
    word."""
    return [word for run in _runs(text) for word in run]


def _runs(text: str) -> Iterator[list[str]]:
    """The words of `word_runs` without surrounding quotation marks."""
    for run in word_runs(text):
        if bare := [word.strip("'") for word in run if word.strip("'")]:
            yield bare


def find_content_words(text: str) -> frozenset[str]:
    return frozenset(_content(text))


def _content(text: str) -> Iterator[str]:
    for run in _runs(text):
        word = run[0]
        if len(run) > 1:
            yield from ("".join(run[k : k + 2]) for k in range(len(run) - 1))
        elif word not in FUNCTION_WORDS and not (len(word) == 1 and word.isascii() and word.isalpha()):
            yield word


def shared_words(text: str, original: str) -> list[str]:
    """The content words of both texts, in the order of `text`."""
    words = find_content_words(original)
    return list(dict.fromkeys(word for word in _content(text) if word in words))


def changed_words(text: str, original: str) -> int:
    """The number of words of `original` that were replaced, removed or added: the sum of the longer side over the
    blocks in which the two sequences of words differ."""
    blocks = SequenceMatcher(None, split_words(original), split_words(text), autojunk=False).get_opcodes()
    return sum(max(i2 - i1, j2 - j1) for tag, i1, i2, j1, j2 in blocks if tag != "equal")
