"""Every error of Python's own: caused here, and listed with its message in docs/errors.md."""

import contextlib
import copy
import os
import pathlib
import re
import unittest

import no_looks  # noqa: F401  before flashlight
import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import composit
import composit.numpy as cnp
import flashlight
from flashlight import host_memory

DOCUMENT = pathlib.Path(__file__).resolve().parents[3] / "docs/errors.md"


def documented() -> dict[str, str]:
    """Messages of the section, and what is raised."""
    section = DOCUMENT.read_text().split("## In Python\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([\w, ]+) \| `(.*?)` \| .*\|$", section, re.MULTILINE)
    return {message: raised for raised, message in rows}


def linear():
    return flashlight.trace(torch.nn.Linear(3, 2), torch.ones(1, 3))


def scaled():
    return flashlight.trace(lambda x, by: x * by, torch.ones(2), 2)


@composit.numpy.wrap_as_operation()
def by_sign(x):
    return 2 * x if (x > 0).all() else -x


def derivative_of_python():
    x = cnp.asarray([1.0])
    return composit.nn.chain_rule({by_sign(x): np.ones(1)}, [x])


def scope_before_its_block():
    flashlight.tracer.trace().lazy(torch.ones(2))


class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def mode_past_its_with():
    def program(x):
        torch._C._push_on_torch_dispatch_stack(Mode())
        try:
            return x + 1
        finally:
            torch._C._pop_torch_dispatch_stack(None)

    flashlight.trace(program, torch.ones(2))


@flashlight.vmap
def relu(x):
    if x < 0.0:
        return 0.0
    return x


def optimized_without_gradients():
    x = cnp.random.random((2,))
    composit.nn.optimize([x], [], composit.nn.sgd_optimizer(0.1))


def written_on_the_host():
    flashlight.trace(lambda x: x.numpy().fill(3) or x * 2, torch.ones(2))


def read_on_the_host():
    captured = flashlight.trace(lambda x: x * x.numpy().max(), torch.ones(2000))
    host_memory.refuse_large_reads(captured._program.large_reads)


def changed_after_its_capture():
    model = torch.nn.Linear(3, 2)
    captured = flashlight.trace(model, torch.ones(1, 3))
    model.eval()
    captured(torch.ones(1, 3))


def changed_after_its_family():
    model = torch.nn.Linear(3, 2)
    family = flashlight.trace_family(model, [torch.ones(rows, 3) for rows in (2, 4, 5)])
    model.eval()
    family(torch.ones(4, 3))


@contextlib.contextmanager
def looks():
    """Captures are confirmed by looks meanwhile."""
    before = os.environ.pop("FLASHLIGHT_SEEN_ONCE")
    try:
        yield
    finally:
        os.environ["FLASHLIGHT_SEEN_ONCE"] = before


def confirmed(program, *examples):
    with looks():
        captured = flashlight.trace(program, *examples[0])
        for example in examples[1:]:
            captured(*example)
    assert captured.trust == "confirmed"
    return captured


def rate_changed_after_its_capture():
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)

    def step(x):
        optimizer.zero_grad()
        (x * weight).sum().backward()
        optimizer.step()

    captured = confirmed(step, *((torch.full((2,), float(i)),) for i in range(5)))
    optimizer.param_groups[0]["lr"] = 0.01
    captured(torch.ones(2))


def family_of_a_number():
    return flashlight.trace_family(lambda x, by: x * by,
                                   [(torch.ones(rows), by) for rows, by in [(3, 0.3), (5, 0.17), (8, 0.4)]])


def large_integer():
    flashlight.trace_family(lambda x, by: x * by,
                            [(torch.arange(rows), by) for rows, by in [(3, 3), (5, 17), (8, 2 ** 60)]])


class Holder(torch.nn.Module):
    state = None


def state_replaced_after_its_family():
    model = Holder()
    model.state = torch.zeros(3)
    family = flashlight.trace_family(lambda x: x - model.state.add_(x.sum(0)),
                                     [torch.ones(rows, 3) for rows in (2, 4, 5)])
    model.state = torch.ones(3)
    family(torch.ones(4, 3))


def state_written_after_its_family():
    model = Holder()

    def step(x):
        model.state = torch.cat([model.state, x])
        return model.state.sum(0)

    def examples():
        for rows in (9, 2, None, None):
            if rows:
                model.state = torch.ones(rows, 3)
            yield torch.ones(1, 3)

    family = flashlight.trace_family(step, examples())
    family(torch.ones(1, 3))
    model.state.zero_()
    family(torch.ones(1, 3))


