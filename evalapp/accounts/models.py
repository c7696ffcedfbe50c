"""Users, projects, memberships, invitations and API tokens. The contents of projects are in the other apps."""

from typing import Self
from urllib.parse import urlsplit

from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.core.validators import RegexValidator
from django.db import models
from django.urls import Resolver404, ResolverMatch, get_script_prefix, resolve
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from .roles import ROLES_FOR, Need, Role, need_to_invite

#: Name of the URL of a campaign's page -> kind of campaign.
CAMPAIGN_PAGES = {
    "annotation:judge": "judging",
    "annotation:my-guidelines": "judging",
    "annotation:write": "writing",
    "annotation:write-guidelines": "writing",
}
SLUG = RegexValidator(
    r"^[a-z0-9][a-z0-9_-]{0,62}\Z", _("Use a-z, 0-9, hyphens and underscores, at most 63 characters.")
)


class User(AbstractUser):
    """A user. `theme` and `preferences` are display settings, stored on the server so that they apply on all devices.
    `is_participant`: the account of a hired participant, which has no password, tokens or other projects.
    `is_researcher`: may create projects without having one, as the groups of the user's institution say."""

    class Theme(models.TextChoices):
        SYSTEM = "system", _("As the system")
        LIGHT = "light", _("Light")
        DARK = "dark", _("Dark")

    theme = models.CharField(max_length=6, choices=Theme.choices, default=Theme.SYSTEM)
    preferences = models.JSONField(default=dict, blank=True)
    is_participant = models.BooleanField(default=False, db_default=False, editable=False)
    is_researcher = models.BooleanField(default=False, db_default=False, editable=False)

    def __str__(self) -> str:
        """Return the name that the user chose and the user name, because any user may choose the name “owner”."""
        name = self.get_full_name()
        return self.username if name in ("", self.username) else f"{name} ({self.username})"


class ProjectQuerySet(models.QuerySet):
    def visible_to(self, user: User | AnonymousUser, need: Need = "member") -> Self:
        """Return the projects in which `user` has a role with the permission `need`."""
        if not user.is_authenticated:
            return self.none()
        token = getattr(user, "api_token", None)
        if token is not None:
            # A token limits its user to its scopes and its project.
            if need != "member" and not {need, "manage"} & set(token.scopes):
                return self.none()
            if token.project_id is not None:
                self = self.filter(pk=token.project_id)
        if user.is_superuser:
            return self.filter(deleting_at=None)
        return self.filter(pk__in=Membership.objects.filter(user=user, role__in=ROLES_FOR[need]).values("project_id"))


class Project(models.Model):
    slug = models.CharField(max_length=63, unique=True, validators=[SLUG])
    name = models.CharField(max_length=200)
    task = models.CharField(max_length=40, default="dialogue")
    lang = models.CharField(max_length=20, default="en")
    licence = models.TextField(blank=True)
    source = models.TextField(blank=True)
    notes = models.TextField(blank=True)
    meta = models.JSONField(default=dict, blank=True)
    #: Whether texts of the project may be sent to servers outside of this installation.
    texts_may_leave = models.BooleanField(_("Texts may leave this installation"), default=False, db_default=False)
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    #: Start of the deletion; from then on the project is invisible and has no members.
    deleting_at = models.DateTimeField(null=True, editable=False)

    objects = ProjectQuerySet.as_manager()

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.name


class MembershipQuerySet(models.QuerySet):
    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Return the memberships of projects that `user` may read, and the user's own."""
        if not user.is_authenticated:
            return self.none()
        return self.filter(models.Q(project__in=Project.objects.visible_to(user, "read")) | models.Q(user=user))


