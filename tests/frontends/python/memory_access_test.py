"""Reads and writes of tensors' memory that no operator makes, while a program is captured."""

import copy
import ctypes
import io
import logging
import pathlib
import pickle
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import no_looks  # before flashlight
import numpy as np
import torch
import torch.utils.dlpack

import flashlight
from agreement import same_bits
from flashlight.host_memory import refuse_large_reads


def line_of(text):
    lines = pathlib.Path(__file__).read_text().splitlines()
    return f"{pathlib.Path(__file__).name}:{next(i for i, l in enumerate(lines, 1) if text in l)}"


def ops(captured):
    return [node.op for node in captured.graph.nodes]


def guards(captured):
    return [line for line in captured.assumptions() if line.startswith("guard")]


class AccessTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(2)
        self.x, self.y = torch.randn(4, 3), torch.randn(4, 3)

    def guarded(self, program, x, other, line=None):
        """A capture on `x` is right on equal values, wherever they lie, and refuses `other`."""
        captured = flashlight.trace(program, x)
        self.assertEqual(captured._program.large_reads, [])
        again = x.detach().clone()
        self.assertTrue(same_bits(captured(again), program(again)))
        with self.assertRaisesRegex(flashlight.Error, "guard: .*" + (line or "")):
            captured(other)
        return captured

    def refused(self, program, line, x=None):
        with self.assertRaisesRegex(flashlight.Error,
                                    rf"\[trace\] .*{line}.*without an operator"):
            flashlight.trace(program, self.x if x is None else x)


def at_address(address):
    return ctypes.c_float.from_address(address).value


