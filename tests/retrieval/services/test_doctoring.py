"""The line of `manage.py doctor` about the Elasticsearch server; the pipeline tests of this app cover the lines about
corpora."""

from evalapp.ops.checks import MISSING, OK, OPTIONAL
from retrieval.services.doctoring import check_server


def test_elasticsearch_is_optional_until_named(settings):
    settings.ELASTICSEARCH_URL = ""
    (check,) = check_server()
    assert (check.state, check.found) == (OPTIONAL, "ELASTICSEARCH_URL is not set; the built-in index is used")


def test_named_server_that_does_not_answer_is_reported_without_its_password(settings):
    settings.ELASTICSEARCH_URL = "http://elastic:secret@127.0.0.1:1"
    (check,) = check_server()
    assert check.state == MISSING
    assert check.found.startswith("nothing answers at http://127.0.0.1:1 (")
    assert "unset ELASTICSEARCH_URL" in check.way_out
    assert "secret" not in check.found + check.way_out


def test_real_server_reports_its_version_and_health(settings, elasticsearch_url):
    settings.ELASTICSEARCH_URL = elasticsearch_url.replace("://", "://elastic:secret@")
    (check,) = check_server()
    assert check.state == OK
    assert check.found.startswith(f"Elasticsearch 8.19.0 at {elasticsearch_url} is ")
