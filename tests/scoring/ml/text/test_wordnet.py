"""The parser of WordNet's files on a tiny database written here, compared with nltk's."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from scoring.ml.text.wordnet import WordNet, find_wordnet, open_wordnet
from tests.scoring.ml.wordnet import nltk_reader, write_wordnet

WORDS = ["dogs", "dog", "hound", "cat", "quickly", "fast", "faster", "geese", "goose", "ran", "run", "running",
         "sprint", "former", "churches", "unknown", "glasses", "men", "man", "wolves", "xes", "s"]  # fmt: skip


@pytest.fixture(scope="module")
def tiny_wordnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_wordnet(tmp_path_factory.mktemp("nltk_data") / "corpora" / "wordnet")


def lemmas(found: set[str]) -> set[str]:
    return {name for name in found if "_" not in name}


def test_base_forms_and_synonyms_by_hand(tiny_wordnet: Path):
    wordnet = WordNet(tiny_wordnet)
    assert wordnet.synonyms("dogs") == {"dog", "hound", "frank", "chase"}  # s -> ""; no "domestic_dog"
    assert wordnet.synonyms("geese") == {"goose"}  # by the exception list
    assert wordnet.synonyms("ran") == {"run", "sprint", "flow"}
    assert wordnet.synonyms("faster") == {"fast", "quick"}
    assert wordnet.synonyms("former") == {"former", "previous"}  # "former(a)" without its marker
    assert wordnet.synonyms("fast") == {"fast", "quick", "quickly"}  # adjective and adverb
    assert wordnet.synonyms("unknown") == frozenset()


def test_equals_nltk(tiny_wordnet: Path):
    peer = nltk_reader(tiny_wordnet)
    wordnet = WordNet(tiny_wordnet)
    for word in WORDS:
        expected = {lemma.name() for synset in peer.synsets(word) for lemma in synset.lemmas()}
        assert wordnet.synonyms(word) == lemmas(expected), word


def test_a_zip_reads_the_same(tiny_wordnet: Path, tmp_path: Path):
    path = tmp_path / "wordnet.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in tiny_wordnet.iterdir():
            archive.write(file, f"wordnet/{file.name}")
    packed, plain = WordNet(path), WordNet(tiny_wordnet)
    assert packed.fingerprint == plain.fingerprint
    assert all(packed.synonyms(word) == plain.synonyms(word) for word in WORDS)


def test_found_in_the_data_folder_of_nltk_or_by_wnsearchdir(tiny_wordnet: Path, tmp_path: Path, monkeypatch):
    monkeypatch.delenv("WNSEARCHDIR", raising=False)
    (tmp_path / "corpora").mkdir()
    (tmp_path / "corpora" / "wordnet").symlink_to(tiny_wordnet)
    monkeypatch.setenv("NLTK_DATA", str(tmp_path))
    assert find_wordnet() == tmp_path / "corpora" / "wordnet"
    monkeypatch.setenv("WNSEARCHDIR", str(tiny_wordnet))
    assert find_wordnet() == tiny_wordnet
    assert open_wordnet(tiny_wordnet) is open_wordnet(tiny_wordnet)