class Reads(AccessTest):
    def test_every_way_is_guarded_by_line(self):
        def by_ctypes(x):
            return at_address(x.data_ptr())  # by ctypes

        ways = {
            "numpy()  # a": lambda x: float(x.numpy().mean()),  # numpy()  # a
            "asarray  # b": lambda x: float(np.asarray(x)[0, 0]),  # asarray  # b
            "array(x)  # c": lambda x: float(np.array(x, dtype=np.float64).sum()),  # array(x)  # c
            "buffer  # d": lambda x: memoryview(x.numpy()).cast("B").cast("f")[1],  # buffer  # d
            "dlpack  # e": lambda x: float(np.from_dlpack(x)[1, 1]),  # dlpack  # e
            "list  # f": lambda x: x.tolist()[2][1],  # list  # f
            "element  # g": lambda x: x.untyped_storage()[3] / 7,  # element  # g
            "typed  # h": lambda x: x.storage()[5],  # typed  # h
            "# by ctypes": by_ctypes,
            "pointer  # i": lambda x: at_address(x.untyped_storage().data_ptr()),  # pointer  # i
            "force  # j": lambda x: float(x.numpy(force=True)[1, 0]),  # force  # j
        }
        for text, read in ways.items():
            with self.subTest(text):
                self.guarded(lambda x: x * read(x), self.x, self.y, line_of(text))

    def test_values_made_in_the_program(self):
        def program(x):
            y = (x @ x.T).exp()
            return x * float(y.numpy()[0, 1])  # made in the program

        self.guarded(program, self.x, self.y, line_of("# made in the program"))

    def test_what_python_decides_by(self):
        def program(x):
            return x * 2 if x.numpy().any() else x - 1

        self.guarded(program, torch.zeros(4, 3), torch.ones(4, 3))

    def test_dtypes(self):
        numbers = torch.tensor([[1.0, -2.5, 0.0], [3.0, 4.5, -6.0]])
        for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64,
                      torch.complex128, torch.bool, torch.uint8, torch.int8, torch.int16,
                      torch.int32, torch.int64, torch.uint16, torch.uint32, torch.float8_e4m3fn):
            with self.subTest(dtype):
                x = numbers.to(dtype) if dtype is not torch.uint16 and dtype is not torch.uint32 \
                    else numbers.abs().to(dtype)
                other = x.clone()
                other[1, 2] = 5
                if dtype is torch.bool:
                    other[0, 2] = True
                self.guarded(lambda x: (torch.ones(2) * len(x.tolist()), x.tolist() and x.clone()),
                             x, other)

    def test_bits_decide(self):
        """-0 is not 0; NaN is NaN."""
        nan, zero = float("nan"), torch.tensor([0.0, 1.0])
        self.guarded(lambda x: x + float(np.signbit(x.numpy()[0])), zero, torch.tensor([-0.0, 1.0]))
        captured = self.guarded(lambda x: torch.ones(2) * np.isnan(x.numpy()).sum(),
                                torch.tensor([nan, 1.0]), torch.tensor([nan, 2.0]))
        self.assertEqual(float(captured(torch.tensor([nan, 1.0]))[0]), 1.0)
        with self.assertRaises(flashlight.Error):
            captured(torch.tensor([1.0, nan]))

    def test_sizes_and_strides(self):
        x, y = torch.randn(6, 8), torch.randn(6, 8)
        views = {"0-dim": lambda x: x[0, 0], "one": lambda x: x[:1, :1], "rows": lambda x: x[::2],
                 "transposed": lambda x: x.t(), "expanded": lambda x: x[:1].expand(3, 8)}
        for name, view in views.items():
            with self.subTest(name):
                self.guarded(lambda x: x * float(view(x).numpy().sum()), x, y)
                self.guarded(lambda x: x * float(np.array(view(x).tolist()).sum()), x, y)
        captured = flashlight.trace(lambda x: x * len(x[:0].numpy()), x)
        self.assertEqual(guards(captured), [])
        self.assertTrue(same_bits(captured(y), y * 0))

    def test_parameters_and_gradients(self):
        model = torch.nn.Linear(3, 2)

        def program(x):
            return model(x) * float(model.weight.detach().numpy()[0, 0])

        captured = flashlight.trace(program, self.x)
        self.assertTrue(same_bits(captured(self.y), program(self.y)))
        with torch.no_grad():
            model.weight.add_(1)
        with self.assertRaisesRegex(flashlight.Error, "guard"):
            captured(self.y)
        x = self.x.clone().requires_grad_()
        self.guarded(lambda x: x * x.tolist()[0][0], x, self.y.clone().requires_grad_())

    def test_numpy_of_what_requires_a_gradient_fails_as_before(self):
        with self.assertRaisesRegex(RuntimeError, "requires grad"):
            flashlight.trace(lambda x: x * x.numpy(), self.x.clone().requires_grad_())

    def test_check_agrees(self):
        captured = flashlight.trace(lambda x: x * float(x.numpy()[0, 0]), self.x)
        report = captured.check(self.x.clone())
        self.assertTrue(report, str(report))
        self.assertFalse(captured.check(self.y))

    def test_compiled_code_has_the_guard(self):
        captured = flashlight.trace(lambda x: x * float(x.numpy()[0, 0]), self.x)
        for backend in ("cpp", "mosaic"):
            compiled = captured.compile(backend)
            torch.testing.assert_close(compiled(self.x.clone()), self.x * float(self.x[0, 0]))
            with self.assertRaisesRegex(flashlight.Error, "guard"):
                compiled(self.y)

    def test_the_same_value_is_guarded_once(self):
        def program(x):
            total = sum(float(x.numpy()[i, 0]) for i in range(4))
            x = x * total
            return x + x.tolist()[0][0]

        captured = flashlight.trace(program, self.x)
        self.assertEqual(len(guards(captured)), 2)

    def test_large_reads_are_noted_by_line(self):
        def program(x):
            return x.relu() * float(x.numpy().max())  # a large read

        x = torch.randn(40, 40)
        captured = flashlight.trace(program, x)
        self.assertEqual(guards(captured), [])
        (read,) = captured._program.large_reads
        self.assertIn(line_of("# a large read"), read.place)
        self.assertEqual(read.bytes, 6400)
        with self.assertRaisesRegex(flashlight.Error, line_of("# a large read") + ".*6400 bytes"):
            refuse_large_reads(captured._program.large_reads)
        refuse_large_reads([])

    def test_memory_that_operators_write_while_the_host_has_it(self):
        """What the host reads later was not known when the memory was handed out."""
        def program(x):
            y = x * 2
            array = y.numpy()  # handed out
            y.add_(1)
            return x * float(array[0, 0])

        captured = flashlight.trace(program, self.x)
        (read,) = captured._program.large_reads
        self.assertIn(line_of("# handed out"), read.place)

        def lets_go(x):
            y = x * 2
            first = float(y.numpy()[0, 0])
            y.add_(1)
            return x * first

        self.assertEqual(flashlight.trace(lets_go, self.x)._program.large_reads, [])

    def test_memory_that_is_the_hosts(self):
        """Nothing to guard: the host fills it, and it is a constant then."""
        def program(x):
            filled = torch.empty(3)
            filled.numpy()[:] = [1, 2, 3]
            return x * filled + torch.from_numpy(np.arange(3.0, dtype=np.float32))

        captured = flashlight.trace(program, self.x)
        self.assertEqual(guards(captured), [])
        self.assertTrue(same_bits(captured(self.y), program(self.y)))

    def test_kernels_read_as_they_like(self):
        captured = flashlight.trace(lambda x: on_the_host(x) + 1, self.x)
        self.assertEqual(guards(captured), [])
        self.assertTrue(same_bits(captured(self.y), self.y * 3 + 1))

    def test_other_threads_and_afterwards(self):
        seen = []

        def program(x):
            thread = threading.Thread(
                target=lambda: seen.append(torch.ones(2).numpy().sum() + len(repr(torch.ones(2)))))
            thread.start()
            thread.join()
            return x + 1

        before = {name: vars(torch.Tensor).get(name) for name in ("numpy", "__repr__", "tolist")}
        captured = flashlight.trace(program, self.x)
        self.assertEqual((len(seen), guards(captured)), (1, []))
        with self.assertRaises(KeyError):
            flashlight.trace(lambda x: {}["none"], self.x)
        after = {name: vars(torch.Tensor).get(name) for name in before}
        self.assertEqual(before, after)

    def test_a_subclass(self):
        class Mine(torch.Tensor):
            def numpy(self):
                return super().numpy() + 1

        self.guarded(lambda x: x * float(x.as_subclass(Mine).numpy()[0, 0]), self.x, self.y)

    def test_captures_nest(self):
        def program(x):
            inner = flashlight.trace(lambda x: x + float(x.numpy()[0, 0]), x * 2)
            return x * len(guards(inner)) + float(x.numpy()[1, 1])

        self.guarded(program, self.x, self.y)


