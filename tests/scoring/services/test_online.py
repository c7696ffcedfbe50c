"""Which evaluator answers a request for single texts."""

from __future__ import annotations

import pytest

from evalapp.common.errors import NotThere
from scoring.services import online

pytestmark = pytest.mark.django_db


def test_other_usual_names_of_metrics_are_known(cast, monkeypatch):
    monkeypatch.setattr(online, "ask_live", lambda request, asker: request)
    pairs = {"kind": "score", "pairs": [{"text": "a", "references": ["a"]}]}
    asked = online.ask_evaluator(user=cast.researcher, evaluator="chrF++", request=pairs)
    assert (asked["source"], asked["options"]["word_order"]) == ({"name": "chrf"}, 2)
    own = online.ask_evaluator(user=cast.researcher, evaluator="chrF++", request=pairs, options={"word_order": 1})
    assert own["options"]["word_order"] == 1
    with pytest.raises(NotThere, match="no evaluator “blue”"):
        online.ask_evaluator(user=cast.researcher, evaluator="blue", request=pairs)
