"""The life cycle that judging and writing campaigns share: create, change, pause, resume, close and delete. A kind of
work contributes its plan, its own columns and rows, and how it is opened."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Generic, Literal, TypeVar

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _

from annotation.allocation.answers import Problem
from annotation.allocation.plan import Plan
from annotation.allocation.texts import UNSTORABLE, is_storable
from annotation.allocation.writing_plan import WritingPlan
from annotation.models import Campaign, WritingCampaign
from evalapp.accounts.models import Project, User
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, Fault, NotThere
from evalapp.common.naming import in_sentence

C = TypeVar("C", Campaign, WritingCampaign)
P = TypeVar("P", Plan, WritingPlan)
Transition = Literal["pause", "resume", "close"]

_State = Campaign.State
#: The states that a transition may start from, the state it leads to, and the past tense for the audit log.
_TRANSITIONS = {
    "pause": ((_State.OPEN,), _State.PAUSED, "paused"),
    "resume": ((_State.PAUSED,), _State.OPEN, "resumed"),
    "close": ((_State.OPEN, _State.PAUSED), _State.CLOSED, "closed"),
}
#: Columns that the plans of both kinds of work have under the same names.
_PLAN_COLUMNS = ("slug", "name", "kind", "guidelines", "options", "seed", "lease_minutes", "max_per_annotator")


def reject_plan(problems: Sequence[Problem]) -> BadInput:
    """The error for a plan with `problems`, each with its field."""
    faults = [Fault(message, field=where) for where, message in problems]
    if len(faults) == 1:
        return BadInput(str(faults[0]), faults=faults)
    return BadInput(_("The plan has %(n)d errors. Nothing was saved.") % {"n": len(faults)}, faults=faults)


class CampaignWork(Generic[C, P]):
    """A kind of work: `model` has its campaigns, `related` the relations to read with one, `verb` starts its entries in
    the audit log, `changeable` names the fields that can change after a campaign was opened, `read_plan` parses and
    checks a plan, and `delete_refusal` explains why a campaign with answers cannot be deleted."""

    model: type[C]
    related: tuple[str, ...] = ()
    verb: str
    changeable: Collection[str]
    read_plan: Callable[[Any], tuple[P | None, list[Problem]]]
    delete_refusal: str | Promise

    # ---- implemented by each kind of work ----------------------------------------------------------------------

    def current_plan(self, campaign: C) -> dict[str, Any]:
        """The plan of a stored campaign, in the form that `read_plan` takes."""
        raise NotImplementedError

    def own_columns(self, project: Project, plan: P) -> dict[str, Any]:
        """The columns that only this kind of work has."""
        raise NotImplementedError

    def open(self, campaign: C, user: User | None, **how: Any) -> C:
        """Create the units of a draft and let annotators in."""
        raise NotImplementedError

    def has_answers(self, campaign: C) -> bool:
        raise NotImplementedError

    def delete_rows(self, campaign: C) -> None:
        """Delete the campaign with everything that a cascade does not reach."""
        campaign.delete()

    def merge_changes(self, before: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
        """The whole plan after `changes`: options that are not named keep their values."""
        options = changes.get("options")
        if isinstance(options, dict) and changes.get("kind") in (None, before["kind"]):
            changes = {**changes, "options": {**before["options"], **options}}
        return {**before, **changes}

    def store_rows(self, campaign: C, plan: P) -> None:
        """Replace the rows of a draft that belong to its plan."""

    def check_idle(self, campaign: C) -> None:
        """Conflict if a background run is working on the draft."""

    def check_change(self, campaign: C, plan: P) -> None:
        """BadInput if an opened campaign cannot take the changed plan."""

    def touch(self) -> dict[str, Any]:
        """Columns that are written with every change."""
        return {}

    # ---- the life cycle -----------------------------------------------------------------------------------

    def parse_plan(self, raw: Any) -> P:
        """The plan with its defaults, or BadInput with every error by field."""
        if not is_storable(raw):
            raise BadInput(UNSTORABLE)
        plan, problems = type(self).read_plan(raw)
        if plan is None:
            raise reject_plan(problems)
        return plan

    def make_columns(self, project: Project, plan: P) -> dict[str, Any]:
        return {name: getattr(plan, name) for name in _PLAN_COLUMNS} | self.own_columns(project, plan)

    def sketch(self, project: Project, plan: Any) -> C:
        """A campaign with this plan that is not stored, for estimates."""
        return self.model(project=project, **self.make_columns(project, self.parse_plan(plan)))

    def create(self, *, project: Project, user: User | None, plan: Any) -> C:
        """Create a draft from a plan as people write it."""
        parsed = self.parse_plan(plan)
        columns = self.make_columns(project, parsed)
        creator = user if user is not None and user.pk else None
        try:
            with transaction.atomic():
                campaign = self.model.objects.create(project=project, created_by=creator, **columns)
                self.store_rows(campaign, parsed)
                self.record("created", campaign, user)
        except IntegrityError as error:
            raise _slug_taken(parsed.slug) from error
        return campaign

    def update(self, *, campaign: C, user: User | None, changes: dict[str, Any]) -> C:
        """Change any part of a draft, or the changeable fields of an opened campaign."""
        if not isinstance(changes, dict):
            raise BadInput(_("Send an object with the fields that change."))
        try:
            with transaction.atomic():
                return self._update(self.lock(campaign.pk), user, changes)
        except IntegrityError as error:
            raise _slug_taken(str(changes.get("slug", campaign.slug))) from error

    def _update(self, campaign: C, user: User | None, changes: dict[str, Any]) -> C:
        is_draft = campaign.state == _State.DRAFT
        fixed = [] if is_draft else sorted(set(changes) - set(self.changeable))
        if fixed:
            raise reject_plan([(str(name), _("This is fixed once a campaign has been opened.")) for name in fixed])
        if is_draft:
            self.check_idle(campaign)
        plan = self.parse_plan(self.merge_changes(self.current_plan(campaign), changes))
        if not is_draft:
            self.check_change(campaign, plan)
        columns = self.make_columns(campaign.project, plan)
        columns = {name: value for name, value in columns.items() if is_draft or name in changes}
        self.model.objects.filter(pk=campaign.pk).update(**columns, **self.touch())
        campaign = self.get_whole(campaign.pk)
        if is_draft:
            self.store_rows(campaign, plan)
        self.record("changed", campaign, user, fields=sorted(changes))
        return campaign

    def move(self, *, campaign: C, user: User | None, transition: Transition) -> C:
        """Pause, resume or close a campaign; Conflict if its state does not allow that."""
        sources, target, done = _TRANSITIONS[transition]
        columns: dict[str, Any] = {"state": target, **self.touch()}
        if target == _State.CLOSED:
            columns["closed_at"] = timezone.now()
        with transaction.atomic():
            changed = self.model.objects.filter(pk=campaign.pk, state__in=sources).update(**columns)
            campaign.refresh_from_db()
            if not changed:
                state = in_sentence(campaign.get_state_display())
                raise Conflict(_("The campaign is %(state)s, so this is not possible.") % {"state": state})
            self.record(done, campaign, user)
        return campaign

    def delete(self, *, campaign: C, user: User | None) -> None:
        """Delete a campaign that has no answers yet."""
        with transaction.atomic():
            campaign = self.lock(campaign.pk)
            if self.has_answers(campaign):
                raise Conflict(str(self.delete_refusal))
            self.check_idle(campaign)
            self.record("deleted", campaign, user)
            self.delete_rows(campaign)

    def get_whole(self, pk: int) -> C:
        """The campaign with its project and the rows it refers to."""
        return self.model.objects.select_related("project", *self.related).get(pk=pk)

    def find_locked(self, pk: int) -> C | None:
        """The campaign, locked until the end of the transaction; None if there is none.

        Its related rows are read after the lock: PostgreSQL joins a row that it had to wait for with the state from
        before the wait, so a reference set that was assigned meanwhile would be missing."""
        rows = self.model.objects.select_for_update(no_key=True).filter(pk=pk)
        return self.get_whole(pk) if rows.values_list("pk", flat=True).first() is not None else None

    def lock(self, pk: int) -> C:
        campaign = self.find_locked(pk)
        if campaign is None:
            raise NotThere(_("The campaign was deleted in the meantime."))
        return campaign

    def check_draft(self, campaign: C) -> None:
        if campaign.state != _State.DRAFT:
            state = in_sentence(campaign.get_state_display())
            raise Conflict(_("Only a draft can be opened; this campaign is %(state)s.") % {"state": state})

    def record(self, done: str, campaign: C, user: User | None, **detail: Any) -> None:
        """Write an entry of the audit log."""
        audit.record(verb=f"{self.verb}.{done}", project=campaign.project, actor=user, object=campaign, **detail)


def _slug_taken(slug: str) -> Conflict:
    message = _("There is already a campaign “%(slug)s” in this project. Choose another name.")
    return Conflict(message % {"slug": slug})
