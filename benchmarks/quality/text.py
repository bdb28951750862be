"""Text that Debian ships, as bytes: what `./dev bench quality` trains with and tests on.

    training, held_out = read(megabytes=12)      # uint8
    sample(held_out, count, length, seed)        # int64 [count, length]

Whole files are held out, one of ten by a hash of their names, so that no sentence of them was seen.
"""

import glob
import gzip
import hashlib
from pathlib import Path

import torch

PATTERNS = ("/usr/share/vim/vim*/doc/*.txt", "/usr/share/perl/*/pod/*.pod", "/usr/share/doc/*/README*",
            "/usr/share/doc/*/NEWS*", "/usr/share/man/man[1-8]/*.gz", "/usr/share/doc/*/copyright")
LONGEST = 1 << 18  # bytes of a file that are read


def bytes_of(path):
    raw = Path(path).read_bytes()
    if path.endswith(".gz"):
        raw = gzip.decompress(raw)
    return raw[:LONGEST]


def read(megabytes):
    parts, sizes = {True: [], False: []}, {True: 0, False: 0}
    limits = {True: megabytes * 1_000_000 // 10, False: megabytes * 1_000_000}
    seen = set()
    for pattern in PATTERNS:
        for path in sorted(glob.glob(pattern)):
            held_out = hashlib.sha256(Path(path).name.encode()).digest()[0] % 10 == 0
            if sizes[held_out] >= limits[held_out] or not Path(path).is_file():
                continue
            raw = bytes_of(path)
            digest = hashlib.sha256(raw).digest()
            if digest in seen:  # of another package
                continue
            seen.add(digest)
            parts[held_out].append(raw)
            sizes[held_out] += len(raw)
    if sizes[False] < 2_000_000 or sizes[True] < 200_000:
        raise SystemExit("too little text: install packages vim-runtime, perl-doc or manpages")
    return tuple(torch.frombuffer(bytearray(b"".join(parts[held_out])), dtype=torch.uint8)
                 for held_out in (False, True))


def sample(text, count, length, seed):
    generator = torch.Generator().manual_seed(seed)
    starts = torch.randint(0, len(text) - length, (count, 1), generator=generator)
    return text[starts + torch.arange(length)].long()
