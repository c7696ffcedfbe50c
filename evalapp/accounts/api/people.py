"""API of members and invitations."""

from functools import partial

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalapp.accounts.links import make_invitation_link
from evalapp.accounts.models import Invitation
from evalapp.accounts.selectors import can, get_member, get_project, list_invitations, list_members, with_creators
from evalapp.accounts.services import (
    change_role,
    create_invitation,
    invite_by_mail,
    lift_campaign_limit,
    remove_member,
    resend_invitation,
    revoke_invitation,
)
from evalapp.common.api.fields import read_body
from evalapp.common.errors import BadInput, NotThere
from evalapp.common.pagination import KeysetPagination, paginate

from .serializers import (
    CreatedInvitationSerializer,
    InvitationSerializer,
    MemberSerializer,
    NewInvitationSerializer,
    RoleSerializer,
)

GONE = OpenApiResponse(description="Done.")


class MemberList(APIView):
    pagination_class = KeysetPagination

    @extend_schema(operation_id="members_list", responses=MemberSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """List the members of a project and their roles."""
        project = get_project(user=request.user, slug=slug, need="read")
        manages = can(user=request.user, project=project, need="manage")
        return paginate(self, list_members(project).order_by(), MemberSerializer, manages=manages)


class MemberShow(APIView):
    @extend_schema(operation_id="members_retrieve", responses=MemberSerializer)
    def get(self, request: Request, slug: str, pk: int) -> Response:
        """Show a member of a project."""
        project = get_project(user=request.user, slug=slug, need="read")
        context = {"manages": can(user=request.user, project=project, need="manage")}
        return Response(MemberSerializer(get_member(project, pk), context=context).data)

    @extend_schema(operation_id="members_update", request=RoleSerializer, responses=MemberSerializer)
    def patch(self, request: Request, slug: str, pk: int) -> Response:
        """Change the role of a member, or give an annotator access to all campaigns."""
        project = get_project(user=request.user, slug=slug, need="manage")
        changes = read_body(RoleSerializer, request)
        member = change_role(member=get_member(project, pk), role=changes["role"], actor=request.user)
        if changes["all_campaigns"]:
            member = lift_campaign_limit(member=member, actor=request.user)
        return Response(MemberSerializer(member, context={"manages": True}).data)

    @extend_schema(operation_id="members_delete", responses={204: GONE})
    def delete(self, request: Request, slug: str, pk: int) -> Response:
        """Remove a member. Judgements remain."""
        project = get_project(user=request.user, slug=slug, need="manage")
        remove_member(member=get_member(project, pk), actor=request.user)
        return Response(status=204)


class InvitationList(APIView):
    pagination_class = KeysetPagination
    keyset_order = ("-pk",)

    @extend_schema(operation_id="invitations_list", responses=InvitationSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """List the invitation links of a project, newest first."""
        project = get_project(user=request.user, slug=slug, need="manage")
        return paginate(self, list_invitations(project).order_by(), InvitationSerializer)

    @extend_schema(
        operation_id="invitations_create", request=NewInvitationSerializer, responses={201: CreatedInvitationSerializer}
    )
    def post(self, request: Request, slug: str) -> Response:
        """Create an invitation link. Only this response contains its address. With `email`, the link is for one person
        and is also sent there."""
        project = get_project(user=request.user, slug=slug, need="manage")
        values = read_body(NewInvitationSerializer, request)
        if email := values.pop("email", ""):
            if values.pop("max_uses") != 1:
                raise BadInput.for_field("max_uses", _("An invitation by e-mail is for one person."))
            link_to = partial(make_invitation_link, request)
            sent = invite_by_mail(project=project, actor=request.user, emails=[email], link_to=link_to, **values)
            invitation, secret = sent[0]
        else:
            invitation, secret = create_invitation(project=project, actor=request.user, **values)
        return _show_link(request, invitation, secret, 201)


def _show_link(request: Request, invitation: Invitation, secret: str, status: int) -> Response:
    invitation = with_creators(Invitation.objects.filter(pk=invitation.pk)).get()
    invitation.link = make_invitation_link(request, secret)
    headers = {"Cache-Control": "no-store"}
    return Response(CreatedInvitationSerializer(invitation).data, status=status, headers=headers)


def _find_invitation(request: Request, pk: int) -> Invitation:
    try:
        invitation = with_creators(Invitation.objects.filter(pk=pk)).get()
        get_project(user=request.user, slug=invitation.project.slug, need="manage")
    except (Invitation.DoesNotExist, NotThere) as error:
        raise NotThere(_("Invitation not found.")) from error
    return invitation


class InvitationSend(APIView):
    @extend_schema(operation_id="invitations_send", request=None, responses=CreatedInvitationSerializer)
    def post(self, request: Request, pk: int) -> Response:
        """Send an open or expired invitation again, with a new link and end. The earlier link stops working."""
        link_to = partial(make_invitation_link, request)
        found = _find_invitation(request, pk)
        invitation, secret = resend_invitation(invitation=found, actor=request.user, link_to=link_to)
        return _show_link(request, invitation, secret, 200)


class InvitationShow(APIView):
    @extend_schema(operation_id="invitations_retrieve", responses=InvitationSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """Show an invitation link with its role, limits and uses, without the secret."""
        return Response(InvitationSerializer(_find_invitation(request, pk)).data)

    @extend_schema(operation_id="invitations_delete", responses={204: GONE})
    def delete(self, request: Request, pk: int) -> Response:
        """Revoke a link. Members who joined with it remain."""
        revoke_invitation(invitation=_find_invitation(request, pk), actor=request.user)
        return Response(status=204)
