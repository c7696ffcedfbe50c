"""`evalapp createowner NAME`: create an owner of the installation."""

import secrets
import sys
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction

from evalapp.accounts.models import User
from evalapp.accounts.services import check_look
from evalapp.common import audit, commands
from evalapp.common.errors import BadInput, Conflict, Fault


class Command(commands.Command):
    help = "Create a user with all permissions. The password is generated and printed once, or read from stdin."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="User name")
        parser.add_argument("--email", default="", help="For resetting the password")
        parser.add_argument("--password-stdin", action="store_true", help="Read the password from stdin")

    def work(self, *, name: str, email: str, password_stdin: bool, **_: Any) -> dict[str, Any]:
        password = sys.stdin.readline().rstrip("\r\n") if password_stdin else secrets.token_urlsafe(12)
        name = User.normalize_username(name)
        if User.objects.filter(username=name).exists():
            raise Conflict(f"The user “{name}” exists. Change the password: evalapp changepassword {name}")
        user = User(username=name, email=email, is_superuser=True)
        try:
            user.full_clean(exclude=["password"])
            validate_password(password, user)
        except ValidationError as error:
            raise BadInput("The owner could not be created.", faults=_faults(error)) from error
        check_look(name)
        user.set_password(password)
        with transaction.atomic():
            user.save()
            audit.record(verb="account.created", actor=user, object=name, superuser=True)
        return {"username": name, "email": email, **({} if password_stdin else {"password": password})}

    def show(self, result: dict[str, Any]) -> None:
        self.stdout.write(f"Created the owner “{result['username']}”.")
        if "password" in result:
            self.stdout.write(f"Password (shown once): {result['password']}")


def _faults(error: ValidationError) -> list[Fault]:
    """Return faults of name and address by field. The password has no field, because it may come from stdin."""
    if not hasattr(error, "error_dict"):
        return [Fault(text) for text in error.messages]
    return [Fault(text, field=name) for name, texts in error.message_dict.items() for text in texts]
