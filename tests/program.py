# SPDX-License-Identifier: MIT
"""The program under test, as a user's shell runs it. Its path is the test's first argument."""

import os
import subprocess
import sys

PROGRAM = os.path.abspath(sys.argv[1])


def run(*arguments, status=0, stdin=None, environment=None, launcher=()):
    result = subprocess.run([*launcher, PROGRAM, *arguments], capture_output=True, text=True, input=stdin,
                            env={**os.environ, **(environment or {})})
    assert result.returncode == status, (arguments, result.returncode, result.stdout[-500:], result.stderr)
    return result


def fails(*arguments, status=1, **more):
    """The command fails with one error and nothing else; gives it without the program's name."""
    result = run(*arguments, status=status, **more)
    assert result.stdout == "" and result.stderr.startswith("nanojoule: "), result
    return result.stderr[len("nanojoule: "):].rstrip("\n")
