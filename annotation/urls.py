"""Addresses of this room's pages."""

from collections.abc import Callable

from django.http import HttpResponse
from django.urls import URLPattern, include, path

from .views import (
    campaign_checks,
    campaign_flags,
    campaign_pages,
    campaign_plans,
    campaign_quality,
    campaigns,
    exports,
    invitations,
    items,
    judging,
    mappings,
    own_answers,
    participation,
    recruitments,
    uploads,
    writing,
    writing_lists,
    writing_preview,
    writing_show,
)

app_name = "annotation"


def _make_shared_patterns(kind: campaign_pages.CampaignPages) -> list[URLPattern]:
    """The pages that judging and writing campaigns share."""
    base, options = f"{kind.templates}/", {"kind": kind}
    pages: dict[str, tuple[str, Callable[..., HttpResponse]]] = {
        "new": ("new/", campaign_plans.campaign_new),
        "estimate": ("estimate/", campaign_plans.campaign_estimate),
        "edit": ("<int:pk>/plan/", campaign_plans.campaign_edit),
        "delete": ("<int:pk>/delete/", campaign_plans.campaign_delete),
        "flags": ("<int:pk>/flags/", campaign_flags.flag_list),
        "flag-resolve": ("<int:pk>/flags/<int:flag>/resolve/", campaign_flags.flag_resolve),
        "people": ("<int:pk>/people/", invitations.invitations),
        "invitation-revoke": ("<int:pk>/people/<int:invitation>/revoke/", invitations.invitation_revoke),
        "move": ("<int:pk>/<str:move>/", campaign_plans.campaign_move),
    }
    return [path(base + address, view, options, name=f"{kind.name}-{name}") for name, (address, view) in pages.items()]


project_patterns = [
    path("campaigns/", campaigns.campaign_list, name="campaign-list"),
    path("campaigns/guidelines/", campaign_plans.guidelines_preview, name="campaign-guidelines-preview"),
    path("campaigns/<int:pk>/", campaigns.campaign_show, name="campaign"),
    path("campaigns/<int:pk>/preview/", campaigns.campaign_preview, name="campaign-preview"),
    path("campaigns/<int:pk>/checks/", campaign_checks.checks, name="campaign-checks"),
    path(
        "campaigns/<int:pk>/checks/<str:name>/<int:number>/remove/",
        campaign_checks.check_remove,
        name="campaign-check-remove",
    ),
    path("campaigns/<int:pk>/judgements/", campaigns.judgement_list, name="campaign-judgements"),
    path("campaigns/<int:pk>/texts/", campaigns.unit_list, name="campaign-units"),
    path("campaigns/<int:pk>/participants/", recruitments.recruitment_list, name="participants"),
    path("campaigns/<int:pk>/participants/new/", recruitments.recruitment_new, name="participants-new"),
    path("campaigns/<int:pk>/participants/bans/", recruitments.ban, name="participants-ban"),
    path("campaigns/<int:pk>/participants/bans/<int:number>/lift/", recruitments.unban, name="participants-unban"),
    path("campaigns/<int:pk>/participants/<int:number>/", recruitments.recruitment_show, name="participants-link"),
    path("campaigns/<int:pk>/participants/<int:number>/edit/", recruitments.recruitment_edit, name="participants-edit"),
    path(
        "campaigns/<int:pk>/participants/<int:number>/participants.csv",
        recruitments.payments_file,
        name="participants-file",
    ),
    path(
        "campaigns/<int:pk>/participants/<int:number>/withdraw/<int:participant>/",
        recruitments.participant_withdraw,
        name="participant-withdraw",
    ),
    path("campaigns/<int:pk>/quality/", campaign_quality.quality, name="campaign-quality"),
    path("writing/<int:pk>/", writing_show.writing_show, name="writing"),
    path("writing/<int:pk>/preview/", writing_preview.preview, name="writing-preview"),
    path("writing/<int:pk>/references/", writing_lists.reference_list, name="writing-references"),
    path(
        "writing/<int:pk>/references/<int:reference>/withdraw/",
        writing_lists.reference_withdraw,
        name="writing-withdraw",
    ),
    path(
        "writing/<int:pk>/references/<int:reference>/restore/", writing_lists.reference_restore, name="writing-restore"
    ),
    path("writing/<int:pk>/attempts/", writing_lists.attempt_list, name="writing-attempts"),
    path("uploads/", uploads.upload_list, name="upload-list"),
    path("uploads/samples/<str:name>", uploads.upload_sample, name="upload-sample"),
    path("uploads/<int:pk>/", uploads.upload_show, name="upload-show"),
    path("uploads/<int:pk>/columns/", mappings.upload_columns, name="upload-columns"),
    path("uploads/<int:pk>/mapping.json", mappings.upload_mapping, name="upload-mapping"),
    path("uploads/<int:pk>/store/", uploads.upload_store, name="upload-store"),
    path("uploads/<int:pk>/undo/", uploads.upload_undo, name="upload-undo"),
    path("items/", items.item_list, name="item-list"),
    path("items/systems/", items.system_list, name="system-list"),
    path("items/systems/<int:pk>/kind/", items.system_kind, name="system-kind"),
    path("items/<int:pk>/", items.item_show, name="item-show"),
    path("exports/", exports.export_list, name="export-list"),
    path("exports/<int:pk>/delete/", exports.export_delete, name="export-delete"),
    path("exports/<int:pk>/<path:name>", exports.export_file, name="export-file"),
    *_make_shared_patterns(campaign_pages.JUDGING),
    *_make_shared_patterns(campaign_pages.WRITING),
]

