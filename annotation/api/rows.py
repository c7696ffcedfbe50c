"""The data of a project in the API: items, systems, outputs, references, ratings, comparisons, dialogues. Lists are
paginated by cursor, with a fixed number of queries."""

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.models import Comparison, Dialogue, Item, Output, Rating, Reference, System
from annotation.parsers.kinds import SYSTEM_KINDS
from annotation.services.systems import set_system_kind
from evalapp.accounts.selectors import get_project
from evalapp.common.api.fields import PAGES, ChoiceField, StrictSerializer, WholeSerializer, refuse_unknown
from evalapp.common.errors import BadInput, NotThere

#: Order of a list, as its description says.
BY_KEY = "in natural order of their ids (q2 before q10)"
BY_ITEM = "in natural order of the ids of their items"
BY_OUTPUT = "in natural order of the ids of their items, then of the names of their systems"
OLDEST = "the oldest first"


class SystemSerializer(serializers.ModelSerializer):
    class Meta:
        model = System
        fields = ["id", "name", "kind", "meta", "declared"]
        read_only_fields = fields


class SystemKindSerializer(StrictSerializer, WholeSerializer):
    kind = ChoiceField(choices=SYSTEM_KINDS)


class ItemSerializer(serializers.ModelSerializer):
    context = serializers.ListField(child=serializers.CharField(), read_only=True)

    class Meta:
        model = Item
        fields = ["id", "key", "context", "source", "group", "meta"]
        read_only_fields = fields


class OutputSerializer(serializers.ModelSerializer):
    item = serializers.CharField(source="item.key", read_only=True)
    system = serializers.CharField(source="system.name", read_only=True)

    class Meta:
        model = Output
        fields = ["id", "item", "system", "step", "text", "meta"]
        read_only_fields = fields


class ReferenceSerializer(serializers.ModelSerializer):
    item = serializers.CharField(source="item.key", read_only=True)
    set = serializers.CharField(source="set.name", read_only=True)

    class Meta:
        model = Reference
        fields = ["id", "item", "set", "position", "text", "meta"]
        read_only_fields = fields


class RatingSerializer(serializers.ModelSerializer):
    item = serializers.CharField(source="output.item.key", default=None, read_only=True)
    system = serializers.CharField(source="output.system.name", default=None, read_only=True)
    step = serializers.IntegerField(source="output.step", default=None, allow_null=True, read_only=True)
    dialogue = serializers.CharField(source="dialogue.key", default=None, allow_null=True, read_only=True)
    aspect = serializers.CharField(source="aspect.name", read_only=True)

    class Meta:
        model = Rating
        fields = [
            "id", "item", "system", "step", "dialogue", "aspect", "rater", "value", "simulated", "judgement", "meta",
        ]  # fmt: skip
        read_only_fields = fields


class ComparisonSerializer(serializers.ModelSerializer):
    item = serializers.CharField(source="output_a.item.key", read_only=True)
    system_a = serializers.CharField(source="output_a.system.name", read_only=True)
    step_a = serializers.IntegerField(source="output_a.step", allow_null=True, read_only=True)
    system_b = serializers.CharField(source="output_b.system.name", default=None, read_only=True)
    step_b = serializers.IntegerField(source="output_b.step", default=None, allow_null=True, read_only=True)
    aspect = serializers.CharField(source="aspect.name", read_only=True)

    class Meta:
        model = Comparison
        fields = [
            "id", "item", "system_a", "step_a", "system_b", "step_b", "reference", "aspect", "rater", "verdict",
            "simulated", "judgement", "meta",
        ]  # fmt: skip
        read_only_fields = fields


class DialogueSerializer(serializers.ModelSerializer):
    turns = serializers.ListField(child=serializers.CharField(), read_only=True)
    speakers = serializers.ListField(child=serializers.CharField(), allow_null=True, read_only=True)
    system = serializers.CharField(source="system.name", default=None, read_only=True)

    class Meta:
        model = Dialogue
        fields = ["id", "key", "turns", "speakers", "system", "meta"]
        read_only_fields = fields


