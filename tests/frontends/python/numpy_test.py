"""Every call of tests/numpy/make_cases.py, by Python: names, keywords, dtypes and values are NumPy's,
called as composit.numpy.f(arrays) and as numpy.f(LazyTensors)."""

import collections
import pathlib
import sys
import unittest
import warnings

import numpy as np

import composit
import composit.numpy as cnp

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "numpy"))

import case as cases  # noqa: E402
import make_cases  # noqa: E402
from array_agreement import difference  # noqa: E402

# Functions of the table that are no functions of NumPy.
OWN = {"get_item", "set_item", "astype", "put_along_axis"}


def function_of(module, name):
    for part in name.split("."):
        module = getattr(module, part)
    return module


def lazy(value):
    """`value` with LazyTensors for its arrays."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(lazy, value))
    return cnp.LazyTensor(value) if isinstance(value, np.ndarray) else value


def results_of(result):
    results = list(result) if isinstance(result, (list, tuple)) else [result]
    return [composit.evaluate(one) if isinstance(one, composit.LazyTensor) else np.asarray(one) for one in results]


class Numpy(unittest.TestCase):
    def setUp(self):
        self.failures = collections.Counter()
        self.count = self.computed = 0
        for module in (make_cases, cases):
            original = module.case
            self.addCleanup(setattr, module, "case", original)
            module.case = self.case

    def case(self, name, *positional, function=None, **named):
        self.count += 1
        if name in ("get_item", "set_item"):
            positional = (positional[0], tuple(positional[1]), *positional[2:])
        if named.get("ord") in ("inf", "-inf"):
            named["ord"] = float(named["ord"])
        expected = self.expected(name, function or function_of(np, name), positional, named)
        self.computed += expected is not None
        self.check(name, "composit", function_of(cnp, name), positional, named, expected)
        if name not in OWN and cases_take_arrays(positional):
            self.check(name, "numpy", function_of(np, name), lazy(positional), named, expected)

    def expected(self, name, function, positional, named):
        """Results, or None where the call is refused."""
        try:
            if name in cases.ORDERED and cases.is_complex(positional):
                return None
            if name in ("floor_divide", "remainder", "fmod") and cases.divides_by_zero(*positional):
                return None
            if name in ("get_item", "set_item"):
                positional = (positional[0], list(positional[1]), *positional[2:])
            result = function(*positional, **named)
        except (ArithmeticError, TypeError, ValueError, IndexError):
            return None
        return list(result) if isinstance(result, (list, tuple)) else [np.asarray(result)]

    def check(self, name, module, function, positional, named, expected):
        found = ""
        try:
            ours = results_of(function(*positional, **named))
            if expected is None:
                found = "NumPy refuses it"
            elif len(ours) != len(expected):
                found = f"expected {len(expected)} results, received {len(ours)}"
            else:
                found = "; ".join(filter(None, map(difference, ours, expected)))
        except (composit.Error, TypeError, ValueError, IndexError) as error:
            if expected is not None:
                found = f"{type(error).__name__}: {error}"
        if found:
            self.failures[name, module] += 1
            if self.failures[name, module] <= 3:
                print(f"{module}.{name}{positional!r} {named}: {found}")

    def test_the_table_of_cases(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for family in make_cases.FAMILIES:
                if family is not make_cases.random:  # drawn by NumPy itself
                    family()
        self.assertGreater(self.count, 10000)
        self.assertGreater(self.computed, 0.75 * self.count)
        self.assertEqual(dict(self.failures), {})


def cases_take_arrays(value):
    """Whether NumPy would see a LazyTensor: it looks at arrays, and into lists of them."""
    if isinstance(value, (list, tuple)):
        return any(map(cases_take_arrays, value))
    return isinstance(value, np.ndarray)


if __name__ == "__main__":
    unittest.main()
