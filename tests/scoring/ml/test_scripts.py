"""Every evaluator on texts in 12 scripts: equal texts reach its maximum, different ones do not, or the score is
undefined with a reason. Before version 0.2, metrics gave 0 to non-ASCII texts, and 1 to different ones."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from evalapp.words import split_words
from scoring.ml import Record, fit, load, read_dataset
from scoring.ml.base import Evaluator
from scoring.ml.encoders.unknown import Coverage, UnknownTokens
from scoring.ml.registry import catalogue
from tests.scoring.ml.baselines.test_bleurt import save_regression
from tests.scoring.ml.everything import SMALLEST, write_everything

#: By language: a text, and another one that shares no word with it (at most a few letters where letters are words).
TEXTS = {
    "en": ("The weather is lovely today", "Nobody reads old newspapers"),
    "de": ("Schöne Grüße aus Österreich", "Übermäßig große Häuser"),
    "ru": ("Сегодня хорошая погода здесь", "Никто больше читает газеты"),
    "el": ("Σήμερα έχει πολύ ήλιο", "Κανείς δεν διαβάζει εφημερίδες"),
    "he": ("מזג האוויר נעים היום", "אף אחד לא קורא"),
    "ar": ("الطقس جميل جدا اليوم", "لا أحد يقرأ الصحف"),
    "hi": ("आज मौसम बहुत अच्छा", "कोई अखबार नहीं पढ़ता"),
    "bn": ("আজকের আবহাওয়া খুব ভালো", "কেউ আর কাগজ পড়ে না"),
    "ta": ("இன்று வானிலை மிகவும் நல்லது", "யாரும் செய்தித்தாள் படிப்பதில்லை"),
    "ko": ("오늘 날씨가 정말 좋아요", "아무도 신문을 읽지 않는다"),
    "zh": ("今天天气非常好", "没有人再读报纸了"),
    "ja": ("きょうはとてもいいてんき", "しんぶんをよむひともいない"),
    "th": ("วันนี้อากาศดีมาก", "ไม่มีใครอ่านหนังสือพิมพ์"),
}
REFERENCED = [
    entry
    for entry in catalogue()
    if entry.kind == "baseline"
    and "references" in entry.needs
    and entry.loads_by_name
    and (entry.pairwise or entry.identical_is_best)
]
TRAINED = [entry.name for entry in catalogue() if entry.learns]


@cache
def load_once(name: str, language: str) -> Evaluator:
    """Loading an encoder takes longer than scoring a few texts with it."""
    return load(name, **({"lang": language} if language else {}))


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("is_told", [True, False], ids=["lang", "default"])
@pytest.mark.parametrize("entry", REFERENCED, ids=lambda entry: entry.name)
def test_equal_texts_reach_the_maximum_and_different_ones_do_not(entry, is_told, language):
    names = {option.name for option in entry.options}
    evaluator = load_once(entry.name, language if is_told and "lang" in names else "")
    one, two = TEXTS[language]
    found = evaluator.evaluate([Record(one, (one,)), Record(two, (one,)), Record(two, (two,)), Record(one, (two,))])
    for place in (0, 2):
        equal, different = found.values[place : place + 2]
        if np.isnan(equal):
            assert np.isnan(different)
            assert all(found.reasons[place : place + 2])
            continue
        top = evaluator.scale[1] if entry.identical_is_best else equal
        span = top - evaluator.worst
        assert equal == pytest.approx(top, abs=1e-6 * span)
        assert span > 0
        if np.isnan(different):  # the encoder reads only one of the two
            assert found.reasons[place + 1]
            continue
        assert different < top - 0.01 * span
        if evaluator.unknown_tokens is None:
            assert different < top - 0.4 * span


@pytest.mark.parametrize("language", TEXTS)
def test_baselines_know_words_of_every_script(language):
    one, two = TEXTS[language]
    assert load("length").score([Record(one), Record(f"{one}. {two}!")]).tolist() == [
        len(split_words(one)),
        len(split_words(one)) + len(split_words(two)),
    ]
    assert len(split_words(one)) >= 4
    inside, outside = load("overlap").score([Record(one, context=(f"{two} {one}",)), Record(one, context=(two,))])
    assert inside == 1
    assert outside < 0.5
    values = load("random").score([Record(one), Record(one), Record(two)])
    assert values[0] == values[1] != values[2]


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("name", ["distinct-1", "distinct-2"])
def test_repetition_is_detected_in_every_script(name, language):
    """A text followed by itself has half the share of distinct words; a note says if it is split at spaces that it
    lacks."""
    one, _ = TEXTS[language]
    joint = "" if language in ("zh", "ja", "th") else " "
    rows = [Record(one), Record(one + joint + one)]
    once, twice = load(name, lang=language).score(rows)
    assert twice < once * 0.7
    default = load(name)
    once, twice = default.score(rows)
    assert twice < once * 0.7 or any("set `lang`" in note for note in default.notes)


@pytest.mark.parametrize("language", TEXTS)
def test_perplexity_distinguishes_known_from_unknown_texts(language):
    one, two = TEXTS[language]
    rows = [Record(one, (one,), item=f"i{number}") for number in range(8)] + [Record(two, (one,), item="j")]
    values = load("perplexity", lang=language).score(rows)
    assert values[8] < values[:8].min()


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_bleurt_scores_what_its_checkpoint_reads(family, tmp_path):
    evaluator = load("bleurt", encoder=save_regression(tmp_path, family))
    rows = [Record(text, (pair[0],)) for pair in TEXTS.values() for text in pair]
    found = evaluator.evaluate(rows)
    check_by_family(found, rows, family)
    if family == "roberta":
        assert len(set(found.values.round(9))) == len(rows)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_everything(tmp_path_factory.mktemp("everything"))


@pytest.mark.parametrize("family", ["bert", "roberta"])
@pytest.mark.parametrize("name", TRAINED)
def test_trained_evaluators_score_what_their_encoder_reads(name, family, everything, tiny_family):
    """The tiny BERT only knows Latin letters, the tiny RoBERTa reads the bytes of every script."""
    evaluator = fit(name, read_dataset(everything), encoder=tiny_family(family), **SMALLEST[name])
    rows = [
        Record(text, pair, context=(pair[0],), item=f"{language}{place}", system="s1")
        for language, pair in TEXTS.items()
        for place, text in enumerate(pair)
    ]
    found = evaluator.evaluate([*rows, rows[0]])
    assert found.values[0] == found.values[-1] or np.isnan(found.values[[0, -1]]).all()
    check_by_family(found, rows, family)


def check_by_family(found, rows, family):
    """With BERT, only the ASCII texts have a score; no score is missing for another reason."""
    missing = np.isnan(found.values[: len(rows)])
    readable = [row.text.isascii() for row in rows]
    if family == "roberta":
        assert not missing.any()
        assert found.n_unknown == 0
        return
    german = [row.item.startswith("de") or any("Gr" in text for text in row.references) for row in rows]
    for row, gone, ascii_only, is_german, reason in zip(rows, missing, readable, german, found.reasons, strict=False):
        if not is_german:
            assert gone != ascii_only, row.text
            assert ("knows no word of it" in reason) == gone


def test_reading_of_texts(tiny_family):
    source = Path(tiny_family("bert"))
    reader = UnknownTokens.from_folder("tiny", source)
    assert reader is not None
    texts = ["the cat", "the cat (ran)", "วันนี้", "วันนี้ 3.", " ", "cat วันนี้", "a" * 150, "[UNK]"]
    found = reader.look(texts)
    # A digit next to unknown words does not make them known; text that looks like the unknown token is text.
    assert [found[text] for text in texts] == [
        Coverage.ALL, Coverage.SOME, Coverage.NONE, Coverage.NONE, Coverage.ALL, Coverage.SOME, Coverage.NONE,
        found["[UNK]"],
    ]  # fmt: skip
    assert found["[UNK]"] != Coverage.NONE
    assert UnknownTokens.from_folder("bytes", Path(tiny_family("roberta"))).look(texts) == dict.fromkeys(texts, 0)
    assert UnknownTokens.from_folder("none", source.parent) is None


def test_unknown_words_are_counted_and_unreadable_references_do_not_count():
    """The installed MiniLM knows no Thai. A Thai reference next to an English one is ignored."""
    evaluator = load("bertscore")
    english, thai = TEXTS["en"][0], TEXTS["th"][0]
    rows = [
        Record(english, (english,)), Record(english, (thai, english)), Record(english, (thai,)),
        Record(thai, (english,)),
        Record(f"{english} {thai}", (english,)),
    ]  # fmt: skip
    found = evaluator.evaluate(rows)
    np.testing.assert_allclose(found.values[:2], 1, atol=1e-6)
    reason = "the encoder all-MiniLM-L6-v2 knows no word of it: choose one that reads this language"
    assert found.reasons == ("", "", f"references: {reason}", f"text: {reason}", "")
    assert found.unknown.tolist() == [False, True, False, False, True]
    assert "2 records have words that the encoder does not know; it cannot distinguish them" in found.notes


def test_trainings_and_games_count_texts_with_unknown_words(monkeypatch):
    """The installed MiniLM knows no Thai: reported before a training, in its card, and with a ranking by games."""
    from scoring.ml.encoders.source import find_encoder
    from scoring.ml.training.checks import describe_unknown_words
    from scoring.ml.types import Dataset, Item, Output
    from scoring.pipelines import games

    english, thai = TEXTS["en"][0], TEXTS["th"][0]
    said = "have words that the encoder all-MiniLM-L6-v2 does not know: it cannot distinguish these words"
    outputs = tuple(Output("i", f"s{k}", text) for k, text in enumerate((english, thai, thai, " ")))
    data = Dataset("d", items=(Item("i", (f"{english} {thai}",), None, (english,), "i"),), outputs=outputs)
    job = SimpleNamespace(entry=SimpleNamespace(needs=("encoder",)), encoder=find_encoder(), train=data)
    assert describe_unknown_words(job) == [f"2 of 3 different texts of the training data {said}"]
    job.train = Dataset("d", outputs=outputs[:1])
    assert describe_unknown_words(job) == []
    job.entry.needs = ()
    assert describe_unknown_words(job) == []
    monkeypatch.setattr(games, "systems_by_games", lambda *_, **__: {"rows": [1], "extras": {}, "findings": []})
    monkeypatch.setattr(games, "_as_columns", lambda *_: None)
    monkeypatch.setattr(games, "compare_with_people", lambda *_: [])
    judge = SimpleNamespace(slug="judge", signature="", tie_rule="half", texts_read=lambda record: (record.text,))
    judge.unknown_tokens = load("bertscore").unknown_tokens
    systems = {"a": [Record(english), Record(thai)], "b": [Record("cat")]}
    table = games._make_table(
        SimpleNamespace(project=None, progress=lambda *_: None),
        SimpleNamespace(systems="all", items=9, seeds=1, seed=1), judge, judge, None,
        SimpleNamespace(without=[], n_pairs=1, systems=systems),
    )  # fmt: skip
    assert table["findings"] == [f"1 of 3 different texts {said}."]


STATED = [entry for entry in catalogue() if entry.kind != "trained" and entry.loads_by_name and any(
    end is not None for end in entry.scale)]  # fmt: skip
OPTIONS = {
    "bertscore": ({}, {"idf": True}, {"component": "recall"}),
    "moverscore": ({}, {"form": "linear"}, {"form": "linear", "cost": "squared"}),
    "bleu-4": ({}, *({"smooth": name} for name in ("floor", "add-k", "none", "method1", "method3", "method5"))),
    "chrf": ({}, {"word_order": 2, "beta": 1.3}),
    "rouge-l": ({}, {"beta": 1.2}, {"tokenize": "unicode", "beta": 3.7}),
}


@pytest.mark.parametrize("entry", STATED, ids=lambda entry: entry.name)
def test_no_score_leaves_the_declared_scale(entry):
    """Not even by rounding: BERTScore of equal texts was 1.0000001192, BLEU 100.00000000000004."""
    rng = np.random.default_rng(5)
    words = [word for pair in TEXTS.values() for text in pair for word in text.split()] + ["a", "the", "42", "!", "👍"]
    texts = [" ".join(rng.choice(words, rng.integers(1, 12))) for _ in range(40)]
    rows = [Record(text, (text,), context=(texts[0],), item=str(place)) for place, text in enumerate(texts)]
    rows += [Record(one, (two, texts[3]), context=(two,), item=one) for one, two in pairwise(texts)]
    for options in OPTIONS.get(entry.name, ({},)):
        evaluator = load(entry.name, **options)
        values = evaluator.score(rows)
        low, high = evaluator.scale
        assert np.nanmin(values) >= (-np.inf if low is None else low)
        assert np.nanmax(values) <= (np.inf if high is None else high)
        assert np.isfinite(values[~np.isnan(values)]).all()


def test_declared_scales_are_those_of_the_catalogue_by_default():
    assert [entry.name for entry in STATED if load(entry.name).scale != entry.scale] == []
