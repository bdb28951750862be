"""Runs bench_capture, then Python's own ways to a graph on the same models, and prints both as one table.

    ./dev bench capture [--rounds N] [--only NAME] [--no-peers]

The peers are torch.export and torch.jit.trace on the Hugging Face and diffusers originals, built from configurations;
each is measured beside an eager run of the same model in the same rounds. Their raw timings go to
benchmarks/results/capture_peers.json.
"""

import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.filterwarnings("ignore")

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build/release/benchmarks/bench_capture"
RESULTS = ROOT / "benchmarks/results"


def seconds(work):
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def resnet50():
    import torch
    from transformers import ResNetConfig, ResNetForImageClassification

    return ResNetForImageClassification(ResNetConfig()), (torch.randn(1, 3, 224, 224),), {}


def bert_base():
    import torch
    from transformers import BertConfig, BertModel

    mask = torch.ones(1, 128, dtype=torch.long)
    mask[:, 96:] = 0
    return BertModel(BertConfig()), (torch.randint(0, 30522, (1, 128)), mask), {}


def sd_unet():
    import torch
    from diffusers import UNet2DConditionModel

    unet = UNet2DConditionModel(cross_attention_dim=768)
    return unet, (torch.randn(1, 4, 32, 32), torch.tensor([500]), torch.randn(1, 77, 768)), {"return_dict": False}


def sd_vae_decoder():
    import torch
    from diffusers import AutoencoderKL

    vae = AutoencoderKL(block_out_channels=(128, 256, 512, 512), latent_channels=4, layers_per_block=2,
                        down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4)

    class Decoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.vae = vae

        def forward(self, latents):
            return self.vae.decode(latents, return_dict=False)[0]

    return Decoder(), (torch.randn(1, 4, 32, 32),), {}


def measure_peer(name, make, rounds):
    """Times in seconds by what was measured; a peer that cannot do the model is reported as its error."""
    import torch

    torch.manual_seed(0)
    model, arguments, keywords = make()
    model.eval()
    times = {"eager": [], "torch.export": [], "export replay": [], "torch.jit.trace": [], "jit replay": []}
    failed = {}
    with torch.no_grad():
        model(*arguments, **keywords)
        for _ in range(rounds):
            times["eager"].append(seconds(lambda: model(*arguments, **keywords))[0])
            capture_and_replay(times, failed, "torch.export", "export replay", arguments, keywords,
                               lambda: torch.export.export(model, arguments, keywords, strict=False),
                               lambda exported: exported.module()(*arguments, **keywords))
            capture_and_replay(times, failed, "torch.jit.trace", "jit replay", arguments, keywords,
                               lambda: torch.jit.trace(first_result_of(model, keywords), arguments,
                                                       check_trace=False),
                               lambda traced: traced(*arguments))
    return times, failed


def first_result_of(model, keywords):
    """torch.jit.trace returns tensors and no classes of results, and knows parameters of a module only: in a lambda
    around it they would be constants, which must not require gradients."""
    import torch

    class First(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *arguments):
            result = self.model(*arguments, **keywords)
            return result if isinstance(result, torch.Tensor) else result[0]

    return First().eval()


def capture_and_replay(times, failed, capture_name, replay_name, arguments, keywords, capture, replay):
    if capture_name in failed:
        return
    try:
        elapsed, captured = seconds(capture)
        replay(captured)  # the first run of a traced graph compiles
        times[capture_name].append(elapsed)
        times[replay_name].append(seconds(lambda: replay(captured))[0])
    except Exception as error:  # a peer's failure is a result, not ours
        failed[capture_name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"


def ratio(times, name):
    pairs = list(zip(times.get(name, []), times.get("eager", [])))
    return f"{statistics.median(a / b for a, b in pairs):.3f}" if pairs else "failed"


def ours(name):
    path = RESULTS / "capture.json"
    if not path.exists():
        return {}
    rounds = json.loads(path.read_text()).get("rounds", {}).get(name, {})
    return {"eager": rounds.get("eager", []), "capture": rounds.get("capture", []), "replay": rounds.get("replay", [])}


def main():
    arguments = sys.argv[1:]
    peers = "--no-peers" not in arguments
    arguments = [argument for argument in arguments if argument != "--no-peers"]
    status = subprocess.run([str(PROGRAM), *arguments], cwd=ROOT, check=False).returncode
    if not peers:
        return status
    only = arguments[arguments.index("--only") + 1] if "--only" in arguments else None
    raw = {}
    print(f"\n{'as a multiple of an eager run':32}{'capture':>10}{'export':>10}{'jit.trace':>10}"
          f"{'replay':>10}{'export':>10}{'jit':>10}")
    for make in (resnet50, bert_base, sd_unet, sd_vae_decoder):
        name = make.__name__
        if only not in (None, name):
            continue
        times, failed = measure_peer(name, make, rounds=3)
        raw[name] = {"rounds": times, "failed": failed}
        mine = ours(name)
        columns = [ratio(mine, "capture"), ratio(times, "torch.export"), ratio(times, "torch.jit.trace"),
                   ratio(mine, "replay"), ratio(times, "export replay"), ratio(times, "jit replay")]
        print(f"{name:32}" + "".join(f"{column:>10}" for column in columns), flush=True)
        for peer, error in failed.items():
            print(f"    {peer}: {error}")
    (RESULTS / "capture_peers.json").write_text(json.dumps(raw, indent=1) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
