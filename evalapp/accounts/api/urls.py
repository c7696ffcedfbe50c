"""URLs of projects, members, invitations and tokens below /api/v1/."""

from django.urls import path

from .people import InvitationList, InvitationSend, InvitationShow, MemberList, MemberShow
from .projects import ProjectList, ProjectShow
from .tokens import TokenList, TokenShow

urlpatterns = [
    path("projects/", ProjectList.as_view(), name="api-project-list"),
    path("projects/<slug:slug>/", ProjectShow.as_view(), name="api-project"),
    path("projects/<slug:slug>/members/", MemberList.as_view(), name="api-member-list"),
    path("projects/<slug:slug>/members/<int:pk>/", MemberShow.as_view(), name="api-member"),
    path("projects/<slug:slug>/invitations/", InvitationList.as_view(), name="api-invitation-list"),
    path("invitations/<int:pk>/", InvitationShow.as_view(), name="api-invitation"),
    path("invitations/<int:pk>/send/", InvitationSend.as_view(), name="api-invitation-send"),
    path("tokens/", TokenList.as_view(), name="api-token-list"),
    path("tokens/<int:pk>/", TokenShow.as_view(), name="api-token"),
]
