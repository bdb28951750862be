"""The problems of benchmarks/cpp/subjects.cpp for Python: the same numbers, sizes and names.

    serve(lambda problem: [("", objective, gradient)])
"""

import json
import math
import sys
import time
from typing import Callable, Iterable, NamedTuple, Sequence

import numpy as np

WISHART_GAMMA, WISHART_M = 1.5, 2


class Problem(NamedTuple):
    kind: str
    name: str
    inputs: list[np.ndarray]


def splitmix64(seed: int, count: int) -> np.ndarray:
    """Numbers 0 .. count - 1 of SplitMix64; see examples/objectives/uniform.h."""
    z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def uniform(sizes: Sequence[int], seed: int, low=0.0, high=1.0, dtype=np.float64) -> np.ndarray:
    unit = np.ldexp((splitmix64(seed, math.prod(sizes)) >> np.uint64(11)).astype(np.float64), -53)
    return (low + (high - low) * unit).reshape(sizes).astype(dtype)


def integers(sizes: Sequence[int], seed: int, limit: int) -> np.ndarray:
    numbers = splitmix64(seed, math.prod(sizes)) % np.uint64(limit)
    return numbers.reshape(sizes).astype(np.int64)


def gmm(d: int, k: int, n: int) -> Problem:
    return Problem(
        "gmm",
        f"gmm_d{d}_k{k}_n{n}",
        [
            uniform((k,), 1),
            uniform((k, d), 2),
            uniform((k, d * (d + 1) // 2), 3, -0.125, 0.125),
            uniform((n, d), 4),
        ],
    )


def gmm_constant(d: int, k: int, n: int) -> float:
    """What does not depend on the parameters; see gmm_constant in examples/objectives/gmm.h."""
    degrees = d + WISHART_M + 1
    log_gamma = 0.25 * d * (d - 1) * math.log(math.pi) + sum(
        math.lgamma(0.5 * (degrees - j)) for j in range(d)
    )
    prior = degrees * d * (math.log(WISHART_GAMMA) - 0.5 * math.log(2)) - log_gamma
    return -0.5 * n * d * math.log(2 * math.pi) - k * prior


def places_in_triangle(d: int) -> np.ndarray:
    """Where element [i, j] of a lower triangle stands in {diagonal, below by columns, 0}."""
    places = np.full((d, d), d * (d + 1) // 2)
    places[np.arange(d), np.arange(d)] = np.arange(d)
    columns, rows = np.triu_indices(d, 1)
    places[rows, columns] = d + np.arange(len(rows))
    return places


def lstm(layers: int, characters: int, hidden: int) -> Problem:
    return Problem(
        "lstm",
        f"lstm_l{layers}_c{characters}_h{hidden}",
        [
            uniform((layers, 8, hidden), 11, -1),
            uniform((3, hidden), 12, -1),
            uniform((layers, 2, hidden), 13),
            uniform((characters, hidden), 14),
        ],
    )


def bundle_adjustment(cameras: int, points: int, observations: int) -> Problem:
    return Problem(
        "bundle_adjustment",
        f"bundle_adjustment_n{cameras}_m{points}_p{observations}",
        [
            uniform((cameras, 11), 21, 0, 0.25),
            uniform((points, 3), 22, 2, 3),
            uniform((observations,), 23),
            integers((observations,), 24, cameras),
            integers((observations,), 25, points),
            uniform((observations, 2), 26, -1),
        ],
    )


BONES, POSE_PARAMETERS = 22, 26


def parent_of_bone(bone: int) -> int:
    return 0 if bone % 4 == 1 else bone - 1


def angles_of_bones() -> tuple[list[int], list[int]]:
    """Which numbers of the pose bend and spread each bone; POSE_PARAMETERS if none."""
    bend, spread = [POSE_PARAMETERS] * BONES, [POSE_PARAMETERS] * BONES
    for finger in range(5):
        bone, angle = 2 + 4 * finger, 6 + 4 * finger
        bend[bone], spread[bone] = angle, angle + 1
        bend[bone + 1], bend[bone + 2] = angle + 2, angle + 3
    return bend, spread


def translations(offsets: np.ndarray) -> np.ndarray:
    matrices = np.tile(np.eye(4), (BONES, 1, 1))
    matrices[:, :3, 3] = offsets
    return matrices


def hand_tracking(vertices: int, points: int) -> Problem:
    relative = uniform((BONES, 3), 52, -0.5, 0.5)
    absolute = relative.copy()
    for bone in range(1, BONES):
        absolute[bone] += absolute[parent_of_bone(bone)]
    return Problem(
        "hand_tracking",
        f"hand_tracking_v{vertices}_n{points}",
        [
            uniform((POSE_PARAMETERS,), 51, -0.5, 0.5),
            translations(relative),
            translations(-absolute),
            uniform((vertices, 3), 53, -1),
            uniform((vertices, BONES), 54, 0, 0.0625),
            integers((points,), 55, vertices),
            uniform((points, 3), 56, -1),
        ],
    )


def sqrl(batch: int, rows: int, columns: int) -> Problem:
    name = f"sqrl_b{batch}_{rows}x{columns}" if batch else f"sqrl_{rows}x{columns}"
    shape = (batch,) if batch else ()
    x = uniform((*shape, rows, columns), 31, -1, dtype=np.float32)
    return Problem("sqrl", name, [x, uniform(shape, 32, dtype=np.float32)])


def activation(kind: str, n: int) -> Problem:
    x = uniform((n,), 41, -2, 2, dtype=np.float32)
    return Problem(kind, f"{kind}_{n}", [x, uniform((n,), 42, dtype=np.float32)])


def problems() -> list[Problem]:
    """Those of measured_sizes()."""
    return [
        gmm(64, 200, 1000),
        gmm(64, 200, 10000),
        lstm(2, 1024, 14),
        bundle_adjustment(49, 7776, 31843),
        hand_tracking(544, 192),
        sqrl(0, 16, 16),
        sqrl(1000, 16, 16),
        activation("relu3", 2**20),
        activation("gelu", 2**20),
    ]


def seconds(run: Callable, calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


def checksum(arrays: Sequence) -> float:
    """The sum of the absolute values of all elements."""
    return float(sum(np.abs(np.asarray(array, np.float64)).sum() for array in arrays))


# A way of writing a problem: what follows "torch" or "jax" in its name, and two functions without
# arguments that return the arrays which the graphs of those names do.
Way = tuple[str, Callable, Callable]


def serve(ways: Callable[[Problem], Iterable[Way]]) -> None:
    """Does what benchmarks/cpp.py asks for on standard input; a line of JSON for each of its lines."""
    runs = {}
    for line in sys.stdin:
        command, *arguments = line.split()
        answer = None
        if command == "open":
            problem = next(p for p in problems() if p.name == arguments[0])
            runs = {way: (objective, gradient) for way, objective, gradient in ways(problem)}
            answer = {way: [checksum(run()) for run in both] for way, both in runs.items()}
        if command == "time":  # a way, 0 or 1: a call, in a round of a millisecond
            way, which = json.loads(" ".join(arguments))
            run = runs[way][which]
            answer = seconds(run, min(max(int(1e-3 / seconds(run, 1)), 1), 10000))
        print(json.dumps(answer), flush=True)