urlpatterns = [
    path("participate/<str:secret>/", participation.study, name="study"),
    path("my/", judging.my_work, name="my-work"),
    path("my/participation/", participation.participation, name="my-participation"),
    path("my/participation/withdraw/", participation.participation_withdraw, name="my-participation-withdraw"),
    path("my/writing/<int:pk>/", writing.write, name="write"),
    path("my/writing/<int:pk>/confirm/", writing.write_confirm, name="write-confirm"),
    path("my/writing/<int:pk>/guidelines/", writing.write_guidelines, name="write-guidelines"),
    path("my/writing/<int:pk>/texts/", own_answers.own_texts, name="write-texts"),
    path("my/writing/<int:pk>/<slug:public>/", writing.write_one, name="write-one"),
    path("my/writing/<int:pk>/<slug:public>/draft/", writing.write_draft, name="write-draft"),
    path("my/writing/<int:pk>/<slug:public>/drop/", writing.write_drop, name="write-drop"),
    path("my/writing/<int:pk>/<slug:public>/back/", writing.write_back, name="write-back"),
    path("my/writing/<int:pk>/<slug:public>/done/", writing.write_done, name="write-done"),
    path("my/writing/<int:pk>/<slug:public>/flag/", writing.write_flag, name="write-flag"),
    path("my/writing/<int:pk>/<slug:public>/skip/", writing.write_skip, name="write-skip"),
    path("my/<int:pk>/", judging.judge, name="judge"),
    path("my/<int:pk>/next/", judging.judge_next, name="judge-next"),
    path("my/<int:pk>/back/", judging.judge_back, name="judge-back"),
    path("my/<int:pk>/guidelines/", judging.guidelines, name="my-guidelines"),
    path("my/<int:pk>/answers/", own_answers.own_answers, name="my-answers"),
    path("my/<int:pk>/<slug:public>/", judging.judge_one, name="judge-one"),
    path("my/<int:pk>/<slug:public>/submit/", judging.judge_submit, name="judge-submit"),
    path("my/<int:pk>/<slug:public>/skip/", judging.judge_skip, name="judge-skip"),
    path("my/<int:pk>/<slug:public>/flag/", judging.judge_flag, name="judge-flag"),
    path("projects/<slug:slug>/", include(project_patterns)),
]
