"""Addresses of this room's pages."""

from django.urls import path

from .views import judging

app_name = "annotation"
urlpatterns = [
    path("my/", judging.my_work, name="my-work"),
    path("my/<int:pk>/", judging.judge, name="judge"),
    path("my/<int:pk>/next/", judging.judge_next, name="judge-next"),
    path("my/<int:pk>/back/", judging.judge_back, name="judge-back"),
    path("my/<int:pk>/guidelines/", judging.guidelines, name="my-guidelines"),
    path("my/<int:pk>/<str:public>/", judging.judge_one, name="judge-one"),
    path("my/<int:pk>/<str:public>/skip/", judging.judge_skip, name="judge-skip"),
    path("my/<int:pk>/<str:public>/flag/", judging.judge_flag, name="judge-flag"),
]
