"""API of projects."""

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalapp.accounts.models import Project
from evalapp.accounts.selectors import check_scope, get_project, my_projects
from evalapp.accounts.services import check_may_create_projects, create_project, delete_project, update_project
from evalapp.common.api.fields import read_body
from evalapp.common.pagination import KeysetPagination

from .serializers import DeletionSerializer, ListedProjectSerializer, NewProjectSerializer, ProjectSerializer


class ProjectList(APIView):
    pagination_class = KeysetPagination
    keyset_order = ("slug",)

    @extend_schema(
        operation_id="projects_list",
        description="Your projects. Those in which you may only judge have slug, name and role only.",
        responses=ListedProjectSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        """List the projects in which you have a role."""
        paginator = KeysetPagination()
        rows = paginator.paginate_queryset(my_projects(request.user).order_by(), request, self)
        readable = Project.objects.visible_to(request.user, "read").filter(pk__in=[row.pk for row in rows])
        context = {"request": request, "readable": set(readable.values_list("pk", flat=True))}
        return paginator.get_paginated_response(ListedProjectSerializer(rows, many=True, context=context).data)

    @extend_schema(operation_id="projects_create", request=NewProjectSerializer, responses={201: ProjectSerializer})
    def post(self, request: Request) -> Response:
        """Create a project. You become its owner."""
        check_scope(request.user, "manage")
        check_may_create_projects(request.user)
        project = create_project(owner=request.user, **read_body(NewProjectSerializer, request))
        project.role = "owner"
        data = ProjectSerializer(project, context={"request": request}).data
        return Response(data, status=201, headers={"Location": data["url"]})


class ProjectShow(APIView):
    @extend_schema(operation_id="projects_retrieve", responses=ProjectSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """Show a project with its description and your role."""
        project = get_project(user=request.user, slug=slug, need="read")
        return Response(ProjectSerializer(project, context={"request": request}).data)

    @extend_schema(operation_id="projects_update", request=ProjectSerializer, responses=ProjectSerializer)
    def patch(self, request: Request, slug: str) -> Response:
        """Change name, task, language, licence, source or notes, or whether texts may leave this installation."""
        project = get_project(user=request.user, slug=slug, need="manage")
        changes = ProjectSerializer(project, data=request.data, partial=True)
        changes.is_valid(raise_exception=True)
        update_project(project=project, actor=request.user, **changes.validated_data)
        return Response(ProjectSerializer(project, context={"request": request}).data)

    @extend_schema(
        operation_id="projects_delete",
        request=DeletionSerializer,
        responses={204: OpenApiResponse(description="Deleted.")},
        parameters=[DeletionSerializer],
    )
    def delete(self, request: Request, slug: str) -> Response:
        """Delete a project. `?confirm=` or the body repeats the short name."""
        project = get_project(user=request.user, slug=slug, need="manage")
        body = request.data if isinstance(request.data, dict) else {}
        confirmation = str(request.query_params.get("confirm", body.get("confirm", "")))
        delete_project(project=project, actor=request.user, confirmation=confirmation)
        return Response(status=204)
