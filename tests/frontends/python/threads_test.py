"""Threads of the program: their work on what is captured is refused, their own goes on."""

import concurrent.futures
import pathlib
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import no_looks  # before flashlight
import torch

import flashlight
from agreement import same_bits


def on_a_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


class Threads(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.x, self.y = torch.randn(3), torch.randn(3)

    def refused(self, program, *parts):
        with self.assertRaises(flashlight.Error) as caught:
            flashlight.trace(program, self.x)
        for part in (*parts, " on thread ", "do this work on the thread that is captured"):
            self.assertIn(part, str(caught.exception))

    def test_make_no_operands(self):
        def program(x):
            made = []
            on_a_thread(lambda: made.append(x + 1))
            return made[0] * 2

        self.refused(program, "aten::mul", "was made by aten::add.Tensor")

    def test_write_nothing(self):
        def program(x):
            y = x * 2
            on_a_thread(lambda: y.add_(1))
            return y

        self.refused(program, "aten::add_.Tensor", "writes a value of the scope")

    def test_of_a_pool_make_no_results(self):
        def program(x):
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                return list(pool.map(lambda i: x * i, range(3)))

        self.refused(program, "was made by aten::mul.Tensor")

    def test_of_a_pool_that_was_there_before(self):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            pool.submit(lambda: torch.ones(2) + 1).result()
            self.refused(lambda x: x + pool.submit(torch.rand, 3).result(), "made by aten::rand")

    def test_are_named_by_their_number(self):
        number = []

        def work(x, made):
            number.append(threading.get_native_id())
            made.append(x.exp())

        def program(x):
            made = []
            on_a_thread(lambda: work(x, made))
            return made[0]

        with self.assertRaises(flashlight.Error) as caught:
            flashlight.trace(program, self.x)
        self.assertIn(f" on thread {number[0]} '", str(caught.exception))

    def test_may_train_their_own_models_and_read_the_same_weights(self):
        shared = torch.nn.Linear(3, 3)
        stop, rounds, failures = threading.Event(), [0], []

        def serve():
            own = torch.nn.Linear(3, 3)
            optimizer = torch.optim.Adam(own.parameters())
            try:
                while not stop.is_set():
                    optimizer.zero_grad()
                    (own(torch.rand(2, 3)) + shared(torch.rand(2, 3)).detach()).sum().backward()
                    optimizer.step()
                    captured = flashlight.trace(own, torch.rand(2, 3))
                    captured(torch.rand(2, 3))
                    rounds[0] += 1
            except BaseException as error:
                failures.append(error)

        servers = [threading.Thread(target=serve) for _ in range(2)]
        for server in servers:
            server.start()

        def program(x):
            before, y = rounds[0], shared(x)
            while rounds[0] == before and not failures:
                stop.wait(0.001)
            return shared(y)

        for _ in range(5):
            captured = flashlight.trace(program, self.x)
            self.assertTrue(same_bits(captured(self.y), shared(shared(self.y)).detach()))
        stop.set()
        for server in servers:
            server.join()
        self.assertEqual(failures, [])


if __name__ == "__main__":
    no_looks.main()
