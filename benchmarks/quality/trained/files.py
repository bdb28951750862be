"""Magika: what a file is, by its first and last 1024 bytes.

Files of this machine are labelled by their names' endings. An ending stands for the labels that files with it may
have: a header may be C or C++. At most `PER_LABEL` files of an ending, and few of one folder, so that no package
decides the result.
"""

import hashlib
import json
import os
from collections import Counter
from pathlib import Path

import numpy as np

FOLDER = "magika/models/standard_v3_3"
MODEL = f"{FOLDER}/model.onnx"
BATCH = 32
PER_LABEL, PER_FOLDER = 40, 2
EXAMPLES = 4  # batches, of other files than the test's
GROUPS = (32, 128)  # of weights of 4 bits
ODD = ("jax2tf_get_logits_/Const:0",)  # products whose 257 inputs no group divides
LAYERS = "0.75 million weights: a convolution, two products"

LABELS = {ending: set(labels.split("|")) for ending, labels in (pair.split(":") for pair in (
    "py:python pyi:python pyc:pythonbytecode h:c|cpp hpp:cpp|c cpp:cpp cc:cpp c:c gz:gzip png:png yaml:yaml yml:yaml "
    "rst:rst xml:xml json:json|jsonl pl:perl pm:perl js:javascript cmake:cmake svg:svg|xml md:markdown html:html "
    "jar:jar|zip php:php sql:sql css:css so:elf sh:shell csv:csv tcl:tcl ttf:ttf npz:npz|zip npy:npy gif:gif jpg:jpeg "
    "toml:toml bat:batch ps1:powershell proto:proto pdf:pdf bz2:bzip xz:xz wav:wav exe:pebin ps:postscript m4:m4 "
    "f90:fortran f:fortran po:po java:java rs:rust go:go lua:lua rb:ruby awk:awk el:lisp pkl:pickle ico:ico "
    "woff:woff woff2:woff2 diff:diff patch:diff ipynb:ipynb|json zip:zip class:javabytecode ts:typescript scss:scss "
    "pem:pem").split())}


def features(path):
    """What the package's own code makes of a file: both ends without white space, filled up with 256."""
    with open(path, "rb") as file:
        begin = file.read(4096).lstrip()[:1024]
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - 4096))
        end = file.read(4096).rstrip()[-1024:]
    row = np.full(2048, 256, np.int32)
    row[:len(begin)] = list(begin)
    row[2048 - len(end):] = list(end)
    return row if len(begin) >= 8 else None


def candidates(roots):
    by_ending = {ending: [] for ending in LABELS}
    for root in roots:
        for folder, folders, names in os.walk(root):
            folders.sort()
            for name in sorted(names):
                ending = name.rpartition(".")[2].lower()
                path = f"{folder}/{name}"
                if ending in by_ending and os.path.isfile(path) and not os.path.islink(path):
                    by_ending[ending].append(path)
    return by_ending


def prepare(home, roots):
    """Inputs and labels: of the test by `LABELS`, and other files to calibrate with."""
    space = json.loads((home / FOLDER / "config.min.json").read_text())["target_labels_space"]
    key = lambda path: hashlib.sha256(Path(path).name.encode()).hexdigest()
    seen, rows, right, others = set(), [], [], []
    for ending, paths in candidates(roots).items():
        count, of_folder = 0, Counter()
        for path in sorted(paths, key=key):
            if count == PER_LABEL + EXAMPLES or of_folder[os.path.dirname(path)] == PER_FOLDER:
                continue
            row = features(path)
            if row is None or row.tobytes() in seen:
                continue
            seen.add(row.tobytes())
            of_folder[os.path.dirname(path)] += 1
            count += 1
            if count <= EXAMPLES:
                others.append(row)
            else:
                rows.append(row)
                right.append([label in LABELS[ending] for label in space])
    whole = len(rows) // BATCH * BATCH  # the model's sizes are numbers
    order = np.random.default_rng(0).permutation(len(rows))[:whole]
    mixed = np.random.default_rng(1).permutation(len(others))[:EXAMPLES * BATCH]
    return {"inputs": np.stack(rows)[order], "right": np.array(right)[order], "examples": np.stack(others)[mixed]}


def sizes(data):
    return {"unk__214": BATCH}


def examples(call, data):
    return [(batch,) for batch in np.split(data["examples"], EXAMPLES)]


def run(call, data):
    batches = np.split(data["inputs"], len(data["inputs"]) // BATCH)
    return np.concatenate([call(batch)[0] for batch in batches])


def decisions(outputs):
    return outputs.argmax(1)


def score(outputs, data):
    """Per file: 1 where the label is right."""
    return data["right"][np.arange(len(outputs)), decisions(outputs)].astype(float)
