"""What the scripts of benchmarks share: environments of peers, and a line for each requirement."""

import subprocess
import sys
import venv
from pathlib import Path


def environment(folder: Path, requirements: Path) -> Path:
    """The Python of an environment that has these requirements; makes it when it has others or none."""
    python, stamp = folder / "bin/python", folder / "requirements.stamp"
    if not stamp.exists() or stamp.read_text() != requirements.read_text():
        print(f"installing {requirements.name} into {folder}", file=sys.stderr)
        venv.create(folder, clear=True, with_pip=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", requirements], check=True, stdout=sys.stderr)
        stamp.write_text(requirements.read_text())
    return python


def add_packages(python: Path, requirements: Path) -> dict:
    """Adds packages to an environment, one by one: why those that cannot be installed are missing, by name.

    What has to be built from sources is built for this CPU.
    """
    missing = {}
    for line in requirements.read_text().splitlines():
        name, _, version = line.partition("==")
        if not version:
            continue
        has = f"import importlib.metadata, sys; sys.exit(importlib.metadata.version({name!r}) != {version!r})"
        if subprocess.run([python, "-c", has], stderr=subprocess.DEVNULL).returncode == 0:
            continue
        print(f"installing {line}", file=sys.stderr)
        done = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", line],
                              stdout=sys.stderr, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            missing[name] = "".join(done.stderr.strip().splitlines()[-1:])
    return missing


class Requirements:
    """Prints whether each is reached, and keeps what is missed."""

    def __init__(self):
        self.lines = []

    def require(self, what, measured, relation, target):
        reached = measured <= target if relation == "<=" else measured >= target
        print(f"{'reached' if reached else 'MISSED ':8} {what:66} {measured:8.2f}  {relation} {target:g}")
        self.lines.append({"what": what, "measured": measured, "relation": relation, "target": target,
                           "reached": reached})

    def exit_code(self):
        return 0 if all(line["reached"] for line in self.lines) else 1
