"""Programs that use torch.func's transforms: what these call in the end is captured."""

import unittest
import warnings

import no_looks  # before flashlight
import torch

import flashlight
from agreement import same_bits
from capture_test import CaptureTest, network


class SineByHand(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.sin()

    @staticmethod
    def setup_context(context, inputs, _):
        context.save_for_backward(*inputs)

    @staticmethod
    def backward(context, gradient):
        return gradient * context.saved_tensors[0].cos()


class Transforms(CaptureTest):
    def test_vmap(self):
        self.agree(torch.func.vmap(lambda row: row.sin().sum() + 1))
        self.agree(lambda x: torch.func.vmap(torch.func.vmap(lambda a: a * 2 + x.sum()))(x))
        self.agree(torch.func.vmap(lambda row: row.clone().mul_(2).add_(1)))

    def test_grad(self):
        self.agree(torch.func.grad(lambda x: x.sin().sum()))
        self.agree(torch.func.vmap(torch.func.grad(
            lambda row: torch.func.grad(lambda r: r.pow(3).sum())(row).sum())))

    def test_jacobians(self):
        for transform in (torch.func.jacrev, torch.func.jacfwd, torch.func.hessian):
            self.agree(transform(lambda x: (x @ x.T).tanh().sum(0)))

    def test_jacobians_by_autograds_own_vmap(self):
        from torch.autograd.functional import hessian, jacobian

        self.agree(lambda x: jacobian(lambda y: y.view(-1).sin(), x, vectorize=True))
        self.agree(lambda x: hessian(lambda y: y.view(-1).sin().sum(), x, vectorize=True))

    def test_tensors_that_outlive_their_transform(self):
        self.agree(lambda x: torch.func.vjp(torch.sin, x)[1](torch.ones_like(x))[0])
        self.agree(lambda x: torch.func.linearize(torch.sin, x)[1](x))

    def test_autograd_function(self):
        self.agree(torch.func.vmap(SineByHand.apply))
        self.agree(torch.func.grad(lambda x: SineByHand.apply(x).sum()))

    def test_gradients_per_sample(self):
        model = network()

        def loss(parameters, row):
            return torch.func.functional_call(model, parameters, (row,)).square().sum()

        def program(x):
            parameters = {name: p.detach() for name, p in model.named_parameters()}
            return torch.func.vmap(torch.func.grad(loss), (None, 0))(parameters, x)

        self.agree(program)

    def test_dropout(self):
        """It draws by a tensor of which it uses the sizes alone: no constant of what is in there."""
        program = torch.func.vmap(lambda row: torch.dropout(row, 0.5, True), randomness="different")
        captured = flashlight.trace(program, self.x)
        results = []
        for function in (captured, program):
            torch.manual_seed(5)
            results.append(function(self.y))
        self.assertTrue(same_bits(*results))
        self.assertEqual(captured.constants(), {})

    def test_functionalize(self):
        def in_place(x):
            y = torch.zeros_like(x).copy_(x)
            y[0].add_(1)
            return y.mul_(2)

        captured = self.agree(lambda x: torch.func.functionalize(in_place)(x).sin())
        self.assertFalse([n.op for n in captured.graph.nodes if n.op.startswith("composit::storage")])

    def test_operators_that_look_ahead(self):
        """They run their functions on FakeTensors first, by torch.compile."""
        from torch.nn.attention.flex_attention import flex_attention

        def attention(x):
            x = x[None, None]
            return flex_attention(x, x, x, score_mod=lambda score, b, h, i, j: score + i - j)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # flex_attention would like to be compiled
            self.agree(attention)
        self.agree(torch.compile(lambda x: x.sin() + 2, backend="eager"))
        captured = self.agree(lambda x: torch.cond((x * x).sum() > 0, torch.sin, torch.cos, (x,)))
        with self.assertRaisesRegex(flashlight.Error, "guard"):
            captured(torch.zeros_like(self.x))

    def test_gradient_through_vmap(self):
        model = network()
        captured = flashlight.trace(lambda x: torch.func.vmap(model)(x).square().sum(), self.x)
        report = captured.check_grad(self.y)
        self.assertTrue(report, str(report))


if __name__ == "__main__":
    no_looks.main()
