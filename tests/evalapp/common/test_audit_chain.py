"""The audit log is append-only, and checking its hash chain reveals any manipulation."""

from __future__ import annotations

import threading

import pytest
from django.db import connection
from django.db.models import QuerySet

from evalapp.accounts.services import create_project, delete_project
from evalapp.common import audit, audit_chain
from evalapp.common.models import AuditEvent, AuditHead
from evalapp.common.tasks import seal_audit

pytestmark = pytest.mark.promise("audit")


@pytest.fixture
def sealed(cast) -> list[AuditEvent]:
    for number in range(6):
        audit.record(verb="campaign.opened", project=cast.project, actor=cast.owner, object=f"c{number}", n=number / 7)
    assert seal_audit() == AuditEvent.objects.count()
    assert audit_chain.verify().faults == ()
    return list(AuditEvent.objects.order_by("position"))


def sql(statement: str, *values: object) -> None:
    """A statement by an attacker with the database password."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


@pytest.mark.django_db
def test_entries_can_only_be_added(sealed):
    event = sealed[0]
    for change in (
        lambda: event.save(),
        lambda: event.delete(),
        lambda: AuditEvent.objects.update(verb="x"),
        lambda: AuditEvent.objects.filter(pk=event.pk).delete(),
    ):
        with pytest.raises(TypeError, match="append-only"):
            change()
    assert audit_chain.seal() == 0
    audit.record(verb="campaign.closed", object="later")
    assert audit_chain.verify().waiting == 1
    assert audit_chain.seal() == 1
    assert audit_chain.verify().sealed == len(sealed) + 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE common_auditevent SET object = 'other' WHERE position = 3", "entry 3 (campaign.opened, "),
        ("UPDATE common_auditevent SET detail = '{}' WHERE position = 3", "was changed"),
        ("UPDATE common_auditevent SET by = 999 WHERE position = 3", "was changed"),
        ("UPDATE common_auditevent SET at = '2020-01-01 00:00:00' WHERE position = 3", "was changed"),
        ("UPDATE common_auditevent SET content = 'x' WHERE position = 3", "does not follow"),
        ("DELETE FROM common_auditevent WHERE position = 3", "1 entries are missing before entry 4"),
        (
            "DELETE FROM common_auditevent WHERE position > 4",
            "the last entries are missing: 6 were sealed, 4 exist",
        ),
    ],
)
def test_any_change_is_detected(sealed, statement, words):
    sql(statement)
    found = audit_chain.verify()
    assert any(words in fault for fault in found.faults), found.faults
    (line,) = audit_chain.checks()
    assert line.state == "missing"
    assert "compare it with a backup" in line.way_out


@pytest.mark.django_db
def test_swapped_entries_are_detected(sealed):
    third, fourth = sealed[2], sealed[3]
    sql("UPDATE common_auditevent SET position = NULL WHERE id = %s", third.pk)
    sql("UPDATE common_auditevent SET position = 3 WHERE id = %s", fourth.pk)
    sql("UPDATE common_auditevent SET position = 4 WHERE id = %s", third.pk)
    assert "does not follow" in audit_chain.verify().faults[0]


@pytest.mark.django_db
def test_deleted_project_leaves_its_entries(cast):
    project = create_project(slug="gone", owner=cast.owner)
    audit_chain.seal()
    delete_project(project=project, actor=cast.owner, confirmation="gone")
    audit_chain.seal()
    assert audit_chain.verify().faults == ()
    assert set(AuditEvent.objects.filter(scope="gone").values_list("project", flat=True)) == {None}
    assert {"project.created", "project.deleted"} <= set(
        AuditEvent.objects.filter(scope="gone").values_list("verb", flat=True)
    )


@pytest.mark.django_db
def test_person_is_erased_and_the_chain_holds(cast):
    for actor in (cast.owner, cast.annotator):
        audit.record(verb="member.added", project=cast.project, actor=actor, object="anna", role="annotator")
    audit.record(verb="account.changed", actor=cast.annotator, object="anna", fields=["email"])
    assert audit_chain.erase_person(pk=cast.annotator.pk, username="anna") == 3
    found = audit_chain.verify()
    assert (found.faults, found.erased) == ((), 3)
    assert not AuditEvent.objects.filter(object="anna").exists()
    # Rewriting an erased entry is detected.
    sql("UPDATE common_auditevent SET erased_at = NULL, object = 'anna' WHERE verb = 'account.changed'")
    assert "was changed" in audit_chain.verify().faults[0]


@pytest.mark.django_db
def test_doctor_checks_the_chain(sealed):
    from evalapp.common.hooks import DOCTOR_CHECKS

    line = next(check for check in DOCTOR_CHECKS.collect() if check.name == "audit")
    assert line.state == "ok"
    assert AuditHead.objects.get().link[:16] in line.found


@pytest.mark.server("postgres")
def test_concurrent_writers_and_two_sealers(postgres_db):
    """New entries arrive while others are sealed: each is sealed once, none is left, the chain is valid."""

    def write() -> None:
        for number in range(40):
            audit.record(verb="campaign.opened", object=f"{number}", n=1.5, text="ä{}\"'")
        connection.close()

    def seal() -> None:
        for _ in range(10):
            audit_chain.seal(most=25)
        connection.close()

    threads = [threading.Thread(target=work) for work in (write, seal, write, seal, write)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    while audit_chain.seal():
        pass
    found = audit_chain.verify()
    assert (found.sealed, found.waiting, found.faults) == (120, 0, ())
    assert QuerySet(AuditEvent).values("link").distinct().count() == 120
