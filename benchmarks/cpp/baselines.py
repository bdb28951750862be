"""Runs the objectives in JAX and in torch, and prints {"jax": [...], "torch": [...]}.

    .venv/bin/python benchmarks/cpp/baselines.py [ROUNDS] [--only NAME]

Each on one thread, in a process of its own. JAX has its own environment, build/jax, which is made
when it is missing or requirements-jax.txt has changed.
"""

import json
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements-jax.txt"
ENVIRONMENT = HERE.parent.parent / "build/jax"


def jax_python() -> Path:
    python, stamp = ENVIRONMENT / "bin/python", ENVIRONMENT / "requirements.stamp"
    if not stamp.exists() or stamp.read_text() != REQUIREMENTS.read_text():
        venv.create(ENVIRONMENT, clear=True, with_pip=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", REQUIREMENTS], check=True, stdout=sys.stderr)
        stamp.write_text(REQUIREMENTS.read_text())
    return python


def results(python: Path | str, script: str) -> list[dict]:
    command = [python, HERE / script, *sys.argv[1:]]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


if __name__ == "__main__":
    found = {
        "jax": results(jax_python(), "jax_objectives.py"),
        "torch": results(sys.executable, "torch_objectives.py"),
    }
    json.dump(found, sys.stdout, indent=2)
    print()
