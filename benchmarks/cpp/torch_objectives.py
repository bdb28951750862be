"""The objectives of examples/objectives in LibTorch, eagerly, on one thread, by autograd.

A part of `./dev bench cpp`.

Where torch has two ways of writing a program, both are measured: `_branch` asks for the value of a
sum and branches in Python, sample by sample; `_vmap` is torch.func.vmap of one sample.
"""

import math

import torch

import problems

torch.set_num_threads(1)


def gmm(parameters, x):
    alphas, means, icf = parameters
    (k, d), n = means.shape, x.shape[0]
    log_diagonal, below = icf[:, :d], icf[:, d:]
    diagonal = log_diagonal.exp()
    numbers = torch.cat([diagonal, below, torch.zeros(k, 1, dtype=x.dtype)], 1)
    factors = numbers[:, torch.from_numpy(problems.places_in_triangle(d))]
    moved = (x @ factors.reshape(k * d, d).T).reshape(n, k, d)
    moved = moved - (factors @ means[:, :, None])[:, :, 0]
    log_determinants = log_diagonal.sum(1)
    terms = alphas + log_determinants - 0.5 * moved.square().sum(2)
    likelihood = terms.logsumexp(1).sum() - n * alphas.logsumexp(0)
    frobenius = diagonal.square().sum() + below.square().sum()
    prior = 0.5 * problems.WISHART_GAMMA**2 * frobenius
    prior = prior - problems.WISHART_M * log_determinants.sum()
    return likelihood + prior + problems.gmm_constant(d, k, n)


def lstm_cell(layer, hidden, cell, x):
    wf, wi, wo, wc, bf, bi, bo, bc = layer
    forget, ingate = torch.sigmoid(x * wf + bf), torch.sigmoid(hidden * wi + bi)
    outgate, change = torch.sigmoid(x * wo + bo), torch.tanh(hidden * wc + bc)
    cell = cell * forget + ingate * change
    return outgate * torch.tanh(cell), cell


def lstm(parameters, state, sequence):
    layers, (in_weight, out_weight, out_bias) = [p.unbind(0) for p in parameters]
    layers = [layer.unbind(0) for layer in layers]
    states, characters = [s.unbind(0) for s in state.unbind(0)], sequence.unbind(0)
    total = 0
    for x, gold in zip(characters[:-1], characters[1:]):
        flow = x * in_weight
        for number, layer in enumerate(layers):
            states[number] = lstm_cell(layer, *states[number], flow)
            flow = states[number][0]
        prediction = flow * out_weight + out_bias
        normaliser = (prediction.exp().sum() + 2).log()
        total = total + (gold * (prediction - normaliser)).sum()
    return -total / sequence[1:].numel()


def rotated(rotation, x):
    square = rotation.square().sum(1, keepdim=True)
    turns = square != 0
    angle = torch.where(turns, square, 1).sqrt()
    axis, cosine = rotation / angle, angle.cos()
    along = (axis * x).sum(1, keepdim=True) * (1 - cosine)
    turned = x * cosine + torch.linalg.cross(axis, x) * angle.sin() + axis * along
    return torch.where(turns, turned, x + torch.linalg.cross(rotation, x))


def reprojection_errors(camera, point, weight, features):
    turned = rotated(camera[:, :3], point - camera[:, 3:6])
    plane = turned[:, :2] / turned[:, 2:]
    radius = plane.square().sum(1, keepdim=True)
    stretched = plane * (1 + camera[:, 9:10] * radius + camera[:, 10:] * radius.square())
    return weight * (stretched * camera[:, 6:7] + camera[:, 7:9] - features)


def bundle_adjustment(cameras, points, weights, observed_cameras, observed_points, features):
    seen = (cameras[observed_cameras], points[observed_points], weights[:, None])
    return [reprojection_errors(*seen, features), 1 - weights.square()]


def bundle_jacobian(cameras, points, weights, observed_cameras, observed_points, features):
    seen = (cameras[observed_cameras], points[observed_points], weights[:, None])
    seen = [part.detach().requires_grad_() for part in seen]
    errors = reprojection_errors(*seen, features)
    rows = [torch.cat(torch.autograd.grad(column.sum(), seen, retain_graph=True), 1)
            for column in errors.unbind(1)]
    weight = weights.detach().requires_grad_()
    weight_errors = 1 - weight.square()
    by_weight = torch.autograd.grad(weight_errors.sum(), weight)[0]
    return [errors.detach(), weight_errors.detach(), torch.stack(rows, 1), by_weight]


