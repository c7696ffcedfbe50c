"""Members and invitations of a project for programs."""

from __future__ import annotations

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalapp.accounts.models import Invitation, Membership, Project
from evalapp.accounts.selectors import can, get_project, invitations_of, members_of, with_makers
from evalapp.accounts.services import (
    change_role,
    create_invitation,
    lift_campaign_limit,
    remove_member,
    revoke_invitation,
)
from evalapp.common.errors import NotThere
from evalapp.common.pagination import KeysetPagination

from .serializers import (
    InvitationSerializer,
    MadeInvitationSerializer,
    MemberSerializer,
    NewInvitationSerializer,
    RoleSerializer,
)

GONE = OpenApiResponse(description="Done.")


def _member(project: Project, pk: int) -> Membership:
    member = Membership.objects.select_related("user").filter(project=project, pk=pk).first()
    if member is None:
        raise NotThere(_("This project has no such member."))
    return member


class MemberList(APIView):
    pagination_class = KeysetPagination

    @extend_schema(operation_id="members_list", responses=MemberSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """The people of a project and their roles."""
        project = get_project(user=request.user, slug=slug, need="read")
        paginator = KeysetPagination()
        rows = paginator.paginate_queryset(members_of(project).order_by(), request, self)
        context = {"manages": can(user=request.user, project=project, need="manage")}
        return paginator.get_paginated_response(MemberSerializer(rows, many=True, context=context).data)


class MemberShow(APIView):
    @extend_schema(operation_id="members_retrieve", responses=MemberSerializer)
    def get(self, request: Request, slug: str, pk: int) -> Response:
        """One member of a project."""
        project = get_project(user=request.user, slug=slug, need="read")
        context = {"manages": can(user=request.user, project=project, need="manage")}
        return Response(MemberSerializer(_member(project, pk), context=context).data)

    @extend_schema(operation_id="members_update", request=RoleSerializer, responses=MemberSerializer)
    def patch(self, request: Request, slug: str, pk: int) -> Response:
        """Give a member another role, or an annotator all campaigns."""
        project = get_project(user=request.user, slug=slug, need="manage")
        wishes = RoleSerializer(data=request.data)
        wishes.is_valid(raise_exception=True)
        member = change_role(member=_member(project, pk), role=wishes.validated_data["role"], actor=request.user)
        if wishes.validated_data["all_campaigns"]:
            member = lift_campaign_limit(member=member, actor=request.user)
        return Response(MemberSerializer(member, context={"manages": True}).data)

    @extend_schema(operation_id="members_delete", responses={204: GONE})
    def delete(self, request: Request, slug: str, pk: int) -> Response:
        """Remove a member; what this person judged stays."""
        project = get_project(user=request.user, slug=slug, need="manage")
        remove_member(member=_member(project, pk), actor=request.user)
        return Response(status=204)


class InvitationList(APIView):
    pagination_class = KeysetPagination
    keyset_order = ("-pk",)

    @extend_schema(operation_id="invitations_list", responses=InvitationSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """The invitation links of a project, newest first."""
        project = get_project(user=request.user, slug=slug, need="manage")
        paginator = KeysetPagination()
        rows = paginator.paginate_queryset(invitations_of(project).order_by(), request, self)
        return paginator.get_paginated_response(InvitationSerializer(rows, many=True).data)

    @extend_schema(
        operation_id="invitations_create", request=NewInvitationSerializer, responses={201: MadeInvitationSerializer}
    )
    def post(self, request: Request, slug: str) -> Response:
        """Make an invitation link. Its address is shown in this answer only."""
        project = get_project(user=request.user, slug=slug, need="manage")
        wishes = NewInvitationSerializer(data=request.data)
        wishes.is_valid(raise_exception=True)
        invitation, secret = create_invitation(project=project, actor=request.user, **wishes.validated_data)
        invitation = with_makers(Invitation.objects.filter(pk=invitation.pk)).get()
        invitation.link = request.build_absolute_uri(f"/invitations/{secret}/")
        return Response(MadeInvitationSerializer(invitation).data, status=201, headers={"Cache-Control": "no-store"})


class InvitationShow(APIView):
    def _find(self, request: Request, pk: int) -> Invitation:
        found = with_makers(Invitation.objects.filter(pk=pk)).first()
        if found is None:
            raise NotThere(_("Invitation not found."))
        try:
            get_project(user=request.user, slug=found.project.slug, need="manage")
        except NotThere as error:
            raise NotThere(_("Invitation not found.")) from error
        return found

    @extend_schema(operation_id="invitations_retrieve", responses=InvitationSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """An invitation link: role, limits and how often it was used. The secret is never shown again."""
        return Response(InvitationSerializer(self._find(request, pk)).data)

    @extend_schema(operation_id="invitations_delete", responses={204: GONE})
    def delete(self, request: Request, pk: int) -> Response:
        """Revokes the link; who came by it stays."""
        revoke_invitation(invitation=self._find(request, pk), actor=request.user)
        return Response(status=204)