class ProjectList(generics.ListAPIView):
    """Rows of a project. `filters` maps query parameters to fields."""

    keyset_order: tuple[str, ...] = ("order_key",)
    filters: dict[str, str] = {}
    related: tuple[str, ...] = ()
    project_field = "project"

    def get_queryset(self) -> QuerySet:
        model = self.serializer_class.Meta.model  # type: ignore[union-attr]
        if getattr(self, "swagger_fake_view", False):
            return model.objects.none()
        project = get_project(user=self.request.user, slug=self.kwargs["slug"], need="read")
        rows = model.objects.filter(**{self.project_field: project}).select_related(*self.related)
        refuse_unknown(self.request.query_params, (*self.filters, *PAGES))
        wanted = {
            self.filters[name]: value for name, value in self.request.query_params.items() if name in self.filters
        }
        for field, value in wanted.items():
            choices = [] if "__" in field else model._meta.get_field(field).choices
            if choices and value not in dict(choices):
                text = _("%(name)s must be one of %(choices)s, not “%(value)s”.")
                known = ", ".join(name for name, _label in choices)
                raise BadInput.for_field(field, text % {"name": field, "choices": known, "value": f"{value:.60}"})
        if any("\0" in value for value in wanted.values()):
            return rows.none()
        return rows.filter(**wanted)


def make_list(name: str, serializer: type[serializers.ModelSerializer], order: str, **attributes: Any) -> Any:
    """The view of the list `name`; `attributes` are those of `ProjectList`."""
    view = type(f"{serializer.Meta.model.__name__}List", (ProjectList,), {"serializer_class": serializer, **attributes})
    parameters = [OpenApiParameter(key, str, description=f"Only rows of this {key}.") for key in view.filters]
    words = f"The {name} of a project, page by page, {order}."
    schema = extend_schema(operation_id=f"{name}_list", parameters=parameters, description=words)
    return extend_schema_view(get=schema)(view)


ItemList = make_list("items", ItemSerializer, BY_KEY, filters={"group": "group", "key": "key"})
SystemList = make_list("systems", SystemSerializer, "in natural order of their names", filters={"kind": "kind"})
OutputList = make_list(
    "outputs",
    OutputSerializer,
    BY_OUTPUT,
    filters={"item": "item__key", "system": "system__name"},
    related=("item", "system"),
    keyset_order=("item__order_key", "system__order_key", "pk"),
    project_field="item__project",  # so that the database walks along the index of items in this order
)
ReferenceList = make_list(
    "references",
    ReferenceSerializer,
    BY_ITEM,
    filters={"item": "item__key", "set": "set__name"},
    related=("item", "set"),
    keyset_order=("item__order_key", "pk"),
    project_field="item__project",
)
RatingList = make_list(
    "ratings",
    RatingSerializer,
    OLDEST,
    filters={"item": "output__item__key", "system": "output__system__name", "aspect": "aspect__name", "rater": "rater"},
    related=("output__item", "output__system", "dialogue", "aspect"),
    keyset_order=("pk",),
)
ComparisonList = make_list(
    "comparisons",
    ComparisonSerializer,
    OLDEST,
    filters={"item": "output_a__item__key", "aspect": "aspect__name", "rater": "rater"},
    related=("output_a__item", "output_a__system", "output_b__system", "aspect"),
    keyset_order=("pk",),
)
DialogueList = make_list(
    "dialogues", DialogueSerializer, BY_KEY, filters={"system": "system__name"}, related=("system",)
)


class SystemShow(APIView):
    def _find(self, request: Request, pk: int, need: Any) -> System:
        system = System.objects.select_related("project").filter(pk=pk).first()
        if system is None:
            raise NotThere(_("There is no such system that you can see."))
        try:
            system.project = get_project(user=request.user, slug=system.project.slug, need=need)
        except NotThere as error:
            raise NotThere(_("There is no such system that you can see.")) from error
        return system

    @extend_schema(operation_id="systems_retrieve", responses=SystemSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """A system and its kind."""
        return Response(SystemSerializer(self._find(request, pk, "read")).data)

    @extend_schema(operation_id="systems_partial_update", request=SystemKindSerializer, responses=SystemSerializer)
    def patch(self, request: Request, pk: int) -> Response:
        """Set the kind of a system: machine, human, reference or control."""
        system = self._find(request, pk, "write")
        wanted = SystemKindSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        return Response(
            SystemSerializer(set_system_kind(system=system, user=request.user, **wanted.validated_data)).data
        )


class ItemShow(APIView):
    @extend_schema(operation_id="items_retrieve", responses=ItemSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """An item with its context, source and references."""
        item = Item.objects.visible_to(request.user).filter(pk=pk).select_related("project").first()
        if item is None:
            raise NotThere(_("There is no such item that you can see."))
        get_project(user=request.user, slug=item.project.slug, need="read")
        return Response(ItemSerializer(item).data)
