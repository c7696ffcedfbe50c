#!/usr/bin/env python
"""Command line of evalapp; see docs/reference/commands.md."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalapp.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import DatabaseError

    try:
        execute_from_command_line(sys.argv)
    except DatabaseError as error:
        from evalapp.common.outages import explain_damage

        if (damage := explain_damage(error)) is None:
            raise
        sys.exit(damage.detail)
    except ImproperlyConfigured as error:
        # A wrong setting is the operator's mistake: the message names the variable and the way out.
        sys.exit(f"Configuration: {error}")


if __name__ == "__main__":
    main()
