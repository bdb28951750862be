"""What LibTorch draws, for runtime_random_test.cpp:

    python3 tests/flashlight/cpp/make_torch_draws.py > tests/flashlight/cpp/torch_draws.inc

A line per dtype, count and seed: draws from one generator, one after the other, each as the sum of
its elements' bits (as doubles), the i-th times i + 1.
"""
import struct

import torch

SIZES = {
    torch.float32: (1, 15, 16, 17, 1000),
    torch.float64: (1, 15, 16, 17, 1000),
    torch.float16: (7, 39),
    torch.bfloat16: (7, 39),
}
SEEDS = (0, 42, 12345678901234)


def digest(tensor):
    total = 0
    for i, value in enumerate(tensor.double().tolist()):
        bits, = struct.unpack("<Q", struct.pack("<d", value))
        total += (i + 1) * bits
    return total % 2**64


def draws(count, dtype):
    def empty(other=dtype):
        return torch.empty(count, dtype=other)

    yield empty().uniform_()
    yield empty().uniform_(-0.3, 1.7)
    yield empty().normal_()
    yield empty().normal_(0.3, 1.7)
    yield empty().exponential_(1.3)
    yield empty().cauchy_(0.5, 2)
    yield empty().log_normal_(0.5, 0.25)
    yield empty().geometric_(0.1)
    yield empty().bernoulli_(0.3)
    yield torch.bernoulli(torch.linspace(0, 1, count, dtype=dtype))
    if dtype in (torch.float32, torch.float64):
        weights = torch.arange(count, dtype=dtype) % 7 + 0.25
        yield torch.multinomial(weights, 30, replacement=True)
    yield torch.randint(-5, 100, (count,), dtype=dtype)
    yield torch.randint(-5, 2**40, (count,))
    yield empty(torch.int32).random_()
    yield empty(torch.int64).random_()
    yield empty(torch.uint8).random_()
    yield empty(torch.bool).random_()
    yield empty().random_()
    yield torch.randperm(count)
    yield torch.rand(count, dtype=dtype)


def main():
    print(f"// Made by make_torch_draws.py with torch {torch.__version__}.")
    names = {torch.float32: "float", torch.float64: "double"}
    for dtype, sizes in SIZES.items():
        name = names.get(dtype, "fl::" + str(dtype).removeprefix("torch."))
        for count in sizes:
            for seed in SEEDS:
                torch.manual_seed(seed)
                numbers = [f"{digest(x):#018x}" for x in draws(count, dtype)]
                lines = [", ".join(numbers[i:i + 4]) for i in range(0, len(numbers), 4)]
                print(f"DRAWS({name}, {count}, {seed},\n      " + ",\n      ".join(lines) + ")")


main()
