"""Addresses of this room under /api/v1/."""

from django.urls import path

from . import assignments, campaigns, exports, judgements, rows, uploads

urlpatterns: list = [
    path("projects/<slug:slug>/campaigns/", campaigns.ProjectCampaigns.as_view(), name="api-project-campaigns"),
    path("campaigns/<int:pk>/", campaigns.CampaignDetail.as_view(), name="api-campaign"),
    path("campaigns/<int:pk>/open/", campaigns.CampaignMove.as_view(move="open"), name="api-campaign-open"),
    path("campaigns/<int:pk>/pause/", campaigns.CampaignMove.as_view(move="pause"), name="api-campaign-pause"),
    path("campaigns/<int:pk>/resume/", campaigns.CampaignMove.as_view(move="resume"), name="api-campaign-resume"),
    path("campaigns/<int:pk>/close/", campaigns.CampaignMove.as_view(move="close"), name="api-campaign-close"),
    path("campaigns/<int:pk>/progress/", campaigns.CampaignProgressView.as_view(), name="api-campaign-progress"),
    path("campaigns/<int:pk>/flags/", campaigns.CampaignFlags.as_view(), name="api-campaign-flags"),
    path("flags/<int:pk>/resolve/", campaigns.FlagResolve.as_view(), name="api-flag-resolve"),
    path("campaigns/<int:pk>/judgements/", judgements.CampaignJudgements.as_view(), name="api-campaign-judgements"),
    path("campaigns/<int:pk>/next/", assignments.NextAssignment.as_view(), name="api-campaign-next"),
    path("assignments/", assignments.OwnAssignments.as_view(), name="api-assignments"),
    path("assignments/<slug:public>/", assignments.OwnAssignment.as_view(), name="api-assignment"),
    path("assignments/<slug:public>/submit/", assignments.SubmitAssignment.as_view(), name="api-assignment-submit"),
    path("assignments/<slug:public>/skip/", assignments.SkipAssignment.as_view(), name="api-assignment-skip"),
    path("assignments/<slug:public>/flag/", assignments.FlagAssignment.as_view(), name="api-assignment-flag"),
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
    path("exports/<int:pk>/files/<str:name>", exports.ExportFile.as_view(), name="api-export-file"),
]
