"""A signal during the import of the node's modules."""

import subprocess
import sys

import pytest

START = """
import os, signal, sys

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGTERM)

sys.meta_path.insert(0, Watch())
from quorate.cli.main import run
code = run(["server-start", sys.argv[2]])
print("ended by itself with", code, sys.argv[1] in sys.modules)
"""


@pytest.mark.parametrize("module", ["asyncio.coroutines", "asyncio.base_events", "asyncio.streams"])
def test_sigterm_during_an_import_ends_the_process_quietly(tmp_path, module):
    """As an exception it left asyncio half imported: a NameError, and exit code 70."""
    ended = subprocess.run(
        [sys.executable, "-c", START, module, str(tmp_path / "none.properties")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
