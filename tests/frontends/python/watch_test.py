"""Modules that are changed after they were captured: refused with what changed; what is written into
their tensors is followed."""

import pathlib
import sys
import timeit
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import no_looks  # before flashlight
import torch

import flashlight
from agreement import same_bits


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4),
                               torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(4, 2)))


class WatchTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.x, self.y = torch.randn(4, 3), torch.randn(4, 3)
        model = self.model = network().eval()
        self.captured = flashlight.trace(lambda x: model(x) * 2, self.x)

    def refused(self, message):
        weights = {name: t.clone() for name, t in self.model.state_dict().items()}
        with self.assertRaisesRegex(flashlight.Error, rf"\[capture\] {message}.* capture again"):
            self.captured(self.y)
        for name, tensor in self.model.state_dict().items():
            self.assertTrue(same_bits(tensor, weights[name]))

    def right(self):
        self.assertTrue(same_bits(self.captured(self.y), self.model(self.y) * 2))


class Changes(WatchTest):
    def test_modes(self):
        self.right()
        self.model.train()
        self.refused("module 'model' was in evaluation mode and is in training mode")
        self.model.eval()
        self.right()
        self.model[2].train()
        self.refused("module 'model.2' was in evaluation mode")

    def test_a_replaced_parameter_buffer_and_module(self):
        weight = self.model[0].weight
        self.model[0].weight = torch.nn.Parameter(weight.detach() * 2)
        self.refused("parameter 'model.0.weight' was replaced")
        self.model[0].weight = weight
        self.right()
        self.model[1].running_mean = torch.zeros(4)
        self.refused("buffer 'model.1.running_mean' was replaced")
        self.setUp()
        self.model[2][1] = torch.nn.Linear(4, 2)
        self.refused("module 'model.2.1' was replaced")
        self.setUp()
        del self.model[2][1].bias
        self.refused("parameter 'model.2.1.bias' was removed")
        self.setUp()
        self.model[2][1].register_parameter("more", torch.nn.Parameter(torch.ones(1)))
        self.refused("parameter 'model.2.1.more' was added")

    def test_a_loaded_state_that_takes_the_place(self):
        other = network().state_dict()
        self.model.load_state_dict(other, assign=True)
        self.refused("parameter 'model.0.weight' was replaced")

    def test_moved_to_another_type(self):
        self.model.to(torch.float64)
        self.refused("(parameter|buffer) 'model.*' (was float32 and is float64|was replaced)")

    def test_frozen(self):
        self.model[2].requires_grad_(False)
        self.refused("parameter 'model.2.1.weight' was trained and is frozen")
        self.model[2].requires_grad_(True)
        self.right()

    def test_a_check_does_not_forget_it(self):
        self.model.train()
        self.assertFalse(self.captured.check(self.y))
        self.refused("module 'model' was in evaluation mode")


class Writes(WatchTest):
    def test_load_state_dict(self):
        other = {name: torch.rand_like(t) if t.is_floating_point() else t
                 for name, t in self.model.state_dict().items()}
        before = self.captured(self.y)
        self.model.load_state_dict(other)
        self.right()
        self.assertFalse(same_bits(before, self.captured(self.y)))

    def test_set_data(self):
        before = self.captured(self.y)
        self.model[0].weight.data = torch.randn(4, 3)
        self.right()
        self.assertFalse(same_bits(before, self.captured(self.y)))

    def test_in_place(self):
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter.mul_(0.5)
        self.right()


class Programs(WatchTest):
    def test_that_change_their_modules_themselves(self):
        """How a run leaves them is how the next one finds them."""
        model = network()

        def program(x):
            model.train()
            y = model(x)
            model.eval()
            model[2][1].requires_grad_(False)
            return y

        captured = flashlight.trace(program, self.x)
        captured(self.y)
        model.train()
        with self.assertRaisesRegex(flashlight.Error, "was in evaluation mode"):
            captured(self.y)

    def test_loaded_ones_have_no_modules(self):
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            self.captured.save(folder + "/net")
            loaded = flashlight.load(folder + "/net")
        expected = self.model(self.y) * 2
        self.model.train()
        self.assertTrue(same_bits(loaded(self.y), expected))


def residual_network():
    """As many modules and tensors as ResNet-18 has, with its convolutions."""
    def block(channels, to, stride):
        return torch.nn.ModuleDict({
            "conv1": torch.nn.Conv2d(channels, to, 3, stride, 1, bias=False),
            "bn1": torch.nn.BatchNorm2d(to), "relu": torch.nn.ReLU(),
            "conv2": torch.nn.Conv2d(to, to, 3, 1, 1, bias=False), "bn2": torch.nn.BatchNorm2d(to),
            **({"down": torch.nn.Sequential(torch.nn.Conv2d(channels, to, 1, stride, bias=False),
                                            torch.nn.BatchNorm2d(to))} if stride > 1 else {})})

    class ResNet18(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = torch.nn.Conv2d(3, 64, 7, 2, 3, bias=False)
            self.bn1, self.relu = torch.nn.BatchNorm2d(64), torch.nn.ReLU()
            self.pool = torch.nn.MaxPool2d(3, 2, 1)
            self.layers = torch.nn.ModuleList(
                torch.nn.ModuleList([block(max(64, to // 2) if stride > 1 else to, to, stride),
                                     block(to, to, 1)])
                for to, stride in ((64, 1), (128, 2), (256, 2), (512, 2)))
            self.fc = torch.nn.Linear(512, 1000)

        def forward(self, x):
            x = self.pool(self.relu(self.bn1(self.conv1(x))))
            for layer in self.layers:
                for part in layer:
                    y = part["relu"](part["bn1"](part["conv1"](x)))
                    y = part["bn2"](part["conv2"](y))
                    x = part["relu"](y + (part["down"](x) if "down" in part else x))
            return self.fc(x.mean((2, 3)))

    return ResNet18()


class Cost(unittest.TestCase):
    def test_of_resnet18(self):
        """Measured by hand; here the numbers are printed and the results compared."""
        torch.manual_seed(0)
        model, x = residual_network().eval(), torch.randn(1, 3, 224, 224)
        self.assertEqual(len(list(model.parameters())), 62)
        self.assertGreater(len(list(model.modules())), 60)
        with torch.no_grad():
            captured = flashlight.trace(model, x)
            self.assertTrue(same_bits(captured(x), model(x)))
        call = min(timeit.repeat(lambda: captured(x), number=3, repeat=3)) / 3
        watch = min(timeit.repeat(captured._program.changed, number=100, repeat=3)) / 100
        print(f"a call {call * 1e3:.1f} ms, the watch {watch * 1e6:.1f} us: {watch / call:.3%}")


if __name__ == "__main__":
    no_looks.main()