@torch.library.custom_op("flashlight_tests::on_the_host", mutates_args=())
def on_the_host(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(x.numpy() * 3)


class Writes(AccessTest):
    def test_every_way_is_refused_by_line(self):
        def by_ctypes(x):
            ctypes.memset(x.data_ptr(), 0, 8)  # by memset

        def view(x):
            x.numpy()[0, 0] = 5  # through a view

        def buffer(x):
            memoryview(x.numpy()).cast("B")[0] = 1  # through a buffer

        def consumer(x):
            ctypes.memset(np.from_dlpack(x).ctypes.data, 1, 4)  # through DLPack

        def element(x):
            x.untyped_storage()[0] = 1  # through a storage

        def fill(x):
            x.untyped_storage().fill_(1)  # fill_ of a storage

        def apply(x):
            x.apply_(lambda v: v + 1)  # apply_

        for write, text in ((by_ctypes, "# by memset"), (view, "# through a view"),
                            (buffer, "# through a buffer"), (consumer, "# through DLPack"),
                            (element, "# through a storage"), (fill, "# fill_ of a storage"),
                            (apply, "# apply_")):
            for inside in (False, True):
                with self.subTest(text, inside=inside):
                    def program(x):
                        y = x.clone() if inside else x
                        write(y)
                        return y * 2

                    self.refused(program, line_of(text), self.x.clone())

    def test_at_the_next_operator_or_at_the_end(self):
        def overwritten(x):
            y = x * 2
            array = y.numpy()  # overwritten later
            array += 1
            y.mul_(3)  # hides it
            return y

        def last(x):
            y = x * 2
            y.numpy()[1] = 0  # the last thing done
            return y

        self.refused(overwritten, line_of("# overwritten later"))
        self.refused(last, line_of("# the last thing done"))

    def test_into_memory_that_tensors_were_made_over(self):
        def program(x):
            array = np.zeros(3, dtype=np.float32)
            given = torch.from_numpy(array)  # made over
            array[:] = 2  # nobody has read it yet
            y = x * given
            array[:] = 3
            return y

        self.refused(program, line_of("# made over"))

        def filled(x):
            array = np.zeros(3, dtype=np.float32)
            given = torch.from_numpy(array)
            array[:] = 2
            return x * given

        captured = flashlight.trace(filled, self.x)
        self.assertTrue(same_bits(captured(self.y), self.y * 2))

    def test_of_large_memory_and_of_a_view(self):
        def program(x):
            x[1:3].numpy()[1, 7] = 1  # into rows
            return x.sum()

        self.refused(program, line_of("# into rows"), torch.randn(100, 200))

    def test_a_program_that_catches_it(self):
        def program(x):
            y = x * 2
            y.numpy()[0] = 1  # caught
            try:
                y = y + 1
            except RuntimeError:
                pass
            return x

        self.refused(program, line_of("# caught"))

    def test_operators_may_write_what_the_host_has(self):
        def program(x):
            y = x * 2
            array = y.numpy()
            y += 1
            y[0] = 7
            del array
            return y

        captured = flashlight.trace(program, self.x)
        with self.assertRaisesRegex(flashlight.Error, "guard"):
            captured(self.y)

    def test_a_copy_may_be_written(self):
        def program(x):
            array = x.numpy().copy()
            array[:] = 0
            np.array(x)[:] = 3
            return x * 2

        self.guarded(program, self.x, self.y)


class Printing(AccessTest):
    def test_is_neither_guarded_nor_recorded(self):
        model = torch.nn.Linear(3, 2)
        log = logging.getLogger("flashlight_tests")
        log.addHandler(logging.StreamHandler(io.StringIO()))
        log.propagate = False

        def program(x):
            out = io.StringIO()
            y = model(x)
            print(x, y, model.weight, x.bool(), x.sum(), file=out)
            log.error("loss %s", y.mean())
            f"{x.sum():.3f} {x} {y.mean()!r} {x.to(torch.complex64)}"
            return y.relu()

        captured = flashlight.trace(program, self.x)
        self.assertEqual(guards(captured), [])
        self.assertEqual([op for op in ops(captured) if op not in ("composit::input",)],
                         ["aten::linear", "aten::relu"])
        for x in (self.y, torch.full((4, 3), float("nan")), torch.zeros(4, 3), 1e9 * self.y):
            self.assertTrue(same_bits(captured(x), program(x)))
        report = captured.check(self.y)
        self.assertTrue(report, str(report))

    def test_prints_what_it_prints_outside(self):
        texts = []
        x = torch.tensor([[1.5, float("nan")], [-3e9, 0]])

        def program(x):
            texts.append((repr(x), str(x), f"{x[0, 0]:.2f}", repr(torch.nn.Parameter(x))))
            return x + 1

        program(x)
        flashlight.trace(program, x)
        self.assertEqual(texts[0], texts[1])

    def test_a_number_that_is_asked_for_is_a_guard(self):
        captured = flashlight.trace(lambda x: (f"{x.sum().item():.1f}", x * 2)[1], self.x)
        self.assertEqual(len(guards(captured)), 1)


class Copies(AccessTest):
    def test_deepcopy_is_a_clone(self):
        def program(x):
            kept = copy.deepcopy(x)
            x.mul_(2)
            return kept + x

        captured = flashlight.trace(program, self.x.clone())
        self.assertIn("aten::clone", ops(captured))
        self.assertTrue(same_bits(captured(self.y.clone()), program(self.y.clone())))
        self.assertTrue(captured.check(self.y.clone()))

    def test_deepcopy_keeps_what_shares_memory(self):
        def program(x):
            base = x * 2
            whole, row = copy.deepcopy([base, base[1]])
            row.add_(10)
            late, first = copy.deepcopy([base[0], base])
            late.zero_()
            return whole + first, copy.deepcopy(base[:, 1:].t())

        captured = flashlight.trace(program, self.x)
        self.assertTrue(same_bits(captured(self.y), program(self.y)))
        self.assertEqual([t.stride() for t in captured(self.y)], [t.stride() for t in program(self.y)])

    def test_deepcopy_of_a_model(self):
        model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3))

        def program(x):
            ema = copy.deepcopy(model)
            with torch.no_grad():
                for mine, theirs in zip(ema.parameters(), model.parameters()):
                    mine.lerp_(theirs * 2, 0.25)
            return ema(x)

        captured = flashlight.trace(program, self.x)
        self.assertTrue(same_bits(captured(self.y), program(self.y)))

    def test_pickle_and_save_leave_the_program(self):
        sizes = []

        def program(x):
            stream = io.BytesIO()
            torch.save({"x": x, "more": [x[0], x.sum()]}, stream)  # saved here
            sizes.append(len(pickle.dumps(x)) + len(stream.getvalue()))
            return x * 2

        program(self.x)
        captured = flashlight.trace(program, self.x)
        self.assertEqual(sizes[0], sizes[1])
        self.assertEqual(guards(captured), [])
        self.assertTrue(same_bits(captured(self.y), self.y * 2))
        self.assertTrue([line for line in captured.assumptions()
                         if line_of("# saved here") in line and "writes nothing" in line])
        self.assertTrue(captured.check(self.y))

    def test_what_was_saved_is_what_it_held(self):
        kept = []

        def program(x):
            kept.append(pickle.dumps(x.sin()))
            return x * 2

        flashlight.trace(program, self.x)
        self.assertTrue(same_bits(pickle.loads(kept[0]), self.x.sin()))

    def test_what_comes_back_is_refused(self):
        with self.assertRaisesRegex(flashlight.Error, "no dispatcher sees"):
            flashlight.trace(lambda x: pickle.loads(pickle.dumps(x)) * 2, self.x)


if __name__ == "__main__":
    no_looks.main()
