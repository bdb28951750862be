#!/usr/bin/env python3
"""Finds out by running them what torch's operators do that their schemas do not say.

    op_tables.py            prints the tables as observed here
    op_tables.py --check    compares them with the checked-in files beside this script

Tables, one line per entry, sorted, `#` opens a comment:

    undeclared_writes.txt   OP ARGUMENT          a call changes an argument not declared as written
    value_queries.txt       OP metadata|value    ops from tensors to numbers: whether they read data
    dynamic_shapes.txt      OP tagged|untagged   ops whose result sizes depend on data, and whether
                                                 torch tags them dynamic_output_shape
    host_reads.txt          OP                   composite ops whose own kernel reads data, which no
                                                 dispatcher sees
    not_called.txt          OP                   ops of which the tables above know nothing: they
                                                 may run on the CPU, but no call was accepted

Every call that passes the dispatcher is watched while samples of all operators, modules and
optimizers that torch tests itself with run on the CPU (samples), and a few more programs
(programs); then while overloads that these leave out are called with arguments taken from sibling
overloads or made up (candidates). What a call tells: facts.
"""

import argparse
import contextlib
import itertools
import os
import pathlib
import sys
import warnings
from collections import defaultdict

os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # thousands of deprecated calls are made
try:
    import numpy
    import torch

    from samples import database_samples
except ModuleNotFoundError as missing:
    print(f"skipped: {missing}; torch's operator database needs requirements-test.txt")
    sys.exit(77)

from candidates import Candidates
from facts import facts_about, seed
from isolated import isolated
from programs import PROGRAMS
from watch import WriteWatch

_HERE = pathlib.Path(__file__).parent
_CALLS_ACCEPTED = 2  # of an overload that no sample reaches
_CPU_KERNELS = (
    "CPU",
    "SparseCPU",
    "SparseCsrCPU",
    "QuantizedCPU",
    "CompositeImplicitAutograd",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
)


def observe():
    """Kind of fact -> texts, of all calls."""
    watch = _watch_samples()
    facts = defaultdict(set, writes=watch.undeclared)
    recorded = list(itertools.chain.from_iterable(watch.calls.values()))
    _collect(facts, isolated(facts_about, recorded))
    facts["called"].update(op.name() for op in watch.calls)
    candidates = Candidates(watch.calls)
    left_out = [op for op in every_overload() if may_run(op) and op.name() not in facts["called"]]
    _collect(facts, isolated(lambda op: _try_out(op, candidates), left_out))
    return facts


def _watch_samples():
    numpy.random.seed(0)
    watch = WriteWatch()
    for program in PROGRAMS:
        seed()
        with watch:
            program()
    for sample in database_samples():
        seed()
        with watch, contextlib.suppress(Exception):
            sample()
    return watch


def _try_out(op, candidates):
    accepted = 0
    for call in candidates.of(op):
        for fact in facts_about(call):
            accepted += fact == ("called", op.name())
            yield fact
        if accepted == _CALLS_ACCEPTED:
            return


def _collect(facts, found):
    for kind, text in found:
        facts[kind].add(text)


def every_overload():
    """All aten overloads the dispatcher has, sorted by name."""
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        namespace, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        if namespace == "aten":
            yield getattr(getattr(torch.ops.aten, base), overload or "default")


def _takes_tensor(op):
    return any("Tensor" in str(argument.type) for argument in op._schema.arguments)


def may_run(op):
    """On tensors that are in the CPU's memory."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return _takes_tensor(op) and any(has_kernel(op.name(), key) for key in _CPU_KERNELS)


# ---- tables: each a set of lines ----------------------------------------------------------------


def undeclared_writes(facts):
    return facts["writes"]


def value_queries(facts):
    """All ops with a tensor argument and a result that is none."""
    return {
        f"{op.name()} {'value' if op.name() in facts['data_numbers'] else 'metadata'}"
        for op in every_overload()
        if _takes_tensor(op) and any("Tensor" not in str(r.type) for r in op._schema.returns)
    }


def dynamic_shapes(facts):
    tagged = {op.name() for op in every_overload() if torch.Tag.dynamic_output_shape in op.tags}
    untagged = {name for name in facts["data_sizes"] - tagged if name.startswith("aten::")}
    return {f"{name} tagged" for name in tagged} | {f"{name} untagged" for name in untagged}


def host_reads(facts):
    return facts["host_reads"]


def not_called(facts):
    """Generated out= forms call the functional form and copy; they are left out."""
    return {
        op.name()
        for op in every_overload()
        if may_run(op) and op.name() not in facts["called"] and torch.Tag.generated not in op.tags
    }


_TABLES = (undeclared_writes, value_queries, dynamic_shapes, host_reads, not_called)


def read_table(path):
    lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    return {line for line in lines if line}


def differences(listed, found, called):
    """What was found and is not listed, and what is listed and, although its op was called here,
    was not found. Of ops that were not called (a GPU's) the names alone are compared."""
    names = {line.split()[0] for line in listed}
    for line in sorted(found ^ listed):
        name = line.split()[0]
        if line in found and (name in called or name not in names):
            yield f"  + {line}    (observed, not in the file)"
        if line in listed and name in called:
            yield f"  - {line}    (in the file, not observed)"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the checked-in tables")
    check = parser.parse_args().check
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # forked processes must not wait for threads they do not have
    facts = observe()
    print(f"{len(facts['called'])} ops were called")
    failed = False
    for table in _TABLES:
        name = f"{table.__name__}.txt"
        found = table(facts)
        if not check:
            print(f"\n{name}", *sorted(found), sep="\n")
            continue
        wrong = list(differences(read_table(_HERE / name), found, facts["called"]))
        print(f"{name}: {len(found)} observed, {len(wrong)} differences", *wrong, sep="\n")
        failed |= bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
