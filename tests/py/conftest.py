"""Shared by all Python tests: a fresh interpreter with this checkout's framejit, and a clean engine between tests."""
import os
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SITE = os.path.join(ROOT, "build", "site")


@pytest.fixture
def python():
    """python(code, *args, path=[...], VARIABLE=value) runs code in its own process; -> CompletedProcess with text output."""
    def run(code, *args, path=(), **variables):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("FRAMEJIT_")}
        search = os.pathsep.join([*map(str, path), SITE])
        command = [sys.executable, "-c", code, *map(str, args)] if code else [sys.executable, *map(str, args)]
        return subprocess.run(command, env=dict(clean, PYTHONPATH=search, **variables), capture_output=True, text=True, timeout=240)
    return run
