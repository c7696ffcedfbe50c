"""Read projects and their members, with the permission check in the same call: invisible rows are not found."""

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db.models import CharField, Count, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Cast, Concat
from django.utils import timezone
from django.utils.translation import gettext as _

from evalapp.common.errors import NotAllowed, NotThere
from evalapp.common.models import AuditEvent, Mail

from .models import ApiToken, Invitation, Membership, Project, User
from .roles import ROLES_FOR, Need


def get_project(*, user: User | AnonymousUser, slug: str, need: Need = "read") -> Project:
    """Return a project for which the user has the permission `need`, with the attributes `role` and `invited_to`
    (campaigns) of the membership (None for a superuser without one).

    Raises `NotThere` for users without a role in it and `NotAllowed` if the role does not suffice."""
    # A single query, because the time of a second one would reveal that the project exists.
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


def check_token(token: ApiToken, project: Project, need: Need) -> None:
    """Check the project and scopes of a token."""
    if token.project_id not in (None, project.pk):
        raise NotThere(_("This token has no access to project “%(slug)s”.") % {"slug": project.slug})
    if need != "member" and need not in token.scopes and "manage" not in token.scopes:
        raise NotAllowed(_missing_scope(need))


def may_enter(*, user: User | AnonymousUser, project_id: int, campaign: str) -> bool:
    """Return whether the user's invitation covers a campaign, such as “judging:3”. Does not check the role."""
    member = Membership.objects.filter(project=project_id, user=user.pk).first()
    return member is None or member.may_enter(campaign)


def can(*, user: User | AnonymousUser, project: Project, need: Need) -> bool:
    """Return whether the user has the permission `need` in a project."""
    if not user.is_authenticated:
        return False
    token = getattr(user, "api_token", None)
    if token is not None and not Project.objects.visible_to(user, need).filter(pk=project.pk).exists():
        return False
    if user.is_superuser:
        return True
    return Membership.objects.filter(project=project, user=user, role__in=ROLES_FOR[need]).exists()


def check_scope(user: User, need: Need) -> None:
    """Check a token for calls outside of projects: it needs the scope and must not be limited to a project."""
    token = getattr(user, "api_token", None)
    if token is None:
        return
    if token.project_id is not None:
        raise NotAllowed(
            _("This token is limited to one project. Create a token for all projects under Account, Tokens.")
        )
    if not {need, "manage"} & set(token.scopes):
        raise NotAllowed(_missing_scope(need))


def check_no_participant(user: User) -> None:
    """Raise `NotAllowed` for the account of a hired participant, which is for one study only."""
    if user.is_participant:
        raise NotAllowed(_("This account was made for one study, so this is not possible with it."))


def check_passwords() -> None:
    """Raise `NotAllowed` where people sign in with their institution only."""
    if not settings.PASSWORD_SIGN_IN:
        raise NotAllowed(_("This site has no passwords. Sign in with your institution."))


def my_projects(user: User | AnonymousUser) -> QuerySet[Project]:
    """Return the user's projects, each with `my_role` and `people` (number of members, without hired participants)."""
    mine = Membership.objects.filter(project=OuterRef("pk"), user=user if user.is_authenticated else None)
    members = Q(memberships__user__is_participant=False)
    return (
        Project.objects.visible_to(user)
        .annotate(my_role=Subquery(mine.values("role")[:1]), people=Count("memberships", filter=members))
        .order_by("name", "pk")
    )


def active_tokens(user: User) -> QuerySet[ApiToken]:
    """Return the user's valid API tokens."""
    return ApiToken.objects.filter(user=user, revoked_at=None, expires_at__gt=timezone.now())


def list_members(project: Project) -> QuerySet[Membership]:
    """Return the members without hired participants, whose role cannot be changed; their campaign lists them."""
    rows = Membership.objects.filter(project=project, user__is_participant=False)
    return rows.select_related("user").order_by("user__username", "pk")


def get_member(project: Project, pk: int) -> Membership:
    member = list_members(project).filter(pk=pk).first()
    if member is None:
        raise NotThere(_("This project has no such member."))
    return member


def rater_names(project_id: int) -> dict[int, str]:
    """Return user id -> pseudonym of the judgements, for current and former members."""
    members = Membership.objects.filter(project=project_id).values_list("user_id", "pseudonym")
    return {**former_pseudonyms(project_id), **dict(members)}


def former_pseudonyms(project_id: int, *, user: User | None = None) -> dict[int, str]:
    """Return user id -> pseudonym of former members, from the audit log. It has user names, so accounts that were
    created after an entry are other users of the same name."""
    removals = AuditEvent.objects.filter(project=project_id, verb="member.removed").order_by("pk")
    if user is not None:
        removals = removals.filter(object=user.username)
    rows = list(removals.values_list("object", "at", "detail"))
    users = User.objects.filter(username__in={row[0] for row in rows})
    known = {name: (pk, since) for name, pk, since in users.values_list("username", "pk", "date_joined")}
    return {
        known[name][0]: detail["pseudonym"]
        for name, at, detail in rows
        if name in known and at >= known[name][1] and detail.get("pseudonym")
    }


def list_invitations(project: Project) -> QuerySet[Invitation]:
    return with_creators(Invitation.objects.filter(project=project)).order_by("-pk")


def with_creators(links: QuerySet[Invitation]) -> QuerySet[Invitation]:
    """Add the creator of each link, `creator_role` (the creator's current role) for `Invitation.state`, and
    `mail_state` and `mail_error` of its last mail."""
    role = Membership.objects.filter(project=OuterRef("project_id"), user=OuterRef("created_by_id")).values("role")[:1]
    mails = Mail.objects.filter(about=Concat(Value("invitation:"), Cast(OuterRef("pk"), CharField()))).order_by("-pk")
    return links.select_related("created_by", "project").annotate(
        creator_role=Subquery(role),
        mail_state=Subquery(mails.values("state")[:1]),
        mail_error=Subquery(mails.values("error")[:1]),
    )
