"""Undoes an upload: deletes its rows and restores those before. Refused, with a list, while anything depends on
it."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from django.db import IntegrityError
from django.db.models import Exists, Model, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.models import (
    Aspect,
    AttemptElsewhere,
    CampaignAspect,
    Comparison,
    CorpusPair,
    Dialogue,
    Item,
    Output,
    RaterFilter,
    Rating,
    Reference,
    ReferenceSet,
    System,
    Unit,
    Upload,
    UploadChange,
    WritingCampaign,
    WritingUnit,
    WrittenElsewhere,
)
from annotation.models.data import ORIGINAL
from annotation.selectors.imported_campaigns import IMPORTED_CAMPAIGNS, list_imported_campaigns
from evalapp.accounts.models import Project, User
from evalapp.common import audit
from evalapp.common.errors import Conflict, Fault
from evalapp.common.naming import in_sentence
from evalapp.common.queue import cancel_run

from .hooks import RESULT_TABLES, count_dependants, undo_results
from .texts import forget_texts, prepare_search_later
from .uploads import lock_promotion, remove_files

_TABLES: dict[str, type[Model]] = {
    "systems": System,
    "aspects": Aspect,
    "items": Item,
    "dialogues": Dialogue,
    "outputs": Output,
    "ratings": Rating,
    "comparisons": Comparison,
    "corpus": CorpusPair,
    "attempts": AttemptElsewhere,
    "written": WrittenElsewhere,
}
#: Those that an upload can have changed. `references` are those of an item in `original`, kept as a whole.
_CHANGED = {**_TABLES, "reference": Reference}
#: The key in `Project.meta` for members of descriptions that have no field of their own.
DESCRIBED = "dataset"
_STILL_OPEN = (Upload.State.RECEIVED, Upload.State.CHECKING)
_DISCARDABLE = (*_STILL_OPEN, Upload.State.MAPPING, Upload.State.CHECKED, Upload.State.FAILED)


def take_back_upload(*, upload: Upload, user: User) -> Upload:
    """Cancel an upload in progress, discard a checked one, or undo a stored one."""
    upload.refresh_from_db()
    if upload.state in _STILL_OPEN and upload.run is not None and upload.run.is_active:
        cancel_run(run=upload.run, user=user)
        if upload.state == Upload.State.RECEIVED:
            _end(upload, Upload.State.CANCELLED.value)
    elif upload.state in _DISCARDABLE or (upload.state == Upload.State.FAULTY and "mapping" in upload.options):
        _end(upload, Upload.State.CANCELLED.value)
        remove_files(upload)
    elif upload.state == Upload.State.DONE:
        undo_upload(upload=upload, user=user)
    else:
        raise Conflict(_("There is nothing to undo: %(state)s.") % {"state": in_sentence(upload.get_state_display())})
    upload.refresh_from_db()
    return upload


def _end(upload: Upload, state: str) -> None:
    Upload.objects.filter(pk=upload.pk, state=upload.state).update(state=state, finished_at=timezone.now())


def undo_upload(*, upload: Upload, user: User) -> None:
    """Undo a stored upload in one transaction."""
    refused = _("This upload cannot be undone, because other data depend on it. Delete those first.")
    try:
        with lock_promotion(upload.project, None, alone=True):
            changed = Upload.objects.filter(pk=upload.pk, state=Upload.State.DONE).update(
                state=Upload.State.UNDONE, finished_at=timezone.now()
            )
            if not changed:
                raise Conflict(_("Only a stored upload can be undone."))
            dependents = list_dependents(upload)
            if dependents:
                raise Conflict(refused, faults=dependents)
            removed = undo_results(upload=upload)
            _restore(upload)
            removed |= _remove(upload)
            forget_texts(project=upload.project)
            prepare_search_later(project=upload.project, user=user)
            audit.record(verb="upload.undone", project=upload.project, actor=user, object=upload, removed=removed)
    except IntegrityError as error:
        raise Conflict(refused) from error


# ---- dependent rows ---------------------------------------------------------------------------------------


def _others(rows: QuerySet, upload: Upload) -> QuerySet:
    return rows.filter(Q(upload__isnull=True) | ~Q(upload=upload))


def list_dependents(upload: Upload) -> list[Fault]:
    """The rows that depend on the upload: their number, by kind."""
    project = upload.project
    own_outputs = Output.objects.filter(project=project, upload=upload).values("id")
    own_items = Item.objects.filter(project=project, upload=upload).values("id")
    own_dialogues = Dialogue.objects.filter(project=project, upload=upload).values("id")
    own_aspects = Aspect.objects.filter(project=project, upload=upload).values("id")
    replaced = _rows_changed(upload, "outputs")
    on_outputs = Q(output__in=own_outputs) | Q(output__in=replaced)
    of_outputs = Q(output_a__in=own_outputs) | Q(output_b__in=own_outputs)
    of_outputs |= Q(output_a__in=replaced) | Q(output_b__in=replaced)
    on_dialogues = Q(dialogue__in=own_dialogues) | Q(dialogue__in=_rows_changed(upload, "dialogues"))
    shown = of_outputs | Q(item__in=own_items)
    own_sets = ReferenceSet.objects.filter(project=project, upload=upload).values("id")
    of_sets = ReferenceSet.objects.filter(Q(upload=upload) | Q(references__upload=upload), project=project).values("id")
    named = Reference.objects.filter(set__project=project).exclude(set__name=ORIGINAL)
    imported = WrittenElsewhere.objects.filter(project=project)
    from_sets = Q(start_set__in=of_sets) | Q(target_set__in=of_sets)
    ratings = Rating.objects.filter(project=project)
    comparisons = Comparison.objects.filter(project=project)
    dependent = [
        (_("ratings of its outputs"), _others(ratings.filter(on_outputs), upload)),
        (_("comparisons of its outputs"), _others(comparisons.filter(of_outputs), upload)),
        (_("ratings of its dialogues"), _others(ratings.filter(on_dialogues), upload)),
        (_("ratings of its aspects"), _others(ratings.filter(aspect__in=own_aspects), upload)),
        (_("comparisons of its aspects"), _others(comparisons.filter(aspect__in=own_aspects), upload)),
        (_("outputs for its items"), _others(Output.objects.filter(item__in=own_items), upload)),
        (_("references written for its items"), _others(named.filter(item__in=own_items), upload)),
        (_("references in its sets"), _others(named.filter(set__in=own_sets), upload)),
        (
            _("texts of other uploads written for its items or sets"),
            _others(imported.filter(Q(item__in=own_items) | Q(set__in=own_sets) | Q(reference__upload=upload)), upload),
        ),
        (
            _("attempts of other uploads at its items"),
            _others(AttemptElsewhere.objects.filter(project=project, item__in=own_items), upload),
        ),
        (_("writing campaigns with its reference sets"), WritingCampaign.objects.filter(from_sets)),
        (_("campaigns that ask for its aspects"), CampaignAspect.objects.filter(aspect__in=own_aspects)),
        (_("texts that campaigns show"), Unit.objects.filter(shown)),
        (_("items that people write references for"), WritingUnit.objects.filter(item__in=own_items)),
        (_("later changes of its rows"), _later_changes(upload)),
    ]
    lines = [(name, rows.count()) for name, rows in dependent]
    lines += _on_what_it_replaced(upload)
    return [Fault(f"{count:,} {name}") for name, count in [*lines, *count_dependants(upload)] if count]


def _rows_changed(upload: Upload, table: str) -> QuerySet:
    return UploadChange.objects.filter(upload=upload, table=table).values("row")


def _on_what_it_replaced(upload: Upload) -> list[tuple[str, int]]:
    """Judgements made since the upload replaced contexts, references or ranges. After an undo they would belong to
    texts that the raters did not see, or be out of range."""
    counts: Counter[str] = Counter()
    ratings = _others(Rating.objects.filter(project=upload.project), upload)
    comparisons = _others(Comparison.objects.filter(project=upload.project), upload)
    for items in _items_shown_otherwise(upload):
        counts[_("ratings of items that it changed")] += ratings.filter(output__item__in=items).count()
        counts[_("comparisons of items that it changed")] += comparisons.filter(output_a__item__in=items).count()
        counts[_("units of campaigns with items that it changed")] += Unit.objects.filter(item__in=items).count()
        written_for = WritingUnit.objects.filter(item__in=items)
        counts[_("items that it changed and people write references for")] += written_for.count()
    turing = comparisons.filter(reference__isnull=False, output_a__item__in=_rows_changed(upload, "references"))
    counts[_("comparisons with references that it changed")] = turing.count()
    against = WritingUnit.objects.filter(
        item__in=_rows_changed(upload, "references"), campaign__kind=WritingCampaign.Kind.CONSTRAINT,
        campaign__start_set__name=ORIGINAL,
    )  # fmt: skip
    counts[_("items against whose references, which it changed, people write")] = against.count()
    for change in UploadChange.objects.filter(upload=upload, table="aspects"):
        low, high = change.before["low"], change.before["high"]
        outside = Q() if low is None or high is None else Q(value__lt=low) | Q(value__gt=high)
        counts[_("ratings outside the former range of its aspects")] += ratings.filter(
            outside, aspect=change.row
        ).count()
        other_scale = CampaignAspect.objects.filter(aspect=change.row, low__isnull=False).exclude(low=low, high=high)
        counts[_("campaigns on the new scale of its aspects")] += other_scale.count()
    return list(counts.items())


def _items_shown_otherwise(upload: Upload) -> Iterator[list[int]]:
    """Items whose context or source was replaced, in batches."""
    changes = UploadChange.objects.filter(upload=upload, table="items").values_list("row", "before").iterator(500)
    while batch := dict(islice(changes, 500)):
        now = Item.objects.filter(pk__in=batch).values_list("pk", "context", "source")
        yield [pk for pk, *shown in now if shown != [batch[pk]["context"], batch[pk]["source"]]]


def _later_changes(upload: Upload) -> QuerySet:
    """Rows of this upload, or rows it replaced, that a later upload replaced again."""
    earlier = UploadChange.objects.filter(
        upload=upload, table=OuterRef("table"), row=OuterRef("row"), id__lt=OuterRef("id")
    )
    changed = Q()
    for table, model in _TABLES.items():
        changed |= Q(table=table, row__in=model.objects.filter(project=upload.project, upload=upload).values("id"))  # type: ignore[attr-defined]
    references = Reference.objects.filter(set__project=upload.project, upload=upload)
    changed |= Q(table="reference", row__in=references.values("id"))
    changed |= Q(table="references", row__in=Item.objects.filter(project=upload.project, upload=upload).values("id"))
    stored = UploadChange.objects.filter(upload__project=upload.project, upload__state=Upload.State.DONE)
    # Descriptions of different campaigns are independent.
    return stored.exclude(upload=upload).exclude(table="campaigns").filter(changed | Exists(earlier))


# ---- undo -------------------------------------------------------------------------------------------------


def _restore(upload: Upload) -> None:
    """Restore what the upload replaced, the last change first."""
    # A new filter has no earlier state, and apps downstream restore their own rows.
    changes = UploadChange.objects.filter(upload=upload).exclude(table__in=("filters", *RESULT_TABLES))
    for change in changes.order_by("-id").iterator(500):
        if change.table == "references":
            _restore_references(upload, change)
        elif change.table == "project":
            _restore_description(change)
        elif change.table == "campaigns":
            _restore_campaigns(change)
        else:
            _CHANGED[change.table].objects.filter(pk=change.row).update(**change.before)  # type: ignore[attr-defined]


def _restore_description(change: UploadChange) -> None:
    """Restore `meta` members that came from descriptions; others do not belong to the upload."""
    project = Project.objects.get(pk=change.row)
    fields = {name: value for name, value in change.before.items() if name != "meta"}
    meta = {name: value for name, value in project.meta.items() if name != DESCRIBED}
    before = {name: value for name, value in change.before["meta"].items() if name == DESCRIBED}
    Project.objects.filter(pk=project.pk).update(**fields, meta={**meta, **before})


def _restore_campaigns(change: UploadChange) -> None:
    """Restore the previous descriptions of imported campaigns, unless they have changed since."""
    project = Project.objects.get(pk=change.row)
    campaigns = list_imported_campaigns(project)
    for name, row in change.before["became"].items():
        if campaigns.get(name) == row:
            campaigns[name] = change.before["was"].get(name)
    campaigns = {name: row for name, row in campaigns.items() if row is not None}
    meta = {name: value for name, value in project.meta.items() if name != IMPORTED_CAMPAIGNS}
    Project.objects.filter(pk=project.pk).update(meta=meta | ({IMPORTED_CAMPAIGNS: campaigns} if campaigns else {}))


def _restore_references(upload: Upload, change: UploadChange) -> None:
    original = ReferenceSet.objects.get(project=upload.project, name=ORIGINAL)
    Reference.objects.filter(set=original, item_id=change.row).delete()
    Reference.objects.bulk_create(
        Reference(set=original, item_id=change.row, position=position, text=text)
        for position, text in enumerate(change.before["texts"])
    )


def _delete(rows: QuerySet) -> int:
    """Delete rows with a single DELETE, without Django's collector: dependent rows have been checked before."""
    return int(rows.order_by()._raw_delete(rows.db))  # type: ignore[attr-defined]


