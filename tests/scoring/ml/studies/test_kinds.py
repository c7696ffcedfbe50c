"""The kinds of study: every default is accepted, every variant has valid options, unknown names are refused."""

from __future__ import annotations

import pytest

from scoring.ml import catalogue
from scoring.ml.errors import InvalidOption
from scoring.ml.registry import get_entry
from scoring.ml.studies import measures
from scoring.ml.studies.kinds import ABLATIONS, KINDS, PROPOSED, get_kind, list_variants
from scoring.selectors.studies import STUDIES


def test_all_variants_have_options_that_their_evaluators_accept():
    assert set(PROPOSED) == set(ABLATIONS)
    for rows in ABLATIONS.values():
        for row in rows:
            entry = get_entry(row.evaluator)
            for options in (row.options, {**row.options, **row.needs}):
                assert entry.parse_train_options(entry.profiles[0], options)
            assert entry.parse_options(row.scoring)


def test_a_variant_differs_from_the_full_model():
    for full, *others in ABLATIONS.values():
        whole = (full.evaluator, get_entry(full.evaluator).train_defaults("recommended"), {})
        for row in others:
            options = get_entry(row.evaluator).parse_train_options("recommended", row.options)
            assert (row.evaluator, options, dict(row.scoring)) != whole, row.label


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_every_kind_has_a_measure_and_accepts_its_defaults(kind):
    assert callable(getattr(measures, kind.measure))
    assert list_variants(kind)
    assert [entry.name for entry in catalogue() if kind.accepts(entry)]


def test_requests_list_the_same_kinds():
    assert tuple(KINDS) == STUDIES


def test_ridge_is_added_where_trained_evaluators_are_compared_with_people():
    ablation = list_variants(get_kind("ablation"), ["maude"])
    assert (ablation[-1].evaluator, ablation[-1].is_rival) == ("ridge", True)
    assert [row.label for row in list_variants(get_kind("seeds"), ["adversarial"])] == ["adversarial", "ridge"]
    assert [row.is_rival for row in list_variants(get_kind("selection"))][-2:] == [False, True]
    # It is named already; nothing is trained; the figures are no agreement with people.
    assert [row.label for row in list_variants(get_kind("seeds"), ["ridge"])] == ["ridge"]
    assert not any(row.is_rival for row in list_variants(get_kind("side-by-side")))
    assert [row.label for row in list_variants(get_kind("side-by-side"), ["length"])] == ["length"]
    assert not any(row.is_rival for row in list_variants(get_kind("delta")))


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(InvalidOption, match="seeds, ablation"):
        get_kind("seed")
    with pytest.raises(InvalidOption, match=r"which takes: .*maude"):
        list_variants(get_kind("delta"), ["ream"])
    with pytest.raises(InvalidOption, match="one evaluator"):
        list_variants(get_kind("ablation"), ["ream", "maude"])
