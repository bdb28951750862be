"""Tokens that `flashlight.generate` gives, beside those of a loop over torch's operators."""

import unittest

import flashlight
import numpy as np
import torch
from torch import nn

VOCABULARY, WIDTH, POSITIONS = 50, 32, 64


class Step(nn.Module):
    """A layer of attention over a cache, which is written in place."""

    def __init__(self, batch=1):
        super().__init__()
        generator = torch.Generator().manual_seed(3)
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        self.head = nn.Linear(WIDTH, VOCABULARY)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.5, generator=generator)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(batch, POSITIONS, WIDTH))
        self.requires_grad_(False)

    def forward(self, tokens, positions):
        x = self.embedding(tokens) + positions[..., None] / POSITIONS
        rows = torch.arange(tokens.shape[0])[:, None]
        self.keys.index_put_((rows, positions), self.k(x))
        self.values.index_put_((rows, positions), self.v(x))
        seen = torch.arange(POSITIONS) <= positions[..., None]
        y = nn.functional.scaled_dot_product_attention(self.q(x), self.keys, self.values, seen)
        return self.head(torch.tanh(x + y))


def loop(step, prompts, count, temperature, top_k, top_p, generator):
    """Each sequence anew for each token, as transformers' logits warpers choose what may be drawn."""
    sequences = [list(one) for one in prompts]
    for _ in range(count):
        rows = []
        for row, sequence in enumerate(sequences):
            tokens = torch.zeros(len(sequences), len(sequence), dtype=torch.int64)
            tokens[row] = torch.tensor(sequence)
            rows.append(step(tokens, torch.arange(len(sequence)).expand_as(tokens))[row, -1])
        logits = torch.stack(rows)
        if temperature == 0:
            drawn = logits.argmax(-1)
        else:
            logits = logits / temperature
            if top_k is not None:
                logits[logits < torch.topk(logits, top_k)[0][:, -1, None]] = -torch.inf
            ascending, order = torch.sort(logits)
            rare = ascending.softmax(-1).cumsum(-1) <= 1 - top_p
            rare[:, -1] = False
            logits[rare.scatter(1, order, rare)] = -torch.inf
            drawn = torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0]
        for sequence, token in zip(sequences, drawn.tolist()):
            sequence.append(token)
    return sequences


def seeded(seed=5):
    return torch.Generator().manual_seed(seed)


