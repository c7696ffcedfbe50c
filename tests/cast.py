"""The people of the tests. Olga owns the project, Rita researches, Anna annotates, Vic views; Sam is a stranger
with a project of his own."""

from __future__ import annotations

from dataclasses import dataclass

from evalapp.accounts.models import Membership, Project, User
from evalapp.accounts.roles import Role

PASSWORD = "correct-horse-battery"


def person(name: str) -> User:
    return User.objects.create_user(username=name, email=f"{name}@example.org", password=PASSWORD)


def join(project: Project, user: User, role: str) -> Membership:
    return Membership.objects.create(project=project, user=user, role=role, pseudonym=f"p-{user.username}")


@dataclass
class Cast:
    project: Project
    foreign: Project
    owner: User
    researcher: User
    annotator: User
    viewer: User
    stranger: User


def make_cast(slug: str = "alpha") -> Cast:
    project = Project.objects.create(slug=slug, name=slug.title())
    foreign = Project.objects.create(slug=f"{slug}-foreign", name="Foreign")
    people = {name: person(name) for name in ("olga", "rita", "anna", "vic", "sam")}
    join(project, people["olga"], Role.OWNER)
    join(project, people["rita"], Role.RESEARCHER)
    join(project, people["anna"], Role.ANNOTATOR)
    join(project, people["vic"], Role.VIEWER)
    join(foreign, people["sam"], Role.OWNER)
    return Cast(project, foreign, people["olga"], people["rita"], people["anna"], people["vic"], people["sam"])
