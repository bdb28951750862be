"""Programs for all sizes: captures of one program at several sizes, made one.

    family = flashlight.trace_family(model, [(ids_2x16,), (ids_3x23,), (ids_5x12,)],
                                     sizes=["batch", "tokens"])
    family(ids_4x21)                            # the same bits as model(ids_4x21)
    family = flashlight.trace_family(           # chooses its examples, and where it is checked
        model, lambda batch, tokens: torch.randint(99, (batch, tokens)),
        sizes={"batch": (1, 8), "tokens": (1, 512)})
"""

from __future__ import annotations

import copy
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

from composit import Error

from flashlight import _flashlight
from flashlight.capture import Capture, _Arguments, _call_text, _identifier, export, loaded_arguments, seen_once, trace
from flashlight.structure import Structure, flatten, parse
from flashlight.watch import Watch


def trace_family(program: Callable, examples: Iterable | Callable,
                 sizes: Sequence[str] | Mapping[str, tuple] = (),
                 predicates: Mapping[str, str] | None = None,
                 numbers: Mapping[str, Callable[[], float]] | None = None) -> "Family":
    """Runs `program` once per example, and makes a family of the captures: a graph, and a formula
    over sizes for each integer that differs between examples.

    examples: at least three; of each a tensor, a tuple of arguments, a dict of named ones, or a pair
    (tuple, dict). Sizes that differ should differ in all three, and not all by an even number.
    sizes: their names, in the order of arguments and axes.

    Or a function that makes an example of sizes given by name, and `sizes` with the range of each:
    (low, high) or (low, high, step). The family then runs the program at three sizes of its choice,
    at more where formulas ask for them, at both ends of the ranges and at some sizes between.

    predicates: what the program asks of a number that it reads with `item`, by the line that reads
    it: {"model.py:12": "> 0"}. A tracer sees the number, not the comparison; examples with equal
    answers have to go the same way. "any": it compares the number with nothing.

    numbers: numbers that are no sizes and that change between calls, as a learning rate under a
    schedule: of each a function that reads it, {"lr": lambda: optimizer.param_groups[0]["lr"]}. It is
    read before each example and before each call. Floats among the arguments need none. Examples may
    come from a generator, which can bring the program into another state between them.

    Error that names the node and its line where the program takes other ways, or where an integer
    follows from sizes in no way or in several."""
    predicates, numbers = dict(predicates or {}), _Numbers(numbers or {})
    if callable(examples):
        if numbers.sources:
            raise Error("[family] expected examples, not a function that makes them, where numbers "
                        "change that are no sizes")
        return _over(program, examples, sizes, predicates)
    if isinstance(sizes, Mapping):
        raise Error("[family] expected the names of sizes beside examples, as in sizes=['tokens'], received "
                    "ranges: these go with a function that makes examples, as lambda tokens: …, since a family "
                    "is checked at sizes of its own choice there")
    captures, shown = [], []
    for example in examples:
        inputs, kwargs = _call_of(example)
        shown.append(numbers.show())
        captures.append(trace(program, *inputs, seen_once, **kwargs))
    if not captures:
        raise Error("[unify] expected examples, received none")
    return Family(_flashlight.Family([c._native for c in captures], list(sizes),
                                     predicates, shown), captures, numbers)


def load_family(folder: str | pathlib.Path) -> "Family":
    """The family that `Family.save`, or `flashlight unify`, wrote, or a file of torch.export has."""
    return Family(_flashlight.Family.load(pathlib.Path(folder)), [])


class _Numbers:
    """Functions that read numbers of the program, and the types that these had when it was shown."""

    def __init__(self, sources: Mapping[str, Callable[[], float]]):
        self.sources = dict(sources)
        self.types: dict[str, set[str]] = {name: set() for name in sources}

    def show(self) -> dict[str, float]:
        """The numbers of an example."""
        values = {name: get() for name, get in self.sources.items()}
        for name, value in values.items():
            self.types[name].add(_type_of(value))
        return {name: _double(name, value) for name, value in values.items()}

    def read(self) -> dict[str, float]:
        """The present numbers. Error where one has a type that no example had."""
        values = {name: get() for name, get in self.sources.items()}
        for name, value in values.items():
            if (kind := _type_of(value)) not in self.types[name]:
                raise Error(f"[family] expected {' or '.join(self.types[name])} as the number '{name}', as in the "
                            f"examples, received {kind}, {value}: operators may give another dtype for it")
        return {name: _double(name, value) for name, value in values.items()}


def _type_of(value: Any) -> str:
    return "an integer" if isinstance(value, Integral) else "a float"


def _double(name: str, value: Any) -> float:
    if isinstance(value, Integral) and abs(value) >= 2 ** 53:
        raise Error(f"[family] expected an integer below 2^53 as the number '{name}', received {value}: numbers of "
                    "families are doubles, and not each integer above is one; pass it in a tensor")
    return float(value)


