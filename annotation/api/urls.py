"""Addresses of this room under /api/v1/."""

from django.urls import path

from . import assignments, campaigns, exports, judgements, recruitments, rows, uploads, writing

urlpatterns: list = [
    path("projects/<slug:slug>/campaigns/", campaigns.VIEWS.campaigns.as_view(), name="api-project-campaigns"),
    path("campaigns/<int:pk>/", campaigns.VIEWS.detail.as_view(), name="api-campaign"),
    path("campaigns/<int:pk>/progress/", campaigns.CampaignProgressView.as_view(), name="api-campaign-progress"),
    path("campaigns/<int:pk>/flags/", campaigns.VIEWS.flags.as_view(), name="api-campaign-flags"),
    path("flags/<int:pk>/resolve/", campaigns.VIEWS.resolve_flag.as_view(), name="api-flag-resolve"),
    path("campaigns/<int:pk>/judgements/", judgements.CampaignJudgements.as_view(), name="api-campaign-judgements"),
    path(
        "campaigns/<int:pk>/recruitments/",
        recruitments.CampaignRecruitments.as_view(),
        name="api-campaign-recruitments",
    ),
    path("recruitments/<int:pk>/", recruitments.RecruitmentDetail.as_view(), name="api-recruitment"),
    path(
        "recruitments/<int:pk>/participants/",
        recruitments.RecruitmentParticipants.as_view(),
        name="api-recruitment-participants",
    ),
    path(
        "participants/<int:pk>/withdraw/", recruitments.ParticipantWithdraw.as_view(), name="api-participant-withdraw"
    ),
    path("campaigns/<int:pk>/next/", assignments.NextAssignmentView.as_view(), name="api-campaign-next"),
    path("assignments/", assignments.OwnAssignments.as_view(), name="api-assignments"),
    path("assignments/<slug:public>/", assignments.OwnAssignment.as_view(), name="api-assignment"),
    path("assignments/<slug:public>/submit/", assignments.SubmitAssignment.as_view(), name="api-assignment-submit"),
    path("assignments/<slug:public>/skip/", assignments.SkipAssignment.as_view(), name="api-assignment-skip"),
    path("assignments/<slug:public>/flag/", assignments.FlagAssignment.as_view(), name="api-assignment-flag"),
    path("projects/<slug:slug>/writing/", writing.VIEWS.campaigns.as_view(), name="api-project-writing"),
    path("writing/<int:pk>/", writing.VIEWS.detail.as_view(), name="api-writing"),
    path("writing/<int:pk>/progress/", writing.WritingProgressView.as_view(), name="api-writing-progress"),
    path("writing/<int:pk>/references/", writing.WritingReferences.as_view(), name="api-writing-references"),
    path("writing/<int:pk>/attempts/", writing.WritingAttempts.as_view(), name="api-writing-attempts"),
    path("writing/<int:pk>/flags/", writing.VIEWS.flags.as_view(), name="api-writing-flags"),
    path("writing-flags/<int:pk>/resolve/", writing.VIEWS.resolve_flag.as_view(), name="api-writing-flag-resolve"),
    path("writing/<int:pk>/next/", writing.NextWriting.as_view(), name="api-writing-next"),
    path(
        "writing/<int:pk>/next-confirmation/", writing.NextConfirmation.as_view(), name="api-writing-next-confirmation"
    ),
    path("writing-tasks/<slug:public>/", writing.WritingTaskDetail.as_view(), name="api-writing-task"),
    path("writing-tasks/<slug:public>/submit/", writing.WritingSubmit.as_view(), name="api-writing-submit"),
    path("writing-tasks/<slug:public>/drop/", writing.WritingDrop.as_view(), name="api-writing-drop"),
    path("writing-tasks/<slug:public>/back/", writing.WritingBack.as_view(), name="api-writing-back"),
    path("writing-tasks/<slug:public>/done/", writing.WritingDone.as_view(), name="api-writing-done"),
    path("writing-tasks/<slug:public>/flag/", writing.WritingFlagged.as_view(), name="api-writing-flag"),
    path("writing-tasks/<slug:public>/skip/", writing.WritingSkip.as_view(), name="api-writing-skip"),
    path("written/<int:pk>/withdraw/", writing.WrittenWithdraw.as_view(), name="api-written-withdraw"),
    path("written/<int:pk>/restore/", writing.WrittenRestore.as_view(), name="api-written-restore"),
    path("confirmations/<slug:public>/", writing.ConfirmWritten.as_view(), name="api-confirm-written"),
    path("projects/<slug:slug>/uploads/", uploads.UploadList.as_view(), name="api-uploads"),
    path("uploads/<int:pk>/", uploads.UploadShow.as_view(), name="api-upload"),
    path("projects/<slug:slug>/items/", rows.ItemList.as_view(), name="api-items"),
    path("items/<int:pk>/", rows.ItemShow.as_view(), name="api-item"),
    path("projects/<slug:slug>/systems/", rows.SystemList.as_view(), name="api-systems"),
    path("systems/<int:pk>/", rows.SystemShow.as_view(), name="api-system"),
    path("projects/<slug:slug>/outputs/", rows.OutputList.as_view(), name="api-outputs"),
    path("projects/<slug:slug>/references/", rows.ReferenceList.as_view(), name="api-references"),
    path("projects/<slug:slug>/ratings/", rows.RatingList.as_view(), name="api-ratings"),
    path("projects/<slug:slug>/comparisons/", rows.ComparisonList.as_view(), name="api-comparisons"),
    path("projects/<slug:slug>/dialogues/", rows.DialogueList.as_view(), name="api-dialogues"),
    path("projects/<slug:slug>/exports/", exports.ExportList.as_view(), name="api-exports"),
    path("exports/<int:pk>/", exports.ExportShow.as_view(), name="api-export"),
    path("exports/<int:pk>/files/<path:name>", exports.ExportFile.as_view(), name="api-export-file"),
    *(
        path(f"{folder}/<int:pk>/{move}/", views.move.as_view(move=move), name=f"api-{name}-{move}")
        for folder, name, views in (("campaigns", "campaign", campaigns.VIEWS), ("writing", "writing", writing.VIEWS))
        for move in ("open", "pause", "resume", "close")
    ),
]
