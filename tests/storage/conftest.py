from __future__ import annotations

from collections.abc import Iterator

import pytest

from storage.builders import Place, file_place, memory_place


@pytest.fixture(params=["files", "memory"])
def place(request, tmp_path) -> Iterator[Place]:
    """The same contract over real files and over memory."""
    place = file_place(tmp_path) if request.param == "files" else memory_place()
    yield place
    place.storage.close()
