"""Tokens of language models, one after the other.

    for token in flashlight.generate(step, [1, 17, 4], max_tokens=100, temperature=0.8, top_k=40):
        print(text_of(token), end="", flush=True)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence

import torch

from composit import Error

from flashlight import _flashlight

Tokens = Iterable[int]
GenerationState = _flashlight.GenerationState


def generate(step: Callable, prompt: Tokens | Sequence[Tokens] | torch.Tensor | "GenerationState", *, max_tokens: int,
             temperature: float = 0.0, top_k: int | None = None, top_p: float = 1.0, stop_tokens: Tokens = (),
             stop_sequences: Sequence[Tokens] = (), capacity: int | None = None,
             generator: torch.Generator | None = None) -> "Generation":
    """An iterator over the tokens that a language model goes on with. Nothing runs before the first one.

    step: `logits = step(tokens, positions)`, a program, its capture, or compiled code, that keeps what it was given in
    a cache. Tokens and positions are int64 of [sequences, T]; logits are those of the last tokens, [sequences,
    vocabulary], or of all, [sequences, T, vocabulary], which prompts of different lengths need.
    prompt: token numbers, or a list of prompts, or a tensor with one or two axes; or the `state()` of a generation,
    which goes on. The iterator gives a number for one prompt, else a list with one per sequence, None for those that
    have stopped.
    temperature: 0 takes the largest logit; else tokens are drawn from `generator`, or from torch's default one, as
    torch.multinomial draws them from the softmax of the `top_k` largest logits over temperature, of these the fewest
    with a probability of `top_p`.
    stop_tokens, stop_sequences: end a sequence, as its last tokens. max_tokens: of a sequence. capacity: positions of
    the step's cache; a sequence stops where it is full.

    An exception of the step leaves the generation as it was: the next `next()` tries again."""
    options = {"max_tokens": max_tokens, "temperature": temperature, "top_k": top_k, "top_p": top_p,
               "stop_tokens": list(stop_tokens), "stop_sequences": [list(one) for one in stop_sequences],
               "capacity": capacity, "generator": generator}
    return Generation(step, prompt, options)


def _is_token(value) -> bool:
    """True for an integer, of Python, NumPy or torch."""
    if isinstance(value, bool) or getattr(value, "ndim", 0) > 0:
        return False
    try:
        operator.index(value)
        return True
    except TypeError:
        return False


def _tokens(prompt) -> list[int]:
    if isinstance(prompt, (str, bytes)) or not hasattr(prompt, "__iter__") or getattr(prompt, "ndim", 1) == 0:
        raise Error(f"[generate] expected a prompt of token numbers, received {prompt!r}")
    tokens = list(prompt)
    for token in tokens:
        if not _is_token(token):
            raise Error(f"[generate] expected token numbers, received {token!r}")
    return [operator.index(token) for token in tokens]


class Generation:
    """An iterator over tokens: see `generate`."""

    def __init__(self, step: Callable, prompt, options: dict):
        if isinstance(prompt, GenerationState):
            self._single = len(prompt.sequences) == 1
        elif isinstance(prompt, torch.Tensor):
            if prompt.dim() not in (1, 2) or prompt.is_floating_point() or prompt.dtype == torch.bool:
                raise Error(f"[generate] expected token numbers with one or two axes, received {prompt.dtype} of sizes "
                            f"{list(prompt.shape)}")
            self._single = prompt.dim() == 1
            prompt = [prompt.tolist()] if self._single else prompt.tolist()
        else:
            prompt = list(prompt)
            self._single = all(_is_token(one) for one in prompt)
            prompt = [_tokens(prompt)] if self._single else [_tokens(one) for one in prompt]
        self._run = _flashlight.Generation(step, prompt, options)

    def __iter__(self) -> "Generation":
        return self

    def __next__(self) -> int | list[int | None]:
        if self._run.done():
            raise StopIteration
        tokens = self._run.next()
        return tokens[0] if self._single else tokens

    @property
    def sequences(self) -> list[list[int]]:
        """Prompts and what was generated."""
        return self._run.sequences()

    def stop(self, sequence: int = 0) -> str | None:
        """Why a sequence has stopped: "token", "sequence", "max_tokens" or "capacity"; None if it has not."""
        return self._run.stop(sequence)

    def state(self) -> "GenerationState":
        """What `generate` needs to go on from here with the same tokens, as long as the step has its cache. With
        another cache, set `cached` to False: all tokens are given to the step again."""
        return self._run.state()
