#!/usr/bin/env python3
"""Finds out by running them what torch's operators do that their schemas do not say.

    dump_undeclared_writes.py            prints the three tables as observed here
    dump_undeclared_writes.py --check    compares them with the checked-in files beside this script

Tables, one line per entry, sorted, `#` opens a comment:

    undeclared_writes.txt   OP ARGUMENT          a call changes an argument not declared as written
    value_queries.txt       OP metadata|value    ops from tensors to numbers: whether they read data
    dynamic_shapes.txt      OP tagged|untagged   ops whose result sizes depend on data, and whether
                                                 torch tags them dynamic_output_shape

Every call that passes the dispatcher is watched while samples of all operators, modules and
optimizers that torch tests itself with run on the CPU (opdb_samples) and a few more programs do
(opdb_extras), then while overloads that these leave out are called with arguments taken from
sibling overloads or made up (opdb_derived).
"""

import argparse
import contextlib
import pathlib
import sys
import warnings

import torch
from torch.testing._internal.common_utils import set_rng_seed

from opdb_derived import Derived, every_overload
from opdb_extras import EXTRA_SAMPLES
from opdb_samples import database_samples
from opdb_watch import Watch, qualified_name

_HERE = pathlib.Path(__file__).parent


class Observations:
    """What one run has seen. `ran`: names of the ops that were called at least once."""

    def __init__(self):
        set_rng_seed(0)
        watch = Watch()
        for sample in EXTRA_SAMPLES:
            with watch:
                sample()
        for sample in database_samples():
            torch.manual_seed(0)
            with watch, contextlib.suppress(Exception):
                sample()
        derived = Derived(watch)
        self.ran = derived.ran
        self.undeclared = watch.undeclared | derived.undeclared
        self.shape_dependent = derived.shape_dependent
        self.value_dependent = derived.value_dependent


def undeclared_writes(seen):
    return {f"{op} {argument}" for op, argument in seen.undeclared}


def value_queries(seen):
    """All ops with a tensor argument and a result that is none."""
    lines = set()
    for op in every_overload():
        schema = op._schema
        takes_tensor = any("Tensor" in str(a.type) for a in schema.arguments)
        if takes_tensor and any("Tensor" not in str(r.type) for r in schema.returns):
            name = qualified_name(op)
            lines.add(f"{name} {'value' if name in seen.value_dependent else 'metadata'}")
    return lines


def dynamic_shapes(seen):
    tagged = {qualified_name(op) for op in every_overload() if _is_tagged(op)}
    untagged = {name for name in seen.shape_dependent - tagged if name.startswith("aten::")}
    return {f"{name} tagged" for name in tagged} | {f"{name} untagged" for name in untagged}


def _is_tagged(op):
    return torch.Tag.dynamic_output_shape in op.tags


_TABLES = {
    "undeclared_writes.txt": undeclared_writes,
    "value_queries.txt": value_queries,
    "dynamic_shapes.txt": dynamic_shapes,
}


def read_table(path):
    lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    return {line for line in lines if line}


def differences(expected, found, ran):
    """Lines to report: what was found and is not listed, and what is listed and, although its op
    ran here, was not found. Of ops that did not run (no CPU kernel) the names alone are compared."""
    listed = {line.split()[0] for line in expected}
    for line in sorted(found - expected):
        if line.split()[0] in ran or line.split()[0] not in listed:
            yield f"found, not listed: {line}"
    for line in sorted(expected - found):
        if line.split()[0] in ran:
            yield f"listed, not found: {line}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the checked-in tables")
    check = parser.parse_args().check
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # forked processes must not wait for threads they do not have
    seen = Observations()
    print(f"{len(seen.ran)} ops were called")
    failed = False
    for name, observe in _TABLES.items():
        found = observe(seen)
        if not check:
            print(f"\n{name}", *sorted(found), sep="\n")
            continue
        wrong = list(differences(read_table(_HERE / name), found, seen.ran))
        print(f"{name}: {len(found)} entries, {len(wrong)} differences", *wrong, sep="\n")
        failed |= bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
