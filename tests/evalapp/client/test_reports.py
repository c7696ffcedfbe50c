"""Reports, and scores of several metrics, by the client."""

import pytest

from evalapp.client import NotAllowed
from scoring.models import ScoreSet
from tests.factories import make_items, make_outputs, make_ratings


@pytest.fixture
def rated(cast):
    outputs = make_outputs(cast.project, make_items(cast.project, 8), systems=("a", "b", "c"))
    make_ratings(cast.project, outputs)
    return cast.project


def test_report_from_link_to_revocation(rated, connect, cast, client, tmp_path):
    project = connect(cast.owner, "read", "write", "manage").project(rated.slug)
    report = project.create_report(days=14, label="reviewers")
    assert report.state == "open"
    path = report.link.removeprefix("http://testserver")
    assert client.get(path).status_code == 200
    assert report.save_pdf(tmp_path / "report.pdf").read_bytes().startswith(b"%PDF-")
    (listed,) = project.reports()
    assert (listed.id, listed.link, listed.opens) == (report.id, "", 1)
    assert report.revoke().state == "revoked"
    assert client.get(path).status_code == 404


def test_only_owners_create_reports(rated, rita):
    with pytest.raises(NotAllowed):
        rita.project(rated.slug).create_report()


def test_several_metrics_in_one_call(rated, rita, installation):
    runs = rita.project(rated.slug).score_several(["length", "overlap"])
    installation.work()
    assert len(runs) == 2
    assert {row.evaluator.slug for row in ScoreSet.objects.filter(project=rated)} == {"length", "overlap"}
