"""Which systems are linked by comparisons."""

from __future__ import annotations

import json

import numpy as np

from evalapp.stats.ranking.connectivity import connectivity, is_strongly_connected, largest_class


def test_all_linked():
    found = connectivity(["x", "y", "z"], ["y", "z", "x"], ["a", "a", "a"])
    assert found.connected
    assert found.strongly_connected
    assert found.note == ""
    assert json.loads(json.dumps(found.as_dict()))["components"] == [["x", "y", "z"]]


def test_unlinked_groups_are_named():
    found = connectivity(["x", "y", "u"], ["y", "x", "v"], ["a", "a", "tie"])
    # Equal sizes: x and y have more judgements, so they are ranked (`largest_component`) and come first.
    assert found.components == (("x", "y"), ("u", "v"))
    assert found.note == (
        "the comparisons fall into 2 parts that were never compared with each other, so only one part (among "
        "equally large parts the one with most judgements, else the first) is ranked: x, y. Not ranked: u, v"
    )


def test_system_that_lost_everything_is_linked_but_not_strongly():
    found = connectivity(["x", "y", "x"], ["y", "x", "z"], ["a", "a", "a"])
    assert found.connected
    assert found.classes == (("x", "y"), ("z",))
    assert "2 of 3" in found.note


def test_cannot_decide_links_nothing_but_both_bad_does():
    assert len(connectivity(["x"], ["y"], ["cannot_decide"]).components) == 2
    assert connectivity(["x"], ["y"], ["both_bad"]).strongly_connected


def test_nothing_is_connected_without_a_note():
    found = connectivity([], [], [])
    assert found.components == ()
    assert found.note == ""


def test_largest_class_is_the_first_of_equals_and_needs_two():
    two = np.zeros((4, 4), dtype=bool)
    two[[0, 1, 2, 3], [1, 0, 3, 2]] = True
    assert largest_class(two).tolist() == [True, True, False, False]
    assert not largest_class(np.zeros((3, 3), dtype=bool)).any()
    assert not is_strongly_connected(two)
    assert is_strongly_connected(np.zeros((1, 1), dtype=bool))


def test_many_groups_are_abbreviated():
    names = [f"s{n:02}" for n in range(24)]
    found = connectivity(names[::2], names[1::2], ["tie"] * 12)
    assert "and 7 more" in found.note
