"""Trains the model of `./dev bench quality` by its own captured training step, compiled by mosaic.

    train.py PACKAGES SEED STEPS THREADS FILE
"""

import math
import sys
import time

import torch

import model as models
import text

SEQUENCES = 8  # of a step
RATE = 1e-3


class Adam:
    """Adam (Kingma, Ba 2015) whose count of steps is a tensor, so that one capture serves all of them."""

    def __init__(self, parameters, betas=(0.9, 0.99), epsilon=1e-8):
        self.parameters, self.betas, self.epsilon = list(parameters), betas, epsilon
        self.count = torch.zeros(())
        self.moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in self.parameters]

    @torch.no_grad()
    def step(self, rate):
        self.count += 1
        corrections = [1 - torch.exp(self.count * math.log(beta)) for beta in self.betas]
        for p, (mean, square) in zip(self.parameters, self.moments):
            mean.mul_(self.betas[0]).add_(p.grad, alpha=1 - self.betas[0])
            square.mul_(self.betas[1]).addcmul_(p.grad, p.grad, value=1 - self.betas[1])
            p.sub_(rate * (mean / corrections[0]) / ((square / corrections[1]).sqrt() + self.epsilon))
            p.grad = None


def step_of(model):
    optimizer = Adam(model.parameters())

    def step(tokens, rate):
        loss = models.loss_of(model(tokens[:, :-1]), tokens).mean()
        loss.backward()
        optimizer.step(rate)
        return loss.detach()

    return step


def rate_of(number, steps):
    """Rises over the first steps, then falls as a cosine."""
    return torch.tensor(RATE * min(1.0, (number + 1) / 100) * (0.05 + 0.95 * math.cos(math.pi / 2 * number / steps)))


def main():
    packages, seed, steps, threads, file = sys.argv[1:]
    sys.path.insert(0, packages)
    import flashlight

    seed, steps, threads = int(seed), int(steps), int(threads)
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    training, _ = text.read(megabytes=12)
    model = models.Decoder()
    step = step_of(model)
    arguments = lambda number: (text.sample(training, SEQUENCES, models.LENGTH + 1, 10**6 * (seed + 1) + number),
                                rate_of(number, steps))
    compiled = flashlight.trace(step, *arguments(0), flashlight.confirm(*arguments(1)))
    compiled = compiled.compile("mosaic", threads=threads)
    begin = time.perf_counter()
    for number in range(2, steps):
        loss = compiled(*arguments(number))
        if number % 200 == 2:
            print(f"seed {seed}, step {number} of {steps}: {loss.item():.3f} nats per byte, "
                  f"{time.perf_counter() - begin:.0f} s", file=sys.stderr, flush=True)
    torch.save(model.state_dict(), file)


if __name__ == "__main__":
    main()