def _call_of(example: Any) -> tuple[tuple, dict]:
    if isinstance(example, tuple) and len(example) == 2 and isinstance(example[0], tuple) and (
            isinstance(example[1], dict)):
        return example
    if isinstance(example, dict):
        return (), example
    return (example if isinstance(example, tuple) else (example,)), {}


def _over(program, make, sizes, predicates) -> "Family":
    if not isinstance(sizes, Mapping):
        raise Error("[family] expected the range of each size beside a function that makes "
                    "examples, as in sizes={'tokens': (1, 512)}")
    captures: list[Capture] = []
    calls: dict[int, tuple] = {}  # by the first tensor of an example

    def arguments_at(numbers: dict):
        inputs, kwargs = _call_of(make(**numbers))
        tensors, structure = flatten((tuple(inputs), kwargs), "arguments")
        if not tensors:
            raise Error("[family] expected examples with tensors, received "
                        + _call_text(structure))
        calls[id(tensors[0])] = (inputs, kwargs)
        return tensors, structure.text()

    def capture(tensors):
        inputs, kwargs = calls[id(tensors[0])]
        captures.append(trace(program, *inputs, seen_once, **kwargs))
        return captures[-1]._native

    rows = [(name, *range_, *(1,) * (3 - len(range_))) for name, range_ in sizes.items()]
    return Family(_flashlight.family_over(arguments_at, capture, rows, predicates), captures)


class Family:
    """A captured program for a range of sizes. Called like the program: a call binds the family to
    the sizes of its arguments and replays. Error outside of what was shown or checked."""

    def __init__(self, native, captures: list[Capture],
                 numbers: _Numbers | None = None,
                 given: Mapping[str, float] | None = None, watch: Watch | None = None):
        self._native = native
        self._captures = captures  # native holds their programs weakly
        self._bound: dict[tuple, Capture] = {}
        self._numbers = numbers or _Numbers({})
        self._given = dict(given or {})
        self._watch = watch or self._watch_now()
        self._arguments = _Arguments(captures[0]._arguments.structure if captures else loaded_arguments(native))
        self._loaded_results: Structure | None = None

    def _watch_now(self) -> Watch | None:
        """Tells of changes to the program's modules since it ran last."""
        return Watch(self._captures[-1]._program.modules) if self._captures else None

    def _expect_unchanged(self) -> None:
        if self._watch and (changed := self._watch.changed()):
            raise Error(f"[family] {changed} since the program was shown; make the family again")

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        self._expect_unchanged()
        tensors, structure = self._flattened(inputs, kwargs)
        return self._unflattened(*self._native.call(tensors, structure, self._numbers_now()))

    def _flattened(self, inputs, kwargs) -> tuple[list, str]:
        """The tensors, and the structure as text: with the numbers that are there."""
        tensors, structure = flatten((tuple(inputs), kwargs), "arguments")
        if structure != self._arguments.structure and self._native.numbers:
            return tensors, structure.text()  # native tells of others
        return self._tensors(inputs, kwargs), self._native.argument_structure

    def _unflattened(self, results: list, structure: str) -> Any:
        if self._captures:
            return self._captures[0]._results.unflatten(results)
        if self._loaded_results is None:
            self._loaded_results = parse(structure)
        return self._loaded_results.unflatten(results)

    def _numbers_now(self) -> dict[str, float]:
        return {**self._numbers.read(), **self._given}

    def with_numbers(self, **numbers: float) -> "Family":
        """The same family, for which these numbers are what the program has for them. Error for a
        name that no number has. Names with a point are given as `**{"train.py:31": 0.1}`."""
        self._native.with_numbers(numbers)  # tells of wrong names
        numbers = {name: _double(name, value) for name, value in numbers.items()}
        return Family(self._native, self._captures, self._numbers, {**self._given, **numbers}, self._watch)

    @property
    def numbers(self) -> dict[str, str]:
        """The numbers that are no sizes, and who knows them: "given" and "source" are the caller's,
        "counted" is the number of the call, "read" is read by the program."""
        return {name: origin for name, (origin, _) in self._native.numbers.items()}

    def at(self, **sizes: int) -> Capture:
        """A capture at these sizes, with the present numbers: everything works on it."""
        if self._native.numbers:
            return self._captured(self._native.with_numbers(self._numbers_now()).at(sizes))
        key = tuple(sorted(sizes.items()))
        if key not in self._bound:
            self._bound[key] = self._captured(self._native.at(sizes))
        return self._bound[key]

    def check(self, *inputs: Any, **kwargs: Any):
        """Runs the program on these inputs, of any sizes, and compares: the graphs, then the
        results, bit for bit. True where all is well; then the family takes these sizes, too."""
        native = self._native
        self._expect_unchanged()
        if native.numbers:
            native = native.with_numbers(self._numbers_now())
        if not (native.numbers and self._captures):
            report = native.check(self._tensors(inputs, kwargs))
        else:  # numbers among the arguments may be others than in the first example
            program = self._captures[0]._program.function
            report = native.check_example(
                *self._flattened(inputs, kwargs),
                lambda _: trace(program, *inputs, seen_once, **kwargs)._native)
        self._watch = self._watch_now()
        if not report:
            self._bound.clear()  # `at` refuses these sizes
        return report

    def extend(self, *inputs: Any, **kwargs: Any) -> None:
        """One example more. Error, and the family stays what it was, where it does not belong to
        it."""
        if not self._captures:
            raise Error("[family] a loaded family does not know its program: trace it again")
        self._expect_unchanged()
        shown = _Numbers(self._numbers.sources)
        numbers = {**shown.show(), **self._given}
        try:
            capture = trace(self._captures[0]._program.function, *inputs, seen_once, **kwargs)
            self._native.extend(capture._native, numbers)
            for name, types in shown.types.items():
                self._numbers.types[name] |= types
            self._captures.append(capture)
            self._bound.clear()
        finally:
            self._watch = self._watch_now()

    def compile(self, backend: str = "cpp", **options: Any) -> "CompiledFamily":
        """Compiled code for all sizes, made ready at the first call there. Options as of
        `Capture.compile`."""
        return CompiledFamily(self, backend, options)

    def assumptions(self) -> list[str]:
        """What was shown, what was checked, what is fitted; what the first example assumes."""
        return self._native.assumptions()

    @property
    def sizes(self) -> dict[str, range]:
        """The sizes that calls may have, by name."""
        return {name: range(low, high + 1, step)
                for name, _, low, high, step in self._native.sizes}

    @property
    def graph(self):
        """The graph of the first example; printed, the family has formulas in place of integers."""
        return self._native.graph

    def save(self, folder: str | pathlib.Path) -> None:
        """Writes the first example with formulas and sizes; `flashlight bind` makes captures of
        it."""
        self._native.save(pathlib.Path(folder))

    def export(self, file: str | pathlib.Path, **options: Any) -> None:
        """As `Capture.export`, to `.pt2`, where sizes are dynamic shapes within the ranges that were
        shown, or to `.onnx`, where they have names, and guards say whether they are in range. Cases
        are branches; `.mlir` takes those that values choose between, at one size."""
        export(self._native, file, options)

    def __str__(self) -> str:
        return self._native.text()

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {low}..{high}" for name, _, low, high, _ in self._native.sizes)
        return f"<Family: {sizes}>"

    def _captured(self, native) -> Capture:
        if not self._captures:
            return Capture._loaded(native)
        first = self._captures[0]
        arguments, program = first._arguments.structure, first._program
        if native.argument_structure != arguments.text():  # other numbers are bound
            arguments = arguments.with_numbers_of(parse(native.argument_structure))
            program = copy.copy(program)
            program.arguments = arguments
            native.run_by(program)
        return Capture(native, arguments, first._results, program, first.name, by_name=True)

    def _tensors(self, inputs, kwargs):
        return self._arguments.flatten(inputs, kwargs)

    def _name(self) -> str:
        return _identifier(self._captures[0].name if self._captures else "program")

    def _for(self, inputs, kwargs) -> Capture:
        return self.at(**self._native.sizes_of_call(self._tensors(inputs, kwargs)))


