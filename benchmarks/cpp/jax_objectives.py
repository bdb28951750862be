"""The objectives of examples/objectives in JAX: how fast its compiler makes them on one thread.

A part of `./dev bench cpp`, which makes the environment with the packages of requirements-jax.txt.
"""

import os

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # Before JAX counts the processors.

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.scipy.special import logsumexp  # noqa: E402

import problems  # noqa: E402

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")


def gmm(parameters, x):
    alphas, means, icf = parameters
    (k, d), n = means.shape, x.shape[0]
    log_diagonal, below = icf[:, :d], icf[:, d:]
    diagonal = jnp.exp(log_diagonal)
    numbers = jnp.concatenate([diagonal, below, jnp.zeros((k, 1))], axis=1)
    factors = numbers[:, problems.places_in_triangle(d)]
    moved = jnp.matmul(x, factors.reshape(k * d, d).T).reshape(n, k, d)
    moved = moved - jnp.einsum("kij,kj->ki", factors, means)
    log_determinants = log_diagonal.sum(1)
    terms = alphas + log_determinants - 0.5 * (moved**2).sum(2)
    likelihood = logsumexp(terms, axis=1).sum() - n * logsumexp(alphas)
    frobenius = (diagonal**2).sum() + (below**2).sum()
    prior = 0.5 * problems.WISHART_GAMMA**2 * frobenius
    prior -= problems.WISHART_M * log_determinants.sum()
    return likelihood + prior + problems.gmm_constant(d, k, n)


def lstm(parameters, state, sequence):
    layers, (in_weight, out_weight, out_bias) = parameters

    def cell(layer, state, x):
        (wf, wi, wo, wc, bf, bi, bo, bc), (hidden, cell) = layer, state
        forget, ingate = jax.nn.sigmoid(x * wf + bf), jax.nn.sigmoid(hidden * wi + bi)
        outgate, change = jax.nn.sigmoid(x * wo + bo), jnp.tanh(hidden * wc + bc)
        cell = cell * forget + ingate * change
        return jnp.stack([outgate * jnp.tanh(cell), cell])

    def step(state, characters):
        flow, gold = characters
        flow = flow * in_weight
        states = []
        for layer, before in zip(layers, state):
            states.append(cell(layer, before, flow))
            flow = states[-1][0]
        prediction = flow * out_weight + out_bias
        normaliser = jnp.log(jnp.exp(prediction).sum() + 2)
        return jnp.stack(states), (gold * (prediction - normaliser)).sum()

    _, likelihoods = jax.lax.scan(step, state, (sequence[:-1], sequence[1:]))
    return -likelihoods.sum() / sequence[1:].size


def rotated(rotation, x):
    """Rodrigues' formula; x: [3]."""
    square = rotation @ rotation
    angle = jnp.sqrt(jnp.where(square != 0, square, 1))
    axis, cosine = rotation / angle, jnp.cos(angle)
    turned = x * cosine + jnp.cross(axis, x) * jnp.sin(angle) + axis * (axis @ x) * (1 - cosine)
    return jnp.where(square != 0, turned, x + jnp.cross(rotation, x))


def reprojection_error(seen, feature):
    """Of one observation; seen: camera, point, weight."""
    camera, point, weight = seen
    turned = rotated(camera[:3], point - camera[3:6])
    plane = turned[:2] / turned[2]
    radius = plane @ plane
    stretched = plane * (1 + camera[9] * radius + camera[10] * radius**2)
    return weight * (stretched * camera[6] + camera[7:9] - feature)


def bundle_adjustment(cameras, points, weights, observed_cameras, observed_points, features):
    seen = (cameras[observed_cameras], points[observed_points], weights)
    return [jax.vmap(reprojection_error)(seen, features), 1 - weights**2]