def _remove(upload: Upload) -> dict[str, int]:
    project = upload.project
    references = Reference.objects.filter(set__project=project, upload=upload)
    removed = {
        "attempts": _delete(AttemptElsewhere.objects.filter(project=project, upload=upload)),
        "written": _delete(WrittenElsewhere.objects.filter(project=project, upload=upload)),
        "references": _delete(Reference.objects.filter(pk__in=references.values("id"))),
        "sets": _delete(ReferenceSet.objects.filter(project=project, upload=upload)),
        "filters": _delete(RaterFilter.objects.filter(project=project, pk__in=_rows_changed(upload, "filters"))),
    }
    for table in ("comparisons", "ratings", "outputs", "dialogues", "items", "corpus"):
        rows = _TABLES[table].objects.filter(project=project, upload=upload)  # type: ignore[attr-defined]
        if table == "items":
            _delete(Reference.objects.filter(item__in=rows.values("id")))
        removed[table] = _delete(rows)
    # A system or aspect that is used by others stays.
    systems = System.objects.filter(project=project, upload=upload)
    used = Q(pk__in=Output.objects.filter(project=project).values("system"))
    used |= Q(pk__in=Dialogue.objects.filter(project=project, system__isnull=False).values("system"))
    systems.filter(used).update(upload=None)
    removed["systems"] = _delete(System.objects.filter(project=project, upload=upload))
    removed["aspects"] = _delete(Aspect.objects.filter(project=project, upload=upload))
    return {table: count for table, count in removed.items() if count}
