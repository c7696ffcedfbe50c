"""URLs of accounts, invitations, projects and members."""

from django.urls import path

from .views import account, display, identities, joining, people, projects, signing

app_name = "accounts"
urlpatterns = [
    path("account/", account.account, name="account"),
    path("account/display/", display.display, name="display"),
    path("account/sign-in/", signing.SignIn.as_view(), name="login"),
    path("account/sign-out/", signing.SignOut.as_view(), name="logout"),
    path("account/oidc/<slug:provider>/", identities.start, name="oidc-start"),
    path("account/oidc/<slug:provider>/callback/", identities.callback, name="oidc-callback"),
    path("account/sign-ins/confirm/", identities.confirm, name="identity-confirm"),
    path("account/sign-ins/<int:pk>/remove/", identities.disconnect, name="identity-disconnect"),
    path("account/password/", account.password, name="password"),
    path("account/tokens/", account.tokens, name="token-list"),
    path("account/tokens/<int:pk>/revoke/", account.token_revoke, name="token-revoke"),
    path("account/data/", account.own_data, name="own-data"),
    path("account/data/file/", account.own_data_file, name="own-data-file"),
    path("account/reset/", signing.ResetPassword.as_view(), name="password-reset"),
    path("account/reset/sent/", signing.ResetSent.as_view(), name="password-reset-sent"),
    path("account/reset/<uidb64>/<token>/", signing.ChooseNewPassword.as_view(), name="password-reset-confirm"),
    path("invitations/<str:secret>/", joining.invitation, name="invitation"),
    path("projects/new/", projects.create, name="project-create"),
    path("projects/<slug:slug>/settings/", projects.settings, name="project-settings"),
    path("projects/<slug:slug>/settings/delete/", projects.delete, name="project-delete"),
    path("projects/<slug:slug>/people/", people.members, name="member-list"),
    path("projects/<slug:slug>/people/invite/", people.invite, name="invitation-create"),
    path("projects/<slug:slug>/people/<int:pk>/role/", people.member_role, name="member-role"),
    path("projects/<slug:slug>/people/<int:pk>/remove/", people.member_remove, name="member-remove"),
    path("projects/<slug:slug>/people/invitations/<int:pk>/send/", people.invitation_send, name="invitation-send"),
    path(
        "projects/<slug:slug>/people/invitations/<int:pk>/revoke/", people.invitation_revoke, name="invitation-revoke"
    ),
]
