"""Other number formats than float32, beside other engines on this CPU: `./dev bench formats`.

    ./dev bench formats [--only CASE]... [--threads N]... [--rounds N] [--engines A,B]

The same models, turns and errors as `./dev bench mosaic` (benchmarks/mosaic.py), with products in bfloat16: ours by the
option `products`, OpenVINO by its hint of the precision, torch.compile under autocast. mosaic_float32 is ours in float32.
A line per requirement: ours by the fastest of the others, and by our own float32.
"""

import sys

import mosaic

CASES = ("resnet50", "bert_base", "clip_text", "sd_vae_decoder", "sd_unet")
ENGINES = (mosaic.OURS, "mosaic_float32", "openvino", "torch_compile")
RATIO, OF_FLOAT32 = 0.80, 0.60


class Contest(mosaic.Contest):
    def print_table(self, requirements, full):
        super().print_table(requirements, full)
        times = self.times()
        if full and mosaic.OURS in times and "mosaic_float32" in times:
            requirements.require(f"{self.case.name}, {self.threads} threads: bfloat16 / float32",
                                 times[mosaic.OURS]["least"] / times["mosaic_float32"]["least"], "<=", OF_FLOAT32)


def main():
    mosaic.ENGINES = ENGINES
    mosaic.CASES = tuple(case._replace(ratio=RATIO, compile_seconds=None) for case in mosaic.CASES
                         if case.name in CASES)
    mosaic.Contest = Contest
    mosaic.NAME = "formats"
    return mosaic.main(format=["bf16", "bfloat16"])


if __name__ == "__main__":
    sys.exit(main())