class CompiledFamily:
    """Compiled code for all sizes of a family, called like the program. By "mosaic" sizes are data
    of the compiled text: a new size is planned in some hundredths of a second, and the weights are
    packed once. `prepare` does so for all of them at once."""

    def __init__(self, family: Family, backend: str, options: dict):
        options = {"name": family._name(), **options}
        self._family = family
        self._programs = _flashlight.FamilyPrograms(family._native, backend, options)

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        self._family._expect_unchanged()
        tensors, structure = self._family._flattened(inputs, kwargs)
        return self._family._unflattened(*self._programs.call(tensors, structure, self._family._numbers_now()))

    def profile(self, *inputs: Any, peak: float = 0.0, **kwargs: Any) -> str:
        """The time of each kernel in one call at these sizes: see `CompiledCapture.profile`."""
        tensors, _ = self._family._flattened(inputs, kwargs)
        return self._programs.profile_table(tensors, peak)

    def prepare(self) -> int:
        """Makes all sizes ready, or as many as are kept, so that no call waits for its own: in some
        hundredths of a second each, in threads, where sizes are data. The number of those that
        are."""
        return self._programs.prepare()

    @property
    def programs(self) -> int:
        """The number of sizes that are ready."""
        return len(self._programs)

    def source(self, *inputs: Any, **kwargs: Any) -> str:
        """The C++ that serves all sizes, by a backend that writes one, as cpp does; else empty. With
        inputs: what serves their sizes."""
        if inputs or kwargs:
            return self._programs.source_at(self._family._flattened(inputs, kwargs)[0])
        return self._programs.source()

    @property
    def compilations(self) -> int:
        """How often a compiler ran."""
        return self._programs.compilations
