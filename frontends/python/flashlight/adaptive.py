"""Programs that become faster while they are called.

    fast = flashlight.adaptive(model)           # called like the model, and as right
    y = fast(x)
    print(fast.report())                        # what ran, how often, and why

Until something faster is known to be the program, the program itself runs: sizes that are new are
recorded, and recordings of several sizes become a family; what is called again is compared with the
program, and then compiled in the background. A guard that fails, another mode of a module, numbers
that are others: the program runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from composit import Error

from flashlight import _flashlight
from flashlight.capture import HIDDEN_FOLDERS
from flashlight.program import Program, modules_of
from flashlight.structure import Structure, flatten
from flashlight.watch import Watch

# A program that makes its modules anew in each call runs by itself, and one with a number among its
# arguments that is another each time.
_MOST_PROGRAMS = 16  # of one structure of arguments
_MOST_STRUCTURES = 1024

_recording = threading.RLock()  # what watches a run of Python is there once in a process


def adaptive(program: Callable, backend: str = "mosaic", *, checked_sizes: int = 8,
             sample_every: int = 256, most_examples: int = 12, most_programs: int = 256,
             ahead: bool = True, overhead: float = 0.02, in_background: bool = True,
             **options: Any) -> "Adaptive":
    """Makes a module, or any callable, adaptive. It runs nothing yet.

    checked_sizes: of sizes that a family gives, the first so many are compared with the program.
    sample_every: one call of compiled code in so many is compared with the program; 0: none.
    most_examples: recordings that a family is made of. most_programs: ready at a time; the one
    that was called longest ago goes. ahead: sizes of a family are planned before they are asked
    for, while there is nothing else to do. overhead: recordings take longer than the program; of
    the time of all calls they may cost this share, the first three hundredths of a second, and what
    compiled code has saved, and until they may, the program runs (math.inf: whatever they cost).
    in_background: where False, a call waits until its sizes are compiled. options: as of
    `Capture.compile`.

    Numbers that a function finds around it are seen when it is recorded, compared with the program,
    and sampled; where they change between samples, pass them as arguments."""
    settings = {"checked_sizes": checked_sizes, "sample_every": sample_every,
                "most_examples": most_examples, "most_programs": most_programs,
                "ahead": ahead, "overhead": overhead, "in_background": in_background}
    return Adaptive(program, _flashlight.Adaptive(backend, options, settings, HIDDEN_FOLDERS))


class Adaptive:
    """An adaptive program. Several threads may call it, as far as the program allows that."""

    def __init__(self, function: Callable, native):
        self._function = function
        self._native = native
        self._programs: dict[str, list[_AdaptiveProgram]] = {}  # by structure of arguments
        self._plain: dict[str, int] = {}  # calls of the program that nothing is known of, by why
        self._lock = threading.Lock()

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the program gives, and what it raises."""
        if _flashlight.is_recording():
            return self._function(*inputs, **kwargs)
        try:
            tensors, structure = flatten((tuple(inputs), kwargs), "arguments")
            program = self._program_for(structure)
        except Error as error:
            return self._run_plain(str(error), inputs, kwargs)
        if program.unfit:
            return self._run_plain(program.unfit, inputs, kwargs)
        program.last.result = None
        results, text = self._native.call(program, tensors, program.text, program.signature)
        if program.last.result is not None:  # the program ran: its own value
            [result], program.last.result = program.last.result, None
            return result
        return program.structures[text].unflatten(results)

    def report(self):
        """What ran, how often, and why: calls, compiled, recorded, refused, samples, fitted,
        families, combinations; printed, a line each."""
        report = self._native.report()
        for why, calls in self._plain.items():
            report.add(why, calls)
        return report

    def wait(self) -> None:
        """Waits until nothing is left to compile."""
        self._native.wait()

    def _run_plain(self, why: str, inputs, kwargs) -> Any:
        with self._lock:
            self._plain[why] = self._plain.get(why, 0) + 1
        return self._function(*inputs, **kwargs)

    def _program_for(self, structure: Structure) -> "_AdaptiveProgram":
        """The one of these arguments, and of the modules as they are now."""
        text = structure.text()
        modules = modules_of(self._function)
        with self._lock:
            if len(self._programs) == _MOST_STRUCTURES and text not in self._programs:
                raise Error("numbers among its arguments change from call to call")
            known = self._programs.setdefault(text, [])
            for program in known:
                if program.has(modules) and not program.changed():
                    return program
            if len(known) == _MOST_PROGRAMS:
                raise Error("its modules change from call to call")
            known.append(_AdaptiveProgram(self._function, structure, modules, str(len(known))))
            return known[-1]


class _AdaptiveProgram(Program):
    """Runs the program; as a capture does while it is recorded, and else as it is."""

    def __init__(self, function: Callable, arguments: Structure, modules: dict, signature: str):
        super().__init__(function, arguments, modules)
        self.text = arguments.text()
        self.signature = signature
        self.structures: dict[str, Structure] = {}  # of results, by their texts
        self.unfit = ""  # why it cannot be recorded
        self.last = threading.local()  # what a run in this thread gave, in a tuple
        self.watch = Watch(modules)

    def has(self, modules: dict) -> bool:
        return (len(modules) == len(self.modules)
                and all(self.modules.get(name) is module for name, module in modules.items()))

    def __call__(self, tensors: list) -> tuple[list, str]:
        if _flashlight.is_recording():
            with _recording:
                return self._record(tensors)
        positional, named = self.arguments.unflatten(tensors)
        self.last.result = (self.function(*positional, **named),)
        return [], "null"

    def _record(self, tensors: list) -> tuple[list, str]:
        flat, text = super().__call__(tensors)
        self.structures[text] = self.results
        return flat, text

    def run(self, positional: tuple, named: dict) -> Any:
        result = super().run(positional, named)
        self.last.result = (result,)
        return result

    def refuse(self, why: str) -> None:
        self.unfit = why

    def flat(self, result: Any) -> tuple[list, Structure]:
        try:
            return super().flat(result)
        except Error as error:
            self.unfit = str(error)
            return [], Structure("absent")

    def beyond(self) -> str:
        """What the last recorded run did that a graph does not do."""
        return self.unfit or "; ".join(map(str, self.changes))
