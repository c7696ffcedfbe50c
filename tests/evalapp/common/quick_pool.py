"""Imported by the workers of tests: Celery looks every 0.2 s instead of 5 s for processes of a pool that have died, so
that tests that kill them wait less."""

from __future__ import annotations

from celery.concurrency.asynpool import AsynPool

AsynPool.timers = property(lambda pool: {pool.maintain_pool: 0.2})
