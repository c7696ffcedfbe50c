"""The OpenAPI document has a chapter for every call."""

from collections import Counter

from drf_spectacular.generators import SchemaGenerator

from evalapp.common.api.tags import TAGS


def test_every_call_is_in_a_chapter_and_none_is_too_long():
    schema = SchemaGenerator().get_schema(request=None, public=True)
    calls = Counter(call["tags"][0] for path in schema["paths"].values() for call in path.values())
    assert set(calls) == set(TAGS) == {tag["name"] for tag in schema["tags"]}
    assert max(calls.values()) < sum(calls.values()) / 3
