"""Serializers of writing campaigns, for their plans and for the schema of the API."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from annotation.models import WritingCampaign, WritingFlag
from annotation.selectors.writing import make_writing_plan
from evalapp.common.api.fields import ChoiceField, WholeSerializer

from .campaign_views import BaseCampaignSerializer, BasePlanSerializer

CANDIDATE = "Opaque id of the candidate; required in rounds."


class WritingSerializer(BaseCampaignSerializer):
    class Meta(BaseCampaignSerializer.Meta):
        model = WritingCampaign
        fields = (*BaseCampaignSerializer.Meta.fields, "evaluator", "corpus")
        read_only_fields = fields


class WritingPlanSerializer(BasePlanSerializer):
    """The plan of a writing campaign; see the documentation on reference writing."""

    slug = serializers.CharField(required=False, allow_blank=True, allow_null=True, max_length=40)
    kind = ChoiceField(choices=WritingCampaign.Kind.choices, required=False)
    start_set = serializers.CharField(required=False, allow_blank=True, allow_null=True)
    evaluator = serializers.CharField(required=False, allow_blank=True, allow_null=True)
    corpus = serializers.CharField(required=False, allow_blank=True, allow_null=True)


class WritingDetailSerializer(WritingSerializer):
    plan = serializers.SerializerMethodField()

    class Meta(WritingSerializer.Meta):
        fields = (*WritingSerializer.Meta.fields, "guidelines", "plan")
        read_only_fields = fields

    @extend_schema(responses=WritingPlanSerializer)
    def get_plan(self, campaign: WritingCampaign) -> dict[str, Any]:
        return make_writing_plan(campaign)


class WritingPointSerializer(serializers.Serializer):
    round = serializers.IntegerField()
    mean = serializers.FloatField()
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    n = serializers.IntegerField()


class WritingProgressSerializer(serializers.Serializer):
    campaign = serializers.IntegerField()
    state = ChoiceField(choices=WritingCampaign.State.choices)
    figures = serializers.DictField()
    arms = serializers.ListField(child=serializers.DictField())
    people = serializers.ListField(child=serializers.DictField())
    by_arm = serializers.DictField(child=WritingPointSerializer(many=True))
    by_person = serializers.DictField(child=WritingPointSerializer(many=True))
    comparisons = serializers.ListField(child=serializers.DictField())


class ReferenceViewSerializer(serializers.Serializer):
    text = serializers.CharField()
    gain = serializers.FloatField(allow_null=True)
    mine = serializers.BooleanField()
    added_by_other = serializers.BooleanField()
    waiting = serializers.BooleanField(help_text="Other annotators have not confirmed it yet.")


class CandidateViewSerializer(serializers.Serializer):
    public = serializers.CharField(help_text="Opaque.")
    text = serializers.CharField()
    query = serializers.CharField()
    jaccard = serializers.FloatField(allow_null=True)
    source = serializers.DictField()


class LastSerializer(serializers.Serializer):
    task = serializers.CharField(help_text="Opaque id of its task.")
    reference = serializers.CharField(help_text="Opaque.")
    text = serializers.CharField()


class TaskViewSerializer(serializers.Serializer):
    id = serializers.CharField(help_text="Opaque.")
    campaign = serializers.IntegerField()
    state = ChoiceField(choices=["write", "wait", "done", "skipped", "none"])
    why = serializers.CharField()
    message = serializers.CharField()
    context = serializers.ListField(child=serializers.CharField())
    source = serializers.CharField(allow_null=True)
    originals = serializers.ListField(child=serializers.CharField())
    references = ReferenceViewSerializer(many=True)
    candidate = CandidateViewSerializer(allow_null=True, help_text="The candidate of the round.")
    attempts_left = serializers.IntegerField()
    max_attempts = serializers.IntegerField()
    target = serializers.IntegerField()
    growth = serializers.ListField(child=serializers.ListField(child=serializers.FloatField()))
    draft = serializers.DictField(allow_null=True)
    draft_version = serializers.IntegerField()
    round = serializers.IntegerField()
    rounds = serializers.IntegerField()
    waiting_for = serializers.IntegerField()
    note = serializers.CharField()
    done = serializers.IntegerField()
    goal = serializers.IntegerField()
    to_confirm = serializers.IntegerField()
    last = LastSerializer(allow_null=True, help_text="The annotator's last text, while it can be taken back.")
    shows_scores = serializers.BooleanField()
    shows_candidates = serializers.BooleanField()
    allows_edit = serializers.BooleanField()
    allows_own_text = serializers.BooleanField()


class AttemptInputSerializer(serializers.Serializer):
    submission = serializers.UUIDField(help_text="A UUID made by the client for each text; the same on a retry.")
    text = serializers.CharField()
    relevant = serializers.BooleanField(
        required=False, allow_null=True, help_text="Whether the unedited candidate fits the context."
    )
    candidate = serializers.CharField(required=False, allow_null=True, help_text=CANDIDATE)
    seconds = serializers.FloatField(required=False, allow_null=True, min_value=0)
    unscored = serializers.BooleanField(required=False, help_text="Add the text even if no score is available.")


class OutcomeSerializer(serializers.Serializer):
    decision = ChoiceField(choices=["accept", "edit", "drop", "wait"])
    score_before = serializers.FloatField(allow_null=True)
    score_after = serializers.FloatField(allow_null=True)
    improved = serializers.BooleanField(allow_null=True)
    attempts_left = serializers.IntegerField()
    why = serializers.CharField()
    message = serializers.CharField()
    repeated = serializers.BooleanField()
    desk = TaskViewSerializer()


class DropInputSerializer(serializers.Serializer):
    submission = serializers.UUIDField()
    candidate = serializers.CharField(required=False, allow_null=True, help_text=CANDIDATE)
    seconds = serializers.FloatField(required=False, allow_null=True, min_value=0)


class BackInputSerializer(serializers.Serializer):
    reference = serializers.CharField(help_text="Opaque id, see `last` of the task.")


class WritingDraftInputSerializer(WholeSerializer):
    version = serializers.IntegerField(min_value=0, help_text="The version of the draft that this one follows.")
    draft = serializers.DictField()


class WritingDraftSerializer(serializers.Serializer):
    draft_version = serializers.IntegerField()
    saved_at = serializers.DateTimeField()


class ReasonSerializer(serializers.Serializer):
    reason = serializers.CharField(required=False, allow_blank=True, allow_null=True, max_length=300)


class ToConfirmSerializer(serializers.Serializer):
    id = serializers.CharField(help_text="Opaque.")
    campaign = serializers.IntegerField()
    context = serializers.ListField(child=serializers.CharField())
    source = serializers.CharField(allow_null=True)
    texts = serializers.ListField(child=serializers.DictField())
    left = serializers.IntegerField()


class ConfirmInputSerializer(serializers.Serializer):
    submission = serializers.UUIDField()
    better = ChoiceField(choices=["a", "b", "tie"])


class WrittenSerializer(serializers.Serializer):
    id = serializers.IntegerField()
    item = serializers.CharField()
    set = serializers.CharField()
    text = serializers.CharField()
    meta = serializers.DictField()
    written = serializers.DictField()


class WritingFlagSerializer(serializers.ModelSerializer):
    item = serializers.CharField(source="task.unit.item.key", read_only=True)

    class Meta:
        model = WritingFlag
        fields = ("id", "item", "reason", "text", "created_at", "resolved_at")
        read_only_fields = fields