class GenerateTest(unittest.TestCase):
    def test_gives_the_tokens_of_a_loop(self):
        prompts = [[3, 1, 4], [1, 5]]
        for temperature, top_k, top_p in ((0, None, 1.0), (1.0, None, 1.0), (0.6, 7, 1.0), (1.3, None, 0.7),
                                          (1.0, 9, 0.8)):
            expected = loop(Step(2), prompts, 15, temperature, top_k, top_p, seeded())
            run = flashlight.generate(Step(2), prompts, max_tokens=15, temperature=temperature, top_k=top_k,
                                      top_p=top_p, generator=seeded())
            streamed = list(run)
            self.assertEqual(run.sequences, expected)
            self.assertEqual([[step[row] for step in streamed] for row in range(2)],
                             [one[len(prompt):] for one, prompt in zip(expected, prompts)])

    def test_of_a_capture_and_of_compiled_code(self):
        expected = loop(Step(), [[7, 2, 9]], 12, 0, None, 1.0, None)[0]
        one, several = torch.tensor([[7]]), torch.tensor([[7, 2, 9]])
        for compiled in (False, True):
            step = Step()
            calls = {}
            for tokens in (one, several):
                captured = flashlight.trace(step, tokens, torch.arange(tokens.shape[1])[None])
                calls[tokens.shape[1]] = captured.compile("mosaic") if compiled else captured
            step.keys.zero_()
            run = flashlight.generate(lambda tokens, positions: calls[tokens.shape[1]](tokens, positions),
                                      torch.tensor([7, 2, 9]), max_tokens=12)
            self.assertEqual([7, 2, 9, *run], expected)

    def test_from_the_default_generator(self):
        torch.manual_seed(11)
        expected = loop(Step(), [[7]], 8, 1.0, None, 1.0, None)
        torch.manual_seed(11)
        run = flashlight.generate(Step(), [7], max_tokens=8, temperature=1.0)
        self.assertEqual([[7, *run]], expected)

    def test_is_interrupted_and_goes_on(self):
        expected = loop(Step(), [[7, 2]], 12, 1.0, None, 1.0, seeded())[0]
        step, calls = Step(), 0

        def interrupted(tokens, positions):
            nonlocal calls
            calls += 1
            if calls == 4:
                raise KeyboardInterrupt
            return step(tokens, positions)

        run = flashlight.generate(interrupted, [7, 2], max_tokens=12, temperature=1.0, generator=seeded())
        with self.assertRaises(KeyboardInterrupt):
            list(run)
        next(run)
        state = run.state()
        on = flashlight.generate(step, state, max_tokens=12, temperature=1.0, generator=seeded(99))
        list(on)
        self.assertEqual(on.sequences, [expected])
        self.assertEqual(on.stop(), "max_tokens")
        state.cached = False
        elsewhere = flashlight.generate(Step(), state, max_tokens=12, temperature=1.0, generator=seeded(99))
        list(elsewhere)
        self.assertEqual(elsewhere.sequences, [expected])

    def test_stops(self):
        expected = loop(Step(), [[7, 2]], 12, 0, None, 1.0, None)[0]
        run = flashlight.generate(Step(), [7, 2], max_tokens=12, stop_tokens=[expected[5]])
        self.assertEqual(list(run), expected[2:expected.index(expected[5], 2) + 1])
        self.assertEqual(run.stop(), "token")
        run = flashlight.generate(Step(), [3] * 60, max_tokens=12, capacity=POSITIONS)
        self.assertEqual(len(list(run)), 5)
        self.assertEqual(run.stop(), "capacity")

    def test_integers_of_numpy_and_torch(self):
        expected = list(flashlight.generate(Step(), [1, 2], max_tokens=3))
        for prompt in (np.array([1, 2]), [np.int64(1), np.int32(2)], [torch.tensor(1), 2]):
            self.assertEqual(list(flashlight.generate(Step(), prompt, max_tokens=3)), expected)
        self.assertEqual(list(flashlight.generate(Step(), np.array([[1, 2]]), max_tokens=3)), [[t] for t in expected])

    def test_wrong_use(self):
        def refused(pattern, step=Step(), prompt=(1, 2), **options):
            with self.assertRaisesRegex(flashlight.Error, pattern):
                list(flashlight.generate(step, prompt, **{"max_tokens": 2, **options}))

        refused("max_tokens: expected at least 1, received 0", max_tokens=0)
        refused("temperature: expected a number from 0 on", temperature=-1.0)
        refused("top_p: expected a probability", top_p=0.0)
        refused("expected a prompt at least", prompt=torch.zeros(0, 3, dtype=torch.int64))
        refused("sequence 0: expected a prompt of a token at least", prompt=[])
        refused("expected token numbers with one or two axes", prompt=torch.ones(3))
        refused("expected token numbers with one or two axes", prompt=torch.ones(3, dtype=torch.bool))
        refused("expected token numbers, received 1.5", prompt=[[1, 1.5]])
        refused("expected a prompt of token numbers, received 'text'", prompt=["text"])
        refused("expected logits of a step, received str", step=lambda tokens, positions: "logits")
        refused("expected logits of a step", step=lambda tokens, positions: torch.zeros(3))
        with self.assertRaises(IndexError):  # of torch, for a position that the cache does not have
            list(flashlight.generate(Step(), [3] * 60, max_tokens=12))


if __name__ == "__main__":
    unittest.main()
