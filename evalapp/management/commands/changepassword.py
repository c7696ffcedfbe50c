"""Django's `changepassword`, which also revokes API tokens, like the page."""

import getpass
import json
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.management.commands import changepassword

from evalapp.accounts.models import User
from evalapp.accounts.services.account import note_new_password


class Command(changepassword.Command):
    help = "Change a user's password. Their API tokens are revoked, and browsers are signed out."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--keep-tokens", action="store_true", help="API tokens keep working")
        parser.add_argument("--json", action="store_true", help="Print one JSON object")

    def handle(self, *args: Any, **options: Any) -> str:
        # Its questions are not part of the JSON.
        asking = changepassword.Command(stdout=self.stderr if options["json"] else self.stdout, stderr=self.stderr)
        said = asking.handle(*args, **options)
        name = options["username"] or getpass.getuser()
        user = User.objects.using(options["database"]).get(username=name)
        n = note_new_password(user=user, keep_tokens=options["keep_tokens"])
        if options["json"]:
            return json.dumps({"username": name, "tokens_revoked": n})
        return f"{said}. API tokens revoked: {n}." if n else f"{said}."
