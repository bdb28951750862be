"""The library exports what its header declares, and nothing else.

    symbols_test.py LIBRARY HEADER"""

import pathlib
import re
import subprocess
import sys

library, header = sys.argv[1:]
listed = subprocess.run(["nm", "--dynamic", "--defined-only", "--format=posix", library],
                        capture_output=True, text=True, check=True).stdout
symbols = [line.split() for line in listed.splitlines()]
exported = {name.split("@")[0] for name, kind, *_ in symbols if kind == "T"}
others = {f"{kind} {name}" for name, kind, *_ in symbols if kind not in "TA"}
code = re.sub(r"//.*", "", pathlib.Path(header).read_text(encoding="utf-8"))
declared = set(re.findall(r"FLASHLIGHT_C_API[^;]*?\b(flashlight_\w+)\(", code))
versioned = {name for name, kind, *_ in symbols if kind == "T" and not name.endswith("@@FLASHLIGHT_C_1")}
dynamic = subprocess.run(["readelf", "--dynamic", "--wide", library], capture_output=True, text=True,
                         check=True).stdout
soname = re.search(r"\(SONAME\).*\[(.*)\]", dynamic)[1]
mistakes = [
    *(f"declared and not exported: {name}" for name in sorted(declared - exported)),
    *(f"exported and not declared: {name}" for name in sorted(exported - declared)),
    *(f"exported: {one}" for one in sorted(others)),
    *(f"without the version of the interface: {name}" for name in sorted(versioned)),
    *(["expected a library that stays when it is closed"] * ("NODELETE" not in dynamic)),
    *([f"expected the soname libflashlight_c.so.1, received {soname}"] * (soname != "libflashlight_c.so.1")),
]
print(*mistakes, f"{len(exported)} functions", sep="\n")
sys.exit(bool(mistakes) or len(declared) < 30)
