"""Settings of the test suite: fast password hashing, mails in memory, and the servers of the test environment. The
database is SQLite, except for tests that need PostgreSQL (TEST_DATABASE_URL)."""

import atexit
import os
import shutil
import tempfile

# Before numpy and torch are imported, and for all child processes: computations of tests are too small for several
# threads, which would take cores from other processes of the run.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A folder per process of a parallel run, also used by its child processes.
_process = os.environ.get("PYTEST_XDIST_WORKER", "main")
if "EVALAPP_DATA" not in os.environ or os.environ.get("EVALAPP_TEST_PROCESS", _process) != _process:
    os.environ["EVALAPP_DATA"] = tempfile.mkdtemp(prefix="evalapp-test-")
    os.environ["EVALAPP_TEST_PROCESS"] = _process
    atexit.register(shutil.rmtree, os.environ["EVALAPP_DATA"], ignore_errors=True)

from .base import *  # noqa: E402, F403

ALLOWED_HOSTS = ["testserver", "127.0.0.1", "localhost"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
WHITENOISE_AUTOREFRESH = True
if "sqlite" in DATABASES["default"]["ENGINE"]:  # noqa: F405
    # In memory; pytest-django would create a file with an invalid path in each process of a parallel run.
    DATABASES["default"]["TEST"] = {"NAME": ":memory:"}  # noqa: F405
