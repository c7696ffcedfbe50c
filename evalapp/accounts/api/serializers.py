"""Serializers of projects, members, invitations and tokens."""

from typing import Any

from django.urls import reverse
from rest_framework import serializers

from evalapp.accounts.models import ApiToken, Invitation, Membership, Project
from evalapp.accounts.roles import SCOPES, Role
from evalapp.accounts.services import invitations, tokens
from evalapp.common.api.fields import (
    ChoiceField,
    StrictModelSerializer,
    StrictSerializer,
    TextField,
    TruthField,
    WholeSerializer,
)
from evalapp.common.models import Mail


class ProjectSerializer(StrictSerializer, StrictModelSerializer):
    url = serializers.SerializerMethodField()
    role = serializers.SerializerMethodField()

    class Meta:
        model = Project
        fields = [
            "slug", "url", "name", "task", "lang", "licence", "source", "notes", "texts_may_leave", "meta", "role",
            "created_at",
        ]  # fmt: skip
        read_only_fields = ["slug", "meta", "created_at"]

    def get_url(self, project: Project) -> str:
        path = reverse("api-project", args=[project.slug])
        request = self.context.get("request")
        return request.build_absolute_uri(path) if request else path

    def get_role(self, project: Project) -> str | None:
        return project.role if hasattr(project, "role") else getattr(project, "my_role", None)


class ListedProjectSerializer(ProjectSerializer):
    """A project in a list. Projects that are not in `readable` (ids, in the context) have slug, name and role only:
    other fields may name the systems, which annotators must not know."""

    url = serializers.URLField(required=False)
    meta = serializers.JSONField(required=False)
    created_at = serializers.DateTimeField(required=False)

    class Meta(ProjectSerializer.Meta):
        read_only_fields = ["slug"]

    def to_representation(self, project: Project) -> dict[str, Any]:
        project.url = self.get_url(project)  # type: ignore[attr-defined]
        values = super().to_representation(project)
        if project.pk in self.context["readable"]:
            return values
        return {name: values[name] for name in ("slug", "name", "role")}


class NewProjectSerializer(StrictSerializer):
    slug = TextField(max_length=63)
    name = TextField(max_length=200, required=False, allow_blank=True)
    task = TextField(max_length=40, required=False)
    lang = TextField(max_length=20, required=False)
    licence = TextField(required=False, allow_blank=True)
    source = TextField(required=False, allow_blank=True)
    notes = TextField(required=False, allow_blank=True)


class DeletionSerializer(serializers.Serializer):
    confirm = serializers.CharField(help_text="The short name of the project.")


class MemberSerializer(serializers.ModelSerializer):
    """A member. Only owners see e-mail and pseudonym. `campaigns`: those to which an annotator was invited, such as
    “judging:3”; null: all."""

    username = serializers.CharField(source="user.username", read_only=True)
    name = serializers.SerializerMethodField()
    email = serializers.SerializerMethodField()
    pseudonym = serializers.SerializerMethodField()
    campaigns = serializers.ListField(child=serializers.CharField(), read_only=True, allow_null=True)

    class Meta:
        model = Membership
        fields = ["id", "username", "name", "email", "role", "campaigns", "pseudonym", "created_at"]
        read_only_fields = ["id", "created_at"]

    def get_name(self, member: Membership) -> str:
        return member.user.get_full_name() or member.user.username

    def get_email(self, member: Membership) -> str | None:
        return member.user.email if self.context.get("manages") else None

    def get_pseudonym(self, member: Membership) -> str | None:
        return member.pseudonym if self.context.get("manages") else None


class RoleSerializer(StrictSerializer, WholeSerializer):
    role = ChoiceField(choices=Role.choices)
    all_campaigns = TruthField(
        default=False, help_text="Lift the limit to the campaigns of an invitation. Changing the role also lifts it."
    )


class InvitationSerializer(serializers.ModelSerializer):
    """An invitation. `mail`: the state of its last mail, null if there is none or if it was sent over 30 days ago."""

    state = ChoiceField(choices=Invitation.State.choices, read_only=True)
    mail = ChoiceField(choices=Mail.State.choices, read_only=True, allow_null=True, source="mail_state")
    email = serializers.CharField(read_only=True, help_text="Empty for a link that its creator sends.")

    class Meta:
        model = Invitation
        fields = [
            "id", "role", "label", "email", "landing", "state", "mail", "mailed_at", "expires_at", "max_uses", "uses",
            "revoked_at", "created_at",
        ]  # fmt: skip
        read_only_fields = fields


class NewInvitationSerializer(StrictSerializer):
    role = ChoiceField(choices=Role.choices)
    label = TextField(max_length=100, required=False, allow_blank=True)
    email = TextField(
        max_length=254, required=False, allow_blank=True, help_text="Send the link there; it is then for one person."
    )
    days = serializers.IntegerField(default=14, min_value=1, max_value=invitations.MAX_DAYS)
    max_uses = serializers.IntegerField(default=1, min_value=1, max_value=invitations.MAX_USES)
    landing = TextField(
        max_length=200,
        required=False,
        allow_blank=True,
        help_text="A page of this site: /... The page of a campaign (/my/3/, /my/writing/2/) limits annotators to it.",
    )


class CreatedInvitationSerializer(InvitationSerializer):
    link = serializers.CharField(read_only=True, help_text="Shown once.")

    class Meta(InvitationSerializer.Meta):
        fields = [*InvitationSerializer.Meta.fields, "link"]
        read_only_fields = fields


class TokenSerializer(serializers.ModelSerializer):
    project = serializers.SlugRelatedField("slug", read_only=True, allow_null=True)
    scopes = serializers.ListField(child=ChoiceField(choices=list(SCOPES)), read_only=True)

    class Meta:
        model = ApiToken
        fields = ["id", "name", "prefix", "scopes", "project", "expires_at", "last_used_at", "revoked_at", "created_at"]
        read_only_fields = fields


class NewTokenSerializer(StrictSerializer):
    name = TextField(max_length=100)
    scopes = serializers.ListField(child=ChoiceField(choices=list(SCOPES)), min_length=1)
    days = serializers.IntegerField(default=90, min_value=1, max_value=tokens.MAX_DAYS)
    project = TextField(required=False, allow_null=True, help_text="Short name; missing: all projects.")


class CreatedTokenSerializer(TokenSerializer):
    token = serializers.CharField(read_only=True, help_text="Shown once.")

    class Meta(TokenSerializer.Meta):
        fields = [*TokenSerializer.Meta.fields, "token"]
        read_only_fields = fields
