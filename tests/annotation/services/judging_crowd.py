"""A process with a crowd of annotators for the concurrency tests: `python judging_crowd.py CAMPAIGN LIMIT NAME ...`
judges as the named users, one thread each, until LIMIT answers are given or no unit is left, and prints the assignments
and acknowledgements as one JSON object."""

from __future__ import annotations

import json
import os
import sys
import threading
import uuid

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalapp.settings.test")


def main() -> None:
    import django

    django.setup()
    from django.db import connection

    from annotation.services.judging import get_next_assignment, submit_answer
    from evalapp.accounts.models import User

    campaign, limit, names = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    left = iter(range(limit))
    lock = threading.Lock()
    handed: list[tuple[str, int]] = []
    sent: list[str] = []
    errors: list[str] = []

    def judge(user: User) -> None:
        try:
            shown = get_next_assignment(user=user, campaign_id=campaign).shown
            while shown is not None:
                with lock:
                    handed.append((user.username, shown.unit_id))
                    if next(left, None) is None:
                        return
                number = uuid.uuid4()
                answer = {"likert-quality": 1 + shown.unit_id % 5}
                arguments = {"user": user, "public": shown.public, "submission": number, "answer": answer}
                done = submit_answer(**arguments, then="next")
                if shown.unit_id % 7 == 0:  # the answer was lost in transit: the browser sends it again
                    done = submit_answer(**arguments, then="next")
                    assert done.repeated
                with lock:
                    sent.append(number.hex)
                shown = done.next
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")
        finally:
            connection.close()

    users = {user.username: user for user in User.objects.filter(username__in=names)}
    connection.close()
    threads = [threading.Thread(target=judge, args=(users[name],)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"handed": handed, "sent": sent, "errors": errors}))


if __name__ == "__main__":
    main()
