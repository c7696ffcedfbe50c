"""API of the user's tokens. A token cannot create another with more permissions."""

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalapp.accounts.models import ApiToken
from evalapp.accounts.selectors import check_scope, get_project
from evalapp.accounts.services import create_token, revoke_token
from evalapp.common.api.fields import read_body
from evalapp.common.errors import NotThere
from evalapp.common.pagination import KeysetPagination, paginate

from .people import GONE
from .serializers import CreatedTokenSerializer, NewTokenSerializer, TokenSerializer


class TokenList(APIView):
    pagination_class = KeysetPagination
    keyset_order = ("-pk",)

    @extend_schema(operation_id="tokens_list", responses=TokenSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List your tokens, without their secrets."""
        check_scope(request.user, "manage")
        return paginate(self, ApiToken.objects.visible_to(request.user).select_related("project"), TokenSerializer)

    @extend_schema(operation_id="tokens_create", request=NewTokenSerializer, responses={201: CreatedTokenSerializer})
    def post(self, request: Request) -> Response:
        """Create a token. Only this response contains its secret."""
        check_scope(request.user, "manage")
        values = read_body(NewTokenSerializer, request)
        slug = values.pop("project", None)
        project = get_project(user=request.user, slug=slug, need="member") if slug else None
        token, secret = create_token(user=request.user, project=project, **values)
        token.token = secret
        return Response(CreatedTokenSerializer(token).data, status=201, headers={"Cache-Control": "no-store"})


class TokenShow(APIView):
    def _find(self, request: Request, pk: int) -> ApiToken:
        check_scope(request.user, "manage")
        token = ApiToken.objects.visible_to(request.user).select_related("project").filter(pk=pk).first()
        if token is None:
            raise NotThere(_("Token not found."))
        return token

    @extend_schema(operation_id="tokens_retrieve", responses=TokenSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """Show one of your tokens with scopes, expiry and last use."""
        return Response(TokenSerializer(self._find(request, pk)).data)

    @extend_schema(operation_id="tokens_delete", responses={204: GONE})
    def delete(self, request: Request, pk: int) -> Response:
        """Revoke a token."""
        revoke_token(token=self._find(request, pk), actor=request.user)
        return Response(status=204)