class Membership(models.Model):
    """A user's role in a project. `pseudonym` is the rater id under which the user's judgements are stored and
    exported. `campaigns` are those to which an annotator was invited, such as “judging:3”; None: all of the project."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices)
    pseudonym = models.CharField(max_length=40)
    campaigns = models.JSONField(null=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now)

    objects = MembershipQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "user"], name="one_membership"),
            models.UniqueConstraint(fields=["project", "pseudonym"], name="one_pseudonym"),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.project}: {self.role}"

    def may_enter(self, campaign: str) -> bool:
        """Return whether the invitation covers a campaign of the project, such as “judging:3”. Only annotators are
        limited to the campaigns of their invitations."""
        return self.campaigns is None or self.role != Role.ANNOTATOR or campaign in self.campaigns


class InvitationQuerySet(models.QuerySet):
    def visible_to(self, user: User | AnonymousUser) -> Self:
        return self.filter(project__in=Project.objects.visible_to(user, "write"))


def resolve_landing(landing: str) -> ResolverMatch | None:
    """Return the page of this site to which a path leads; None if there is none."""
    try:
        return resolve(urlsplit(landing).path.removeprefix((get_script_prefix() or "/").rstrip("/")))
    except Resolver404:
        return None


class Invitation(models.Model):
    """A link that gives a role. Only the digest of its secret is stored. `landing` is the first page; if that is the
    page of a campaign, an annotator has access to that campaign only. `email`: to whom it is sent by mail."""

    class State(models.TextChoices):
        OPEN = "open", _("Open")
        REVOKED = "revoked", _("Revoked")
        EXPIRED = "expired", _("Expired")
        USED = "used", _("Used up")
        ENDED = "ended", _("Inactive: its creator may no longer invite members")

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=10, choices=Role.choices)
    label = models.CharField(max_length=100, blank=True)
    email = models.EmailField(blank=True, default="", db_default="")
    mailed_at = models.DateTimeField(null=True, blank=True)
    digest = models.CharField(max_length=64, unique=True)
    landing = models.CharField(max_length=200, blank=True)
    expires_at = models.DateTimeField()
    max_uses = models.PositiveIntegerField(default=1)
    uses = models.PositiveIntegerField(default=0)
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    objects = InvitationQuerySet.as_manager()

    def __str__(self) -> str:
        return f"invitation to {self.project} as {self.role}"

    @property
    def campaign(self) -> str:
        """The campaign to which the link is limited, such as “judging:3” or “writing:2”; empty for the whole
        project."""
        match = resolve_landing(self.landing) if self.role == Role.ANNOTATOR else None
        kind = CAMPAIGN_PAGES.get(match.view_name) if match else None
        return f"{kind}:{match.kwargs['pk']}" if match and kind else ""

    @property
    def topic(self) -> str:
        """The value of `Mail.about` for the mails of this invitation."""
        return f"invitation:{self.pk}"

    @property
    def state(self) -> str:
        """The state of a row read with `selectors.with_creators`. A link is open while its creator may still invite."""
        if self.revoked_at:
            return self.State.REVOKED.value
        if self.expires_at <= timezone.now():
            return self.State.EXPIRED.value
        if self.uses >= self.max_uses:
            return self.State.USED.value
        user, role = self.created_by, self.creator_role  # type: ignore[attr-defined]
        if user is None or (user.is_active and (user.is_superuser or role in ROLES_FOR[need_to_invite(self.role)])):
            return self.State.OPEN.value
        return self.State.ENDED.value

    @property
    def state_label(self) -> str:
        """The label of `state` for users."""
        return str(self.State(self.state).label)


class ApiTokenQuerySet(models.QuerySet):
    def visible_to(self, user: User | AnonymousUser) -> Self:
        return self.filter(user=user) if user.is_authenticated else self.none()


class ApiToken(models.Model):
    """An API token. Its secret is shown once; `digest` is the SHA-256 of it. Without `project` it is valid for all
    projects of its user. `scopes` is a list of read, write, annotate, manage."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=12)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    project = models.ForeignKey(Project, null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    objects = ApiTokenQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.name})"


class IdentityQuerySet(models.QuerySet):
    def visible_to(self, user: User | AnonymousUser) -> Self:
        return self.filter(user=user) if user.is_authenticated else self.none()


class Identity(models.Model):
    """A person at a provider of OpenID Connect, whose sign-in opens the account `user`. Issuer and subject are those of
    its tokens; only they identify a person. `email` is the last address that the provider has verified."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    email = models.EmailField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    last_used_at = models.DateTimeField(null=True)

    objects = IdentityQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "identities"
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="one_account_per_identity")]

    def __str__(self) -> str:
        return f"{self.subject} of {self.issuer}"


class AttemptCount(models.Model):
    """Number of attempts in a time window; see `limits`. The key is a digest, not an address."""

    key = models.CharField(max_length=64)
    window = models.BigIntegerField()
    count = models.PositiveIntegerField(default=0)
    limit = models.CharField(max_length=20)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["key", "window"], name="one_attempt_count")]

    def __str__(self) -> str:
        return f"{self.limit}: {self.count}"
