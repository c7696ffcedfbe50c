"""The line of `manage.py doctor` about the Elasticsearch server; those about corpora are in the tests of the room's
pipelines."""

from evalapp.ops.checks import MISSING, OK, OPTIONAL
from retrieval.services.doctoring import server_checks


def test_elasticsearch_is_optional_until_named(settings):
    settings.ELASTICSEARCH_URL = ""
    (check,) = server_checks()
    assert (check.state, check.found) == (OPTIONAL, "ELASTICSEARCH_URL is not set; the built-in index is used")


def test_a_named_one_that_does_not_answer_is_missing_and_its_password_is_not_shown(settings):
    settings.ELASTICSEARCH_URL = "http://elastic:secret@127.0.0.1:1"
    (check,) = server_checks()
    assert check.state == MISSING
    assert check.found.startswith("nothing answers at http://127.0.0.1:1 (")
    assert "unset ELASTICSEARCH_URL" in check.way_out
    assert "secret" not in check.found + check.way_out


def test_a_real_one_tells_its_version_and_health(settings, elasticsearch_url):
    settings.ELASTICSEARCH_URL = elasticsearch_url.replace("://", "://elastic:secret@")
    (check,) = server_checks()
    assert check.state == OK
    assert check.found.startswith(f"Elasticsearch 8.19.0 at {elasticsearch_url} is ")