def bundle_jacobian(cameras, points, weights, observed_cameras, observed_points, features):
    seen = (cameras[observed_cameras], points[observed_points], weights)
    camera, point, weight = jax.vmap(jax.jacrev(reprojection_error))(seen, features)
    jacobian = jnp.concatenate([camera, point, weight[:, :, None]], axis=2)
    errors = jax.vmap(reprojection_error)(seen, features)
    return [errors, 1 - weights**2, jacobian, -2 * weights]


def hand_tracking(parameters, relatives, inverses, vertices, weights, correspondences, points):
    (pose,) = parameters
    angles = jnp.concatenate([pose, jnp.zeros(1)])
    bend, spread = (angles[np.array(places)] for places in problems.angles_of_bones())
    cx, sx, cz, sz = jnp.cos(bend), jnp.sin(bend), jnp.cos(spread), jnp.sin(spread)
    zero, one = jnp.zeros_like(cx), jnp.ones_like(cx)
    rows = [
        [cz, -sz * cx, sz * sx, zero],
        [sz, cz * cx, -cz * sx, zero],
        [zero, sx, cx, zero],
        [zero, zero, zero, one],
    ]
    relatives = relatives @ jnp.stack([jnp.stack(row, 1) for row in rows], 1)
    absolutes = [relatives[0]]
    for bone in range(1, problems.BONES):
        absolutes.append(absolutes[problems.parent_of_bone(bone)] @ relatives[bone])
    movements = (jnp.stack(absolutes) @ inverses)[:, :3]
    blend = jnp.einsum("nb,bij->nij", weights[correspondences], movements)
    here = vertices[correspondences]
    posed = jnp.einsum("nij,nj->ni", blend[:, :, :3], here) + blend[:, :, 3]
    moved = jax.vmap(rotated, (None, 0))(pose[:3], posed) + pose[3:6]
    return 0.5 * ((points - moved) ** 2).sum()


def sqrl(x):
    """Of one matrix."""
    t = jax.lax.cond(x.sum() < 0, lambda x: -0.125 * x, lambda x: 0.5 * x**2, x)
    return (jnp.sin(t) * t).mean()


def relu3(x):
    return jnp.where(x < 0, 0, jnp.where(x < 1, x**3 / 3, x - 2 / 3))


def gelu(x):
    return 0.5 * x * (1 + jax.lax.erf(x * np.float32(0.5**0.5)))


# The number of parameters, which are the first inputs.
OF_PARAMETERS = {"gmm": (gmm, 3), "lstm": (lstm, 2), "hand_tracking": (hand_tracking, 1)}


def value_and_gradients(function):
    """Of a function whose first argument are the parameters: a flat list."""

    def both(parameters, *rest):
        value, gradients = jax.value_and_grad(function)(parameters, *rest)
        return [value, *gradients]

    return both


def with_vjp(function):
    return lambda x, dy: [function(x)], lambda x, dy: jax.vjp(function, x)[1](dy)


def programs(problem):
    """Two functions of the arguments returned behind them."""
    inputs = [jnp.asarray(array) for array in problem.inputs]
    if problem.kind in OF_PARAMETERS:
        function, count = OF_PARAMETERS[problem.kind]
        arguments = (tuple(inputs[:count]), *inputs[count:])
        return lambda *a: [function(*a)], value_and_gradients(function), arguments
    if problem.kind == "bundle_adjustment":
        return bundle_adjustment, bundle_jacobian, inputs
    function = {"sqrl": sqrl, "relu3": relu3, "gelu": gelu}[problem.kind]
    if problem.kind == "sqrl" and inputs[0].ndim == 3:
        function = jax.vmap(sqrl)
    return *with_vjp(function), inputs


def ways(problem):
    objective, gradient, arguments = programs(problem)
    compiled = [jax.jit(function) for function in (objective, gradient)]
    runs = [lambda f=f: jax.block_until_ready(f(*arguments)) for f in compiled]
    return [("", *runs)]


if __name__ == "__main__":
    problems.serve(ways)