def hand_tracking(parameters, relatives, inverses, vertices, weights, correspondences, points):
    (pose,) = parameters
    angles = torch.cat([pose, torch.zeros(1, dtype=pose.dtype)])
    bend, spread = (angles[torch.tensor(places)] for places in problems.angles_of_bones())
    cx, sx, cz, sz = bend.cos(), bend.sin(), spread.cos(), spread.sin()
    zero, one = torch.zeros_like(cx), torch.ones_like(cx)
    turns = torch.stack([cz, -sz * cx, sz * sx, zero, sz, cz * cx, -cz * sx, zero,
                         zero, sx, cx, zero, zero, zero, zero, one], 1)
    relatives = relatives @ turns.reshape(-1, 4, 4)
    absolutes = [relatives[0]]
    for bone in range(1, problems.BONES):
        absolutes.append(absolutes[problems.parent_of_bone(bone)] @ relatives[bone])
    movements = (torch.stack(absolutes) @ inverses)[:, :3]
    blend = (weights[correspondences] @ movements.reshape(-1, 12)).reshape(-1, 3, 4)
    here = vertices[correspondences]
    posed = (blend[:, :, :3] @ here[:, :, None])[:, :, 0] + blend[:, :, 3]
    moved = rotated(pose[None, :3].expand_as(posed), posed) + pose[3:6]
    return 0.5 * (points - moved).square().sum()


def sqrl(x):
    t = torch.where(x.sum((-2, -1), keepdim=True) < 0, -0.125 * x, 0.5 * x.square())
    return (t.sin() * t).mean((-2, -1))


def sqrl_branch(x):
    if x.ndim == 3:
        return torch.stack([sqrl_branch(sample) for sample in x])
    t = -0.125 * x if x.sum() < 0 else 0.5 * x.square()
    return (t.sin() * t).mean()


def relu3(x):
    """Masked, as it is written where a branch cannot be."""
    return ((x >= 0) & (x < 1)) * (x**3 / 3) + (x >= 1) * (x - 2 / 3)


def relu3_where(x):
    return torch.where(x < 0, 0.0, torch.where(x < 1, x**3 / 3, x - 2 / 3))


def gelu(x):
    return 0.5 * x * (1 + torch.erf(x * (1 / math.sqrt(2))))


FUNCTIONS = {
    "sqrl": {"": sqrl, "_branch": sqrl_branch, "_vmap": torch.func.vmap(sqrl)},
    "relu3": {"": relu3, "_where": relu3_where},
    "gelu": {"": gelu, "_native": torch.nn.functional.gelu},
}


# The number of parameters, which are the first inputs.
OF_PARAMETERS = {"gmm": (gmm, 3), "lstm": (lstm, 2), "hand_tracking": (hand_tracking, 1)}


def without_grad(function):
    return lambda *a: torch.no_grad()(function)(*a)


def value_and_gradients(function):
    def both(parameters, *rest):
        parameters = [p.detach().requires_grad_() for p in parameters]
        value = function(parameters, *rest)
        return [value.detach(), *torch.autograd.grad(value, parameters)]

    return both


def vjp(function):
    def back(x, dy):
        x = x.detach().requires_grad_()
        return torch.autograd.grad(function(x), x, dy)

    return back


def programs(problem):
    """What follows the name, two functions, and their arguments, for each way of writing them."""
    inputs = [torch.from_numpy(array) for array in problem.inputs]
    if problem.kind == "bundle_adjustment":
        yield "", without_grad(bundle_adjustment), bundle_jacobian, inputs
    elif problem.kind in FUNCTIONS:
        for suffix, function in FUNCTIONS[problem.kind].items():
            if suffix != "_vmap" or inputs[0].ndim == 3:
                forward = without_grad(lambda x, dy, function=function: [function(x)])
                yield suffix, forward, vjp(function), inputs
    else:
        function, count = OF_PARAMETERS[problem.kind]
        arguments = (inputs[:count], *inputs[count:])
        yield "", without_grad(lambda *a: [function(*a)]), value_and_gradients(function), arguments


def ways(problem):
    for suffix, objective, gradient, arguments in programs(problem):
        runs = [lambda f=f, a=arguments: f(*a) for f in (objective, gradient)]
        yield suffix, *runs


if __name__ == "__main__":
    problems.serve(ways)
