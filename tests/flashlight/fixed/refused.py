"""Programs whose sizes do not fit do not compile, and the compiler says why, with the sizes.

    refused.py COMPILER FLAGS...
"""

import subprocess
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from pathlib import Path

PROGRAM = """
#include "flashlight/fixed/fixed.h"
using namespace flashlight::fixed;
void program() {{ {} }}
"""
# The program, what the message says, and the two sizes in it.
REFUSED = [
    ("matmul(Tensor<float, 2, 3>(), Tensor<float, 4, 2>());", "the left tensor has other columns", (3, 4)),
    ("matmul(Tensor<float, 2, 5, 3>(), Tensor<float, 4, 3, 2>());", "axes before the matrices", (2, 4)),
    ("matmul(Tensor<float>(), Tensor<float, 4>());", "expected a vector or a matrix", None),
    ("matmul(Tensor<float, 3>(), Tensor<double, 3>());", "both operands have one type", None),
    ("Tensor<float, 2, 3>() + Tensor<float, 4>();", "sizes do not broadcast", (3, 4)),
    ("Tensor<float, 2>() + Tensor<int, 2>();", "the elements of both operands have one type", None),
    ("Tensor<int, 2>() + 0.5;", "a floating point number beside integers", None),
    ("Tensor<int, 2>() / 2;", "division of integers", None),
    ("(Tensor<int, 2>() < 1) + 1;", "arithmetic of bools", None),
    ("exp(Tensor<int, 2>());", "expected floating point elements", None),
    ("reshape<7>(Tensor<float, 2, 3>());", "the new sizes have another number of elements", (7, 6)),
    ("transpose<0, 0>(Tensor<float, 2, 3>());", "expected every axis once", None),
    ("transpose<0>(Tensor<float, 2, 3>());", "expected every axis once", (1, 2)),
    ("transpose(Tensor<float, 2>());", "expected a matrix", None),
    ("sum<2>(Tensor<float, 2, 3>());", "over axes that the tensor has", None),
    ("sum<0, -2>(Tensor<float, 2, 3>());", "names an axis twice", None),
    ("softmax<1>(Tensor<float, 2>());", "over axes that the tensor has", None),
    ("amax(Tensor<float, 0>());", "expected at least one element", None),
    ("mean(Tensor<int, 2>());", "expected floating point elements", None),
    ("linear(Tensor<float, 2, 3>(), Tensor<float, 5, 4>());", "x has other columns than the weight", (3, 4)),
    ("linear(Tensor<float, 2, 3>(), Tensor<float, 5, 3>(), Tensor<float, 3>());", "expected a bias [out]", None),
    ('einsum<"ij,jk->ik">(Tensor<float, 2, 3>(), Tensor<float, 4, 2>());', "one letter stands for two sizes", (3, 4)),
    ('einsum<"ij">(Tensor<float, 2, 3>());', "expected '->'", None),
    ('einsum<"i->i">(Tensor<float, 2, 3>());', "an operand has other axes than its subscripts", (1, 2)),
    ('einsum<"ij,j->i">(Tensor<float, 2, 3>());', "another number of operands", None),
    ('einsum<"i->ii">(Tensor<float, 2>());', "the result has an axis twice", None),
    ('einsum<"i->k">(Tensor<float, 2>());', "the result has an axis of no operand", None),
    ('einsum<"i.->i">(Tensor<float, 2>());', "expected letters", None),
    ("Tensor<float, 2>::of(1, 2, 3);", "expected a value for every element", (3, 2)),
    ("Tensor<float, 2, 2>()(1);", "expected an index for every axis", (1, 2)),
    ("Tensor<float, -1>();", "a size is not negative", None),
]
ACCEPTED = "matmul(Tensor<float, 2, 3>(), Tensor<float, 3, 2>()) + Tensor<float, 2>() * 2;"


def errors_of(compiler, body):
    """What the compiler prints; empty if it accepts the program."""
    done = subprocess.run([*compiler, "-fsyntax-only", "-x", "c++", "-"], input=PROGRAM.format(body), text=True,
                          stderr=subprocess.PIPE)
    return done.stderr if done.returncode else ""


class RefusedPrograms(unittest.TestCase):
    def test_the_compiler_says_why(self):
        with ThreadPoolExecutor(cpu_count()) as pool:
            printed = list(pool.map(lambda case: errors_of(COMPILER, case[0]), REFUSED))
        for (body, message, sizes), text in zip(REFUSED, printed):
            with self.subTest(body):
                self.assertIn(message, text)
                if sizes:
                    self.assertIn(f"({sizes[0]} == {sizes[1]})", text)

    def test_a_right_program_compiles(self):
        self.assertEqual(errors_of(COMPILER, ACCEPTED), "")


if __name__ == "__main__":
    COMPILER = sys.argv[1:]
    unittest.main(argv=sys.argv[:1], verbosity=2)
