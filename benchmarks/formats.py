"""Other number formats than float32, beside other engines on this CPU: `./dev bench formats`.

    ./dev bench formats [--format bf16|int8] [--only CASE]... [--threads N]... [--rounds N] [--engines A,B]

The same models, turns and errors as `./dev bench mosaic` (benchmarks/mosaic.py). With --format bf16, which is the
default, products are in bfloat16: ours by the option `products`, OpenVINO by its hint of the precision, torch.compile
under autocast. Of convolutional networks, what lies in memory between kernels is bfloat16 in ours, too (the option
`values`), as in OpenVINO's; layers of tokens add up too many small differences for that. With --format int8, weights
and what they are multiplied with are int8, calibrated with the example: ours by `flashlight quantize`
(mosaic_by_token: with a scale for each row), OpenVINO's by nncf (openvino_bf16: with the rest in bfloat16),
onnxruntime's by its own tools. mosaic_float32 is ours in float32. Errors are those of the format, too: results are
compared with float64's of the model as it was.
A line per requirement: ours by the fastest of the others, and by our own float32.
The case bert_autocast_step of bf16, a training step, is benchmarks/autocast.py: with `--only bert_autocast_step` its
options are those of that.
"""

import subprocess
import sys
from pathlib import Path

import mosaic

CASES = ("resnet50", "bert_base", "clip_text", "sd_vae_decoder", "sd_unet")
ENGINES = {"bf16": (mosaic.OURS, "mosaic_float32", "openvino", "torch_compile"),
           "int8": (mosaic.OURS, "mosaic_by_token", "mosaic_float32", "openvino", "openvino_bf16", "onnxruntime")}
PRODUCTS = {"bf16": ["bfloat16"], "int8": []}  # of ours
ENDINGS = {"bf16": {}, "int8": {mosaic.OURS: ".calibrated", "mosaic_by_token": ".by_token"}}
TOKENS = ("bert_base", "clip_text")  # whose layers have rows of tokens
RATIO = {"bf16": 0.80, "int8": 0.90}  # ours / the fastest of the others
OF_FLOAT32 = {"bf16": 0.60, "int8": 0.45}
STEP = "bert_autocast_step"


class Contest(mosaic.Contest):
    format = "bf16"

    def print_table(self, requirements, full):
        super().print_table(requirements, full)
        times = self.times()
        if full and mosaic.OURS in times and "mosaic_float32" in times:
            requirements.require(f"{self.case.name}, {self.threads} threads: {self.format} / float32",
                                 times[mosaic.OURS]["least"] / times["mosaic_float32"]["least"], "<=",
                                 OF_FLOAT32[self.format])


class Case(mosaic.Case):
    def engines(self, options):
        return [engine for engine in super().engines(options) if engine != "mosaic_by_token" or self.name in TOKENS]

    def formats(self, options):
        return options.format[1:] * (1 if self.name in TOKENS else 2)


def quantized(case, options, make_files=mosaic.make_files):
    """The files of a case, and its captures with integers, which are made of that in float32."""
    make_files(case, options)
    for ending in [mosaic.CAPTURES[engine] for engine in case.engines(options) if engine in mosaic.CAPTURES]:
        capture, program = mosaic.FILES / case.name, options.build / "frontends/cli/flashlight"
        folder = capture.with_name(capture.name + ending)
        if not mosaic.newer(folder / "graph.txt", [capture / "graph.txt", program]):
            print(f"quantizing {folder.name}", file=sys.stderr)
            # As nncf's convolutional networks, whose residuals are bytes.
            readers = ["--all-readers"] if case.name not in TOKENS else []
            subprocess.run([program, "quantize", capture, "-o", folder, "--weights", "int8", "--activations",
                            ending[1:], "--unmeasured", *readers], check=True, stdout=subprocess.DEVNULL)


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
    format = "bf16"
    if "--format" in sys.argv:
        at = sys.argv.index("--format")
        format = sys.argv[at + 1] if at + 1 < len(sys.argv) else ""
        if format not in ENGINES:
            sys.exit(f"--format: expected {' or '.join(ENGINES)}, received '{format}'")
        del sys.argv[at:at + 2]
    step = 0 if only or format != "bf16" else measure_step([])
    mosaic.ENGINES = ENGINES[format]
    mosaic.CASES = tuple(Case(case.name, case.model, RATIO[format]) for case in mosaic.CASES if case.name in CASES)
    mosaic.CAPTURES = ENDINGS[format]
    mosaic.Contest, Contest.format = Contest, format
    mosaic.make_files = quantized
    mosaic.NAME = "formats" if format == "bf16" else f"formats_{format}"
    return mosaic.main(format=[format, *PRODUCTS[format]]) or step


if __name__ == "__main__":
    sys.exit(main())
