"""Reading people and projects. Fetching and permission are one call: what a person may not see is not found."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.utils import timezone
from django.utils.translation import gettext as _

from evalapp.common.errors import NotAllowed, NotThere
from evalapp.common.models import AuditEvent

from .models import ApiToken, Invitation, Membership, Project, User
from .roles import ROLES_FOR, Need


def get_project(*, user: User | AnonymousUser, slug: str, need: Need = "read") -> Project:
    """The project `slug` if the user's role covers `need`: 404 for strangers, 403 for a lesser role.
    The returned object carries `role` and `invited_to` (`campaigns`) of the membership, None for a superuser without
    one."""
    # In one statement: a second one would tell by its time that the project of others is there.
    mine = Membership.objects.filter(project=OuterRef("pk"), user=user.pk)
    rows = Project.objects.filter(slug=slug, deleting_at=None)
    project = rows.annotate(
        role=Subquery(mine.values("role")[:1]), invited_to=Subquery(mine.values("campaigns")[:1])
    ).first()
    if project is None or not user.is_authenticated:
        raise NotThere(_("Project “%(slug)s” not found.") % {"slug": slug})
    role = project.role
    if not user.is_superuser:
        if role is None:
            raise NotThere(_("Project “%(slug)s” not found.") % {"slug": slug})
        if role not in ROLES_FOR[need]:
            raise NotAllowed(
                _("Your role in this project (%(role)s) does not allow this. Ask one of its owners.") % {"role": role}
            )
    token = getattr(user, "api_token", None)
    if token is not None:
        check_token(token, project, need)
    return project


def _missing_scope(need: str) -> str:
    text = _("This token does not have the scope “%(scope)s”. Create one that does under Account, Tokens.")
    return text % {"scope": need}


def check_token(token: object, project: Project, need: Need) -> None:
    """An API token narrows what its user may do: to its project and to its scopes."""
    if token.project_id not in (None, project.pk):  # type: ignore[attr-defined]
        raise NotThere(_("This token has no access to project “%(slug)s”.") % {"slug": project.slug})
    if need != "member" and need not in token.scopes and "manage" not in token.scopes:  # type: ignore[attr-defined]
        raise NotAllowed(_missing_scope(need))


def may_enter(*, user: User | AnonymousUser, project_id: int, campaign: str) -> bool:
    """Whether the person's invitation covers a campaign of the project, such as “judging:3”; the role is checked
    elsewhere."""
    member = Membership.objects.filter(project=project_id, user=user.pk).first()
    return member is None or member.may_enter(campaign)


def can(*, user: User | AnonymousUser, project: Project, need: Need) -> bool:
    if not user.is_authenticated:
        return False
    token = getattr(user, "api_token", None)
    if token is not None and not Project.objects.visible_to(user, need).filter(pk=project.pk).exists():
        return False
    if user.is_superuser:
        return True
    return Membership.objects.filter(project=project, user=user, role__in=ROLES_FOR[need]).exists()


def check_scope(user: User, need: Need) -> None:
    """For doors outside any project: a token must carry the scope and be bound to no project."""
    token = getattr(user, "api_token", None)
    if token is None:
        return
    if token.project_id is not None:
        raise NotAllowed(
            _("This token is limited to one project. Create a token for all projects under Account, Tokens.")
        )
    if not {need, "manage"} & set(token.scopes):
        raise NotAllowed(_missing_scope(need))


def my_projects(user: User | AnonymousUser) -> QuerySet[Project]:
    """The projects of a person, each with `my_role` and `people`."""
    mine = Membership.objects.filter(project=OuterRef("pk"), user=user if user.is_authenticated else None)
    return (
        Project.objects.visible_to(user)
        .annotate(my_role=Subquery(mine.values("role")[:1]), people=Count("memberships"))
        .order_by("name", "pk")
    )


def active_tokens(user: User) -> QuerySet[ApiToken]:
    """The API tokens of a person that work now."""
    return ApiToken.objects.filter(user=user, revoked_at=None, expires_at__gt=timezone.now())


def members_of(project: Project) -> QuerySet[Membership]:
    return Membership.objects.filter(project=project).select_related("user").order_by("user__username", "pk")


def rater_names(project_id: int) -> dict[int, str]:
    """User number -> the pseudonym under which their judgements are stored, of members and of those who have left."""
    members = Membership.objects.filter(project=project_id).values_list("user_id", "pseudonym")
    return {**former_pseudonyms(project_id), **dict(members)}


def former_pseudonyms(project_id: int, *, user: User | None = None) -> dict[int, str]:
    """User number -> pseudonym of those who had belonged, from the audit. It knows them by user name: an account of
    that name that was made later is somebody else's."""
    left = AuditEvent.objects.filter(project=project_id, verb="member.removed").order_by("pk")
    if user is not None:
        left = left.filter(object=user.username)
    rows = list(left.values_list("object", "at", "detail"))
    users = User.objects.filter(username__in={name for name, _, _ in rows})
    known = {name: (pk, since) for name, pk, since in users.values_list("username", "pk", "date_joined")}
    return {
        known[name][0]: detail["pseudonym"]
        for name, at, detail in rows
        if name in known and at >= known[name][1] and detail.get("pseudonym")
    }


def invitations_of(project: Project) -> QuerySet[Invitation]:
    return with_makers(Invitation.objects.filter(project=project)).order_by("-pk")


def with_makers(links: QuerySet[Invitation]) -> QuerySet[Invitation]:
    """With who made each, and `maker_role`, what they are in its project now: what `Invitation.state` asks for."""
    role = Membership.objects.filter(project=OuterRef("project_id"), user=OuterRef("created_by_id")).values("role")[:1]
    return links.select_related("created_by", "project").annotate(maker_role=Subquery(role))
