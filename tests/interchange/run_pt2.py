"""Runs programs that torch.export reads on their own example arguments, twice.

    run_pt2.py FOLDER          FOLDER/NAME.pt2 -> FOLDER/NAME.safetensors, or FOLDER/NAME.error
"""

import io
import logging
import pathlib
import sys

import torch
from safetensors.torch import save_file
from torch.utils import _pytree


def run(file):
    program = torch.export.load(file)
    module = program.module()
    arguments, keywords = program.example_inputs
    results = {}
    for call in range(2):
        for i, value in enumerate(_pytree.tree_leaves(module(*arguments, **keywords))):
            if value is not None:
                results[f"{call}.{i:03}"] = value.detach().contiguous().clone()
    return results


# What torch.export cannot read, it says in its log alone.
said = io.StringIO()
logging.getLogger("torch.export").addHandler(logging.StreamHandler(said))
torch.set_grad_enabled(False)
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.pt2")):
    try:
        save_file(run(path), path.with_suffix(".safetensors"))
    except Exception as error:
        path.with_suffix(".error").write_text(f"{type(error).__name__}: {error}\n"
                                             + said.getvalue())
