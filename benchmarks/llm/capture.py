"""A step of decoding as a saved capture: what ./dev bench llm gives to bench_mosaic.

    capture.py PACKAGES MODEL FORMAT POSITION BATCH TOKENS FOLDER      FORMAT: f32, bf16, int8 or int4

Formats of few bits are those of the weights of products, in a program in bfloat16: int8 has a scale for each output,
int4 one for each 32 inputs, as the peers' have. Scales are float16, as llama.cpp's are.
"""

import os
import sys

QUANTIZED = {"int8": {"weights": "int8"}, "int4": {"weights": "int4", "group": 32}}


def main():
    packages, model, format, *numbers, folder = sys.argv[1:]
    os.environ["FLASHLIGHT_SEEN_ONCE"] = "1"  # one run: a second one would write the same cache
    sys.path.insert(0, packages)
    import flashlight
    import torch

    import models

    position, batch, tokens = map(int, numbers)
    step = models.Step(models.CONFIGURATIONS[model], batch, position, tokens)
    step = step if format == "f32" else step.bfloat16()
    with torch.no_grad():
        captured = flashlight.trace(step, torch.full((batch, tokens), 7))
    if format in QUANTIZED:
        captured, _ = captured.quantize(**QUANTIZED[format], scales="float16", measure=False)
    captured.save(folder)


if __name__ == "__main__":
    main()
