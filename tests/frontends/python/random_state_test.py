"""States of generators that a program reads and sets again: fork_rng, checkpoints, by hand."""

import sys
import pathlib
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import no_looks  # before flashlight
import torch
from torch.utils.checkpoint import checkpoint

import flashlight
from agreement import leaves, same_bits

SEEDS = (7, 20, 31)  # the first one is the capture's, too


def seed(number, generators):
    """Every other time the generators have drawn before."""
    for generator in (torch.default_generator, *generators):
        generator.manual_seed(number)
        if number % 2 == 0:
            torch.randn(17, generator=generator)


def states(generators):
    return [g.get_state() for g in (torch.default_generator, *generators)]


class RandomState(unittest.TestCase):
    def expect_replays(self, program, *inputs, generators=()):
        """Replays and eager runs from the same seeds: results and the generators' states afterwards
        are the same bits."""
        seed(SEEDS[0], generators)
        captured = flashlight.trace(program, *inputs)
        saved = self.loaded(captured) if not generators else captured
        for number in SEEDS:
            seed(number, generators)
            expected = program(*inputs)
            after = states(generators)
            for replay in (captured, saved):
                seed(number, generators)
                self.assertTrue(same_bits(replay(*inputs), expected), f"{number}\n{captured}")
                self.assertTrue(same_bits(states(generators), after), f"{number}\n{captured}")
        report = captured.check(*inputs)
        self.assertTrue(report, str(report))
        return captured

    @staticmethod
    def loaded(captured):
        with tempfile.TemporaryDirectory() as folder:
            captured.save(folder + "/capture")
            return flashlight.load(folder + "/capture")

    x = torch.ones(8)

    def test_fork_rng_around_draws(self):
        def program(x):
            with torch.random.fork_rng():
                noise = torch.randn(5), torch.rand_like(x)
            return noise, torch.randn(3), torch.nn.functional.dropout(x)

        captured = self.expect_replays(program, self.x)
        self.assertNotIn("set_generator_state(state", str(captured.graph))

    def test_fork_rng_at_the_end(self):
        def program(x):
            a = torch.rand(2)
            with torch.random.fork_rng():
                return a, torch.randn(700) + x[0]

        self.expect_replays(program, self.x)

    def test_seeds_inside(self):
        for number in (7, 9):  # also the one that was given before the capture
            def program(x):
                first = torch.rand(3)
                with torch.random.fork_rng():
                    torch.manual_seed(number)
                    inside = torch.rand(3)
                last = torch.rand(3)
                torch.manual_seed(number)
                return first, inside, last, torch.rand(3) + x[0]

            self.expect_replays(program, self.x)

    def test_nested_forks(self):
        def program(x):
            drawn = [torch.rand(1)]
            with torch.random.fork_rng():
                drawn.append(torch.rand(2))
                with torch.random.fork_rng():
                    torch.manual_seed(3)
                    drawn.append(torch.nn.functional.dropout(x))
                drawn.append(torch.rand(2))
            return drawn + [torch.rand(2)]

        self.expect_replays(program, self.x)

    def test_read_in_the_run_and_set_after_unrelated_draws(self):
        def program(x):
            begin, a = torch.get_rng_state(), torch.randn(5)
            middle, b = torch.get_rng_state(), torch.bernoulli(torch.sigmoid(x))
            c = torch.randperm(6)
            torch.set_rng_state(middle)
            again = torch.bernoulli(torch.sigmoid(x))
            torch.set_rng_state(begin)
            return a, b, c, again, torch.randn(5)

        self.expect_replays(program, self.x)

    def test_set_twice(self):
        def program(x):
            begin, a = torch.get_rng_state(), torch.rand(4)
            torch.set_rng_state(begin)
            b = torch.rand(2)
            torch.set_rng_state(begin)
            return a, b, torch.rand(4) + x[0]

        self.expect_replays(program, self.x)

    def test_through_a_copy(self):
        def program(x):
            copy, a = torch.get_rng_state().clone(), torch.rand(4)
            torch.set_rng_state(copy)
            return a, torch.rand(4) + x[0]

        self.expect_replays(program, self.x)

    def test_a_generator_of_the_program(self):
        generator = torch.Generator()

        def program(x):
            begin = generator.get_state()
            a, middle = torch.rand(3, generator=generator), generator.get_state()
            b = torch.empty(3).normal_(generator=generator)
            generator.set_state(middle)
            c = torch.rand(3, generator=generator)
            generator.set_state(begin)
            return a, b, c, torch.rand(2, generator=generator) + x[0], torch.rand(2)

        self.expect_replays(program, self.x, generators=[generator])

    def test_a_generator_that_is_seeded_or_set_before_it_draws(self):
        generator = torch.Generator()

        def program(x):
            begin = generator.get_state()
            generator.manual_seed(11)
            a = torch.rand(3, generator=generator)
            generator.set_state(begin)
            b = torch.rand(3, generator=generator)
            generator.manual_seed(7)  # as the caller did
            return a, b, torch.rand(3, generator=generator) + x[0]

        self.expect_replays(program, self.x, generators=[generator])

    def test_a_generator_of_a_module(self):
        class Noise(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.generator = torch.Generator()

            def forward(self, x):
                self.generator.manual_seed(3)
                return x + torch.randn(x.shape, generator=self.generator)

        noise = torch.nn.Sequential(Noise())
        self.expect_replays(noise, self.x, generators=[noise[0].generator])

    def test_a_generator_made_from_a_state(self):
        def program(x):
            a = torch.rand(3)
            own = torch.Generator()
            own.set_state(torch.get_rng_state())
            return a, torch.rand(3, generator=own), torch.rand(3) + x[0]

        self.expect_replays(program, self.x)

    def test_the_state_as_result(self):
        def program(x):
            return torch.get_rng_state(), torch.rand(3) + x[0], torch.get_rng_state()

        self.expect_replays(program, self.x)

    def test_what_has_no_code_is_named(self):
        def program(x):
            with torch.random.fork_rng():
                a = torch.rand(8)
            return a + x, torch.rand(8)

        captured = flashlight.trace(program, self.x)
        for backend in ("cpp", "mosaic"):
            with self.assertRaisesRegex(flashlight.Error, "generator_state"):
                captured.compile(backend)(self.x)


class Block(torch.nn.Module):
    def __init__(self, last):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.norm = torch.nn.LayerNorm(8)
        self.dropout = torch.nn.Dropout(0.5)
        self.last = last
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        x = self.last(self.norm(self.dropout(torch.relu(self.linear(x)))))
        self.calls += 1
        return x


LASTS = {
    "dropout": lambda: torch.nn.Dropout(0.25),
    "relu": torch.nn.ReLU,  # its result is what autograd saves last
    "relu_": lambda: torch.nn.ReLU(inplace=True),
    "linear": lambda: torch.nn.Linear(8, 8),
    "tanh": torch.nn.Tanh,
    "softmax": lambda: torch.nn.Softmax(-1),
    "norm": lambda: torch.nn.BatchNorm1d(8),
}


class Checkpoint(unittest.TestCase):
    def train(self, reentrant, last, optimizer=torch.optim.SGD):
        torch.manual_seed(1)
        model = torch.nn.ModuleList([Block(LASTS[last]()) for _ in range(3)])
        head = torch.nn.Linear(8, 1)
        everything = torch.nn.ModuleList([model, head])
        step_of = optimizer(everything.parameters(), lr=0.1)

        def step(x):
            step_of.zero_grad()
            h = x.clone().requires_grad_()
            for block in model:
                h = checkpoint(block, h, use_reentrant=reentrant)
            loss = head(torch.nn.functional.dropout(h)).square().mean()
            loss.backward()
            step_of.step()
            return loss

        return everything, step

    def expect_training(self, reentrant, last):
        eager, eager_step = self.train(reentrant, last)
        captured_model, step = self.train(reentrant, last)
        batches = torch.randn(6, 4, 8)
        torch.manual_seed(7)
        captured = flashlight.trace(step, batches[0])
        torch.manual_seed(7)
        eager_step(batches[0])
        for i, x in enumerate(batches):
            torch.manual_seed(100 + i)
            expected = eager_step(x).detach()
            after = torch.get_rng_state()
            torch.manual_seed(100 + i)
            self.assertTrue(same_bits(captured(x), expected), f"step {i}\n{captured}")
            self.assertTrue(torch.equal(torch.get_rng_state(), after))
            for (name, a), (_, b) in zip(eager.state_dict().items(),
                                         captured_model.state_dict().items()):
                self.assertTrue(torch.equal(a, b), f"step {i}: {name}")
        return captured

    def test_reentrant(self):
        for last in LASTS:
            with self.subTest(last):
                self.expect_training(True, last)

    def test_without_reentrance(self):
        for last in LASTS:
            with self.subTest(last):
                self.expect_training(False, last)


class Reports(unittest.TestCase):
    def test_say_that_draws_depend_on_the_generator(self):
        model = torch.nn.Linear(3, 4)
        captured = flashlight.trace(lambda x: model(x * torch.randn(5, 3)).square().sum(),
                                    torch.randn(5, 3))
        for report in (captured.check(torch.randn(5, 3)), captured.check_grad(torch.randn(5, 3))):
            self.assertTrue(report, str(report))
            self.assertEqual(report.generators, ["default"])
            self.assertIn("every run began with the state that the generator 'default' had",
                          str(report))
        before = torch.get_rng_state()
        x = torch.ones(5, 3)
        captured.check_grad(x)
        captured.check(x)
        self.assertTrue(torch.equal(torch.get_rng_state(), before))


if __name__ == "__main__":
    no_looks.main()