def steps_a_scheduler():
    weight = torch.ones(2, requires_grad=True)
    scheduler = torch.optim.lr_scheduler.StepLR(torch.optim.SGD([weight], lr=0.1), 10)

    def step(x):
        scheduler.step()
        return x * 2
    flashlight.trace(step, torch.ones(2))


def reciprocal():
    return confirmed(lambda x, y: x * (1 / y.item()),
                     *((torch.ones(2), torch.tensor(float(i))) for i in range(1, 6)))


CAUSES = {
    "[structure] ": lambda: flashlight.trace(lambda x, g: x, torch.ones(2), torch.Generator()),
    "[capture] expected arguments": lambda: scaled()(torch.ones(2), 3),
    "[capture] … since": changed_after_its_capture,
    "[capture] '…' of its": rate_changed_after_its_capture,
    "[save] expected a capture": lambda: reciprocal().save("unwritten"),
    "[replay] guard: '…' of": lambda: reciprocal()(torch.ones(2), torch.tensor(0.0)),
    "[trace] …: the program wrote": written_on_the_host,
    "[trace] … reads": read_on_the_host,
    "[export] expected": lambda: linear().export("model.bin"),
    "[family] … since": changed_after_its_family,
    "[family] expected the names": lambda: flashlight.trace_family(torch.sin, [], sizes={"rows": (2, 9)}),
    "[family] expected … as the number": lambda: family_of_a_number()(torch.ones(4), 2),
    "[family] expected an integer": large_integer,
    "[family] expected the number": lambda: family_of_a_number().with_numbers(input_1=0.2)(torch.ones(4), 0.3),
    "[family] expected the state '…' where": state_replaced_after_its_family,
    "[family] expected the state '…' with": state_written_after_its_family,
    "[generate] expected a prompt": lambda: flashlight.generate(None, ["text"], max_tokens=1),
    "[load] expected a number": lambda: flashlight.load_onnx("a.onnx", {"batch": ()}),
    "[load] expected sizes": lambda: flashlight.load("a_folder", sizes={"batch": 2}),
    "[export] .": lambda: linear().export("model.pt2", opset=20),
    "[capture] the program steps": steps_a_scheduler,
    "[capture] a capture is": lambda: copy.deepcopy(linear()),
    "[compile] compiled code": lambda: copy.deepcopy(linear().compile()),
    "[trace] a scope": scope_before_its_block,
    "[trace] … went": mode_past_its_with,
    "[vmap] ": lambda: flashlight.vmap(lambda x: x)(1.0),
    "[….vjp] ": lambda: relu.vjp(torch.ones(2)),
    "[composit] expected a dtype": lambda: cnp.exp(cnp.ones((2,))).astype("nonsense"),
    "[composit] expected numbers": lambda: cnp.exp(cnp.ones((2,))).astype("S1"),
    "[composit] NumPy has no": lambda: composit.evaluate(cnp.ones((2,)).astype("bfloat16")),
    "[evaluate] expected at least": lambda: composit.evaluate(),
    "[grad] ": lambda: composit.nn.grad(cnp.ones((2,)), []),
    "[loss] ": lambda: composit.nn.mse_loss(cnp.ones((2,)), cnp.ones((2,)), reduction="most"),
    "[optimize] ": optimized_without_gradients,
    "[numpy.get_item] ": lambda: cnp.ones((2,))["a"],
    "… is a function of Python": derivative_of_python,
    "[LazyTensor] a condition": lambda: bool(cnp.random.random((2,))),
    "[LazyTensor] arrays of": lambda: cnp.ones((2,)).__setitem__(0, 1),
    "[numpy.…] a result": lambda: np.exp(cnp.ones((2,)), out=np.ones(2)),
    "[LazyTensor] composit has": lambda: cnp.ones((2,)).byteswap(),
}


class Errors(unittest.TestCase):
    def test_say_what_the_document_says(self):
        messages = documented()
        self.assertEqual(len(messages), len(CAUSES))
        for begin, cause in CAUSES.items():
            with self.subTest(begin):
                [message] = [text for text in messages if text.startswith(begin)]
                classes = {"Error": composit.Error, "TypeError": TypeError, "AttributeError": AttributeError}
                expected = ".*".join(map(re.escape, message.split("…")))
                for name in messages[message].split(", "):
                    with self.assertRaises(classes[name]) as raised:
                        cause()
                    self.assertRegex(str(raised.exception), f"(?s)^{expected}$")

    def test_are_one_class(self):
        self.assertIs(flashlight.Error, composit.Error)


if __name__ == "__main__":
    unittest.main()  # some causes are confirmed captures
