"""The request and the result of a run, in words."""

from __future__ import annotations

from evalapp.common.run_facts import MAX_ITEMS, MAX_PARAM, describe_params, split_result


def test_results_have_labels_and_meaningful_digits():
    facts, rest = split_result(
        {
            "mean_before": 0.2993805017322302, "n_references": 29, "looked_at": 12345, "score_set": 12345,
            "aligned": False, "delta": -0.5, "none": float("nan"), "url": "/x/", "sets": ["a"], "long": "x" * 200,
        }
    )  # fmt: skip
    assert facts == [
        ("Predicted reliability, before", "0.2994"),
        ("Number of references", "29"),
        ("Candidates compared", "12,345"),
        ("Score set id", "12345"),
        ("Aligned", "no"),
        ("Delta", "−0.5"),
        ("None", "-"),
    ]
    assert list(rest) == ["sets", "long"]


def test_request_omits_parameters_left_open():
    params = {
        "evaluator": "ream", "name": "", "turns": None, "seed": 13131, "incoming": "8b87",
        "options": {"learning_rate": 5e-05, "affine": True, "encoder": None},
        "data": {"campaigns": [], "systems": ["a", "b"]},
        "systems": [str(number) for number in range(MAX_ITEMS + 2)], "text": "y" * 1000, "pairs": [["a", 1]],
    }  # fmt: skip
    asked = list(describe_params(params))
    assert asked[:5] == [
        ("Evaluator", "ream"), ("Seed", "13131"), ("Learning rate", "5e−05"), ("Affine", "yes"), ("Systems", "a, b"),
    ]  # fmt: skip
    assert asked[5][1].endswith("19 and 2 more")
    assert len(asked[6][1]) == MAX_PARAM + 1
    assert asked[7] == ("Pairs", '["a", 1]')
