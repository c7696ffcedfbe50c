"""Settings of the test suite: fast password hashing, mails kept in memory, and the servers that the
test environment names. SQLite unless TEST_DATABASE_URL is set for tests that ask for PostgreSQL."""

import atexit
import os
import shutil
import tempfile

# Before numpy and torch are loaded, and for every process that a test starts: what a test computes is too small for a
# second thread, whose waiting would take a core from the other processes of the run.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A folder for each process of a parallel run; what a test starts stays in the folder of its process.
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
    # In memory. Said here because pytest-django knows only Django's own engine by its name: of another it would make a
    # file, at a path that is none, in every process of a parallel run.
    DATABASES["default"]["TEST"] = {"NAME": ":memory:"}  # noqa: F405
