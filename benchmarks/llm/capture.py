"""A step of decoding as a saved capture: what ./dev bench llm gives to bench_mosaic.

    capture.py PACKAGES MODEL FORMAT POSITION BATCH TOKENS FOLDER      FORMAT: f32 or bf16
"""

import os
import sys


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
        flashlight.trace(step, torch.full((batch, tokens), 7)).save(folder)


if __name__ == "__main__":
    main()
