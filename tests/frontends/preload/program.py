"""A program that knows nothing of Flashlight. Its argument says what it does."""

import os
import sys

import torch


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = torch.nn.Linear(8, 16)
        self.norm = torch.nn.BatchNorm1d(16)

    def forward(self, x):
        return torch.relu(self.norm(self.hidden(x)))


class Doubled(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(context, inputs, output):
        pass

    @staticmethod
    def backward(context, gradient):
        return gradient * 2


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.out = torch.nn.Linear(16, 3)

    def forward(self, image, scale=None):
        y = torch.nn.functional.dropout(self.block(image), 0.5, self.training)
        y = torch.vmap(Doubled.apply)(self.out(y))
        return y if scale is None else y * scale


def train(net, then):
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for i in range(4):
        x, target = torch.randn(5, 8), torch.randint(0, 3, (5,))
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), target)
        loss.backward()
        optimizer.step()
        print("step", i, "loss", loss.item(), flush=True)
        if i == 2 and then == "raise":
            net(torch.randn(5, 9))
        if i == 2 and then == "_exit":
            os._exit(7)


def infer(net):
    net.eval()
    with torch.no_grad():
        for i in range(3):
            print("result", net(torch.randn(5, 8), scale=torch.tensor(2.0)).sum().item())


torch.manual_seed(1)
net = Net()
what = sys.argv[1] if len(sys.argv) > 1 else "train"
infer(net) if what == "infer" else train(net, what)
print("the program's own remark", file=sys.stderr)
sys.exit(3)
