"""Codecs are compiled when they are first used, so a first example may take its time."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("formats", deadline=None)
settings.load_profile("formats")
