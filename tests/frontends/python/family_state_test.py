"""State of a family's program: what others do with it between calls is seen, or harmless."""

import os

os.environ.pop("FLASHLIGHT_SEEN_ONCE", None)  # other tests switch looks off

import unittest

import torch

import flashlight


class Cache(torch.nn.Module):
    """Grows by what each call brings."""

    def __init__(self):
        super().__init__()
        self.k = torch.randn(1, 3)

    def forward(self, x):
        self.k = torch.cat([self.k, x], 0)
        return self.k.sum(0)


class Sum(torch.nn.Module):
    """Writes its state in place."""

    def __init__(self):
        super().__init__()
        self.e = torch.zeros(3)

    def forward(self, x):
        self.e.add_(x.mean(0))
        return x - self.e


class GrowingTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(5)
        self.enterContext(torch.no_grad())
        self.cache = Cache()

        def examples():
            for rows in (40, 2, None, None):
                if rows:
                    self.cache.k = torch.randn(rows, 3)
                yield torch.randn(1, 3)

        self.family = flashlight.trace_family(self.cache, examples())

    def assert_right(self, k):
        x = torch.randn(1, 3)
        self.assertTrue(torch.equal(self.family(x), torch.cat([k, x], 0).sum(0)))
        return torch.cat([k, x], 0)

    def crop(self):
        self.cache.k = self.cache.k[:2]

    def write(self):
        self.cache.k.zero_()

    def test_goes_on_alone(self):
        k = self.cache.k.clone()
        for _ in range(9):
            k = self.assert_right(k)

    def test_what_others_do_to_it_is_refused(self):
        for change, error in ((self.crop, "nobody holds it any more"), (self.write, "somebody has written it since")):
            for calls in (1, 3):
                self.setUp()
                k = self.cache.k.clone()
                for _ in range(calls):
                    k = self.assert_right(k)
                change()
                with self.subTest(error, calls=calls), self.assertRaisesRegex(flashlight.Error, error):
                    self.family(torch.randn(1, 3))

    def test_before_the_first_call(self):
        self.write()  # what the family has lies in the same memory
        k = torch.zeros_like(self.cache.k)
        for _ in range(3):
            k = self.assert_right(k)
        self.setUp()
        self.crop()
        with self.assertRaisesRegex(flashlight.Error, "nobody holds it any more"):
            self.family(torch.randn(1, 3))

    def test_a_second_name_changes_nothing(self):
        k, _other = self.cache.k.clone(), self.cache.k
        _view = self.cache.k[1:]
        for _ in range(3):
            k = self.assert_right(k)


class WrittenTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(5)
        self.enterContext(torch.no_grad())
        self.model, self.eager = Sum(), Sum()

    def assert_right(self, call):
        self.eager.e.copy_(self.model.e)
        x = torch.randn(8, 3)
        torch.testing.assert_close(call(x), self.eager(x))
        torch.testing.assert_close(self.model.e, self.eager.e)

    def assert_refuses_another(self, calls):
        for call in calls:
            self.assert_right(call)
            self.assert_right(call)
        self.model.e.zero_()
        for call in calls:
            self.assert_right(call)
        self.model.e = torch.ones(3)
        for call in calls:
            with self.assertRaisesRegex(flashlight.Error, "put another tensor in its place"):
                call(torch.randn(8, 3))

    def test_a_family(self):
        family = flashlight.trace_family(self.model, [torch.randn(rows, 3) for rows in (7, 9, 12)])
        self.assert_refuses_another([family, family.compile("cpp")])

    def test_a_capture(self):
        captured = flashlight.trace(self.model, torch.randn(8, 3))
        for _ in range(3):
            captured(torch.randn(8, 3))
        self.assertEqual(captured.trust, "confirmed")
        self.assert_refuses_another([captured])


if __name__ == "__main__":
    unittest.main()
