"""Other number formats than float32, beside other engines on this CPU: `./dev bench formats`.

    ./dev bench formats [--only CASE]... [--threads N]... [--rounds N] [--engines A,B]

The same models, turns and errors as `./dev bench mosaic` (benchmarks/mosaic.py), with products in bfloat16: ours by the
option `products`, OpenVINO by its hint of the precision, torch.compile under autocast. mosaic_float32 is ours in float32.
A line per requirement: ours by the fastest of the others, and by our own float32. The case bert_autocast_step, a training
step, is benchmarks/autocast.py: with `--only bert_autocast_step` its options are those of that.
"""

import subprocess
import sys
from pathlib import Path

import mosaic

CASES = ("resnet50", "bert_base", "clip_text", "sd_vae_decoder", "sd_unet")
ENGINES = (mosaic.OURS, "mosaic_float32", "openvino", "torch_compile")
RATIO, OF_FLOAT32 = 0.80, 0.60
STEP = "bert_autocast_step"


class Contest(mosaic.Contest):
    def print_table(self, requirements, full):
        super().print_table(requirements, full)
        times = self.times()
        if full and mosaic.OURS in times and "mosaic_float32" in times:
            requirements.require(f"{self.case.name}, {self.threads} threads: bfloat16 / float32",
                                 times[mosaic.OURS]["least"] / times["mosaic_float32"]["least"], "<=", OF_FLOAT32)


def measure_step(options):
    return subprocess.run([sys.executable, Path(__file__).with_name("autocast.py"), *options]).returncode


def main():
    words = sys.argv[1:]
    only = [value for option, value in zip(words, words[1:]) if option == "--only"]
    if STEP in only and len(only) > 1:
        sys.exit(f"expected {STEP} by itself: its options are others")
    if STEP in only:
        at = words.index(STEP)
        return measure_step(words[:at - 1] + words[at + 1:])
    step = 0 if only else measure_step([])
    mosaic.ENGINES = ENGINES
    mosaic.CASES = tuple(case._replace(ratio=RATIO, compile_seconds=None) for case in mosaic.CASES
                         if case.name in CASES)
    mosaic.Contest = Contest
    mosaic.NAME = "formats"
    return mosaic.main(format=["bf16", "bfloat16"]) or step


if __name__ == "__main__":
    sys.exit(main())
