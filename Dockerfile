# The image of every process: web, workers, beat. Which one it is, the command says (docker-compose.yml).

FROM python:3.11-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 UV_LINK_MODE=copy UV_NO_CACHE=1
RUN pip install uv==0.13.8 && python -m venv /app/.venv
# Every package by its hash; REQUIREMENTS=requirements.txt takes other builds of the same versions, too.
ARG REQUIREMENTS=requirements.lock
COPY requirements.txt requirements.lock /tmp/
RUN uv pip install --python /app/.venv/bin/python --compile-bytecode -r "/tmp/$REQUIREMENTS" \
    $(case "$REQUIREMENTS" in *.lock) echo --require-hashes ;; esac)

FROM python:3.11-slim-bookworm
# libgomp1: OpenMP for torch and scikit-learn.
RUN apt-get update \
    && apt-get install -y --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 evalapp \
    && useradd --uid 10001 --gid evalapp --no-create-home --shell /usr/sbin/nologin evalapp \
    && install -d -o evalapp -g evalapp /data
WORKDIR /app
COPY --from=build /app/.venv /app/.venv
COPY . .
RUN /app/.venv/bin/python -m compileall -q evalapp annotation retrieval scoring \
    && ln -s /app/manage.py /app/.venv/bin/evalapp
ENV PATH=/app/.venv/bin:$PATH PYTHONUNBUFFERED=1 EVALAPP_DATA=/data HOME=/tmp PORT=8000
USER evalapp
VOLUME /data
EXPOSE 8000
# A process that serves no pages brings a check of its own (docker-compose.yml).
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=4 \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen('http://127.0.0.1:%s/health/live' % os.environ['PORT'], timeout=4)"]
CMD ["sh", "-c", "exec gunicorn evalapp.wsgi:application --bind 0.0.0.0:$PORT --preload --worker-class evalapp.ops.web.Worker --threads 4 --timeout 60 --keep-alive 15 --limit-request-line 8190 --worker-tmp-dir /dev/shm --no-control-socket"]
