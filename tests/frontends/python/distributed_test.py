"""Collective operators: two processes capture and replay programs that exchange data."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import torch
import torch.distributed as dist

import flashlight
from agreement import same_bits

SIZE = 2


def given(rank, call):
    """What a process is called with, which the others can work out as well."""
    return torch.arange(6.0).reshape(2, 3) * (call + 1) + 10.0 ** (rank - 1)


def total(call):
    return sum(given(rank, call) for rank in range(SIZE))


def summed(x):
    y = x * 2
    dist.all_reduce(y)
    return y + 1


def summed_later(x):
    y = x * 2
    work = dist.all_reduce(y, op=dist.ReduceOp.SUM, async_op=True)
    z = x + 1
    work.wait()
    return y, z


def in_place(x):
    dist.all_reduce(x)
    return x * 3


def from_the_first(x):
    y = x.clone()
    dist.broadcast(y, src=0)
    return y


def gathered(x):
    y = torch.empty(SIZE * 2, 3)
    dist.all_gather_into_tensor(y, x)
    dist.barrier()
    return y


def functional(x):
    from torch.distributed import _functional_collectives as collectives

    return collectives.all_reduce(x * 2, "sum", dist.group.WORLD) + 1


EXPECTED = {
    summed: lambda rank, call: total(call) * 2 + 1,
    summed_later: lambda rank, call: (total(call) * 2, given(rank, call) + 1),
    in_place: lambda rank, call: total(call) * 3,
    from_the_first: lambda rank, call: given(0, call),
    gathered: lambda rank, call: torch.cat([given(i, call) for i in range(SIZE)]),
    functional: lambda rank, call: total(call) * 2 + 1,
}


def collectives(rank):
    for program, expected in EXPECTED.items():
        captured = flashlight.trace(program, given(rank, 0))
        for call in (1, 2, 3):
            x = given(rank, call)
            received = captured(x)
            assert same_bits(received, expected(rank, call)), (program.__name__, received)
            if program is in_place:
                assert same_bits(x, total(call)), x
        report = captured.check(given(rank, 4))
        assert report, (program.__name__, str(report))


def refused(rank):
    def exchange(x):
        y = torch.empty_like(x)
        sent = dist.isend(x, 1 - rank)
        dist.recv(y, 1 - rank)
        sent.wait()
        return y

    def gather_lists(x):
        parts = [torch.empty_like(x) for _ in range(SIZE)]
        dist.all_gather(parts, x)
        return parts

    for program, message in ((exchange, "c10d::send"), (gather_lists, "c10d::allgather_")):
        try:
            flashlight.trace(program, given(rank, 0))
        except flashlight.Error as error:
            assert f"[trace] {message}: " in str(error), error
        else:
            raise AssertionError(f"{program.__name__} is not refused")


def training(rank):
    """Two processes with half of the data each make the steps of one with all of it."""
    torch.manual_seed(0)
    model, alone = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    alone.load_state_dict(model.state_dict())
    parallel = torch.nn.parallel.DistributedDataParallel(model)

    def step(x):
        loss = parallel(x).square().mean()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.01 * parameter.grad
                parameter.grad = None
        return loss.detach()

    def step_alone(x):
        loss = alone(x).square().mean()
        gradients = torch.autograd.grad(loss, list(alone.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(alone.parameters(), gradients):
                parameter -= 0.01 * gradient

    step(given(rank, 0) / 10)  # in which it makes its buckets
    step(given(rank, 0) / 10)
    alone.load_state_dict(model.state_dict())
    try:
        captured = flashlight.trace(step, given(rank, 0) / 10)
    except flashlight.Error as error:
        print("refused:", error)
        return
    step_alone(torch.cat([given(i, 0) / 10 for i in range(SIZE)]))
    for call in (1, 2, 3):
        captured(given(rank, call) / 10)
        step_alone(torch.cat([given(i, call) / 10 for i in range(SIZE)]))
        for one, other in zip(model.parameters(), alone.parameters()):
            torch.testing.assert_close(one, other)


def run(case, rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=SIZE)
    {"collectives": collectives, "refused": refused, "training": training}[case](rank)
    dist.destroy_process_group()


@unittest.skipUnless(dist.is_available() and dist.is_gloo_available(), "torch has no gloo")
class Distributed(unittest.TestCase):
    def in_processes(self, case):
        with tempfile.TemporaryDirectory() as folder:
            processes = [
                subprocess.Popen(
                    [sys.executable, __file__, case, str(rank), folder],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
                for rank in range(SIZE)
            ]
            texts = [process.communicate()[0] for process in processes]
            for process, text in zip(processes, texts):
                self.assertEqual(process.returncode, 0, text)

    def test_collectives(self):
        self.in_processes("collectives")

    def test_what_is_refused(self):
        self.in_processes("refused")

    def test_training(self):
        self.in_processes("training")


if __name__ == "__main__":
    if len(sys.argv) > 3:
        run(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    else:
        unittest.main()
