"""Programs for all sizes: captures of one program at several sizes, made one.

    family = flashlight.trace_family(model, [(ids_2x16,), (ids_3x23,), (ids_5x12,)],
                                     sizes=["batch", "tokens"])
    family(ids_4x21)                            # the same bits as model(ids_4x21)
    family = flashlight.trace_family(           # chooses its examples, and where it is checked
        model, lambda batch, tokens: torch.randint(99, (batch, tokens)),
        sizes={"batch": (1, 8), "tokens": (1, 512)})
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from composit import Error

from flashlight import _flashlight
from flashlight.capture import Capture, _call_text, _identifier, export, seen_once, trace
from flashlight.structure import flatten
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
    predicates, numbers = dict(predicates or {}), dict(numbers or {})
    if callable(examples):
        if numbers:
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
        shown.append(_read(numbers))
        captures.append(trace(program, *inputs, seen_once, **kwargs))
    if not captures:
        raise Error("[unify] expected examples, received none")
    return Family(_flashlight.Family([c._native for c in captures], list(sizes),
                                     predicates, shown), captures, numbers)


def load_family(folder: str | pathlib.Path) -> "Family":
    """The family that `Family.save`, or `flashlight unify`, wrote, or a file of torch.export has."""
    return Family(_flashlight.Family.load(pathlib.Path(folder)), [])


def _read(numbers: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    return {name: float(get()) for name, get in numbers.items()}


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
                 numbers: Mapping[str, Callable[[], float]] | None = None,
                 given: Mapping[str, float] | None = None, watch: Watch | None = None):
        self._native = native
        self._captures = captures  # native holds their programs weakly
        self._bound: dict[tuple, Capture] = {}
        self._numbers = dict(numbers or {})  # functions that read them
        self._given = dict(given or {})
        self._watch = watch or self._watch_now()

    def _watch_now(self) -> Watch | None:
        """Tells of changes to the program's modules since it ran last."""
        return Watch(self._captures[-1]._program.modules) if self._captures else None

    def _expect_unchanged(self) -> None:
        if self._watch and (changed := self._watch.changed()):
            raise Error(f"[family] {changed} since the program was shown; make the family again")

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        self._expect_unchanged()
        tensors, structure = self._flattened(inputs, kwargs)
        results = self._native.call(tensors, structure, self._numbers_now())
        return self._results().unflatten(results)

    def _flattened(self, inputs, kwargs) -> tuple[list, str]:
        """The tensors, and the structure as text: with the numbers that are there."""
        if self._captures and self._native.numbers:
            tensors, structure = flatten((tuple(inputs), kwargs), "arguments")
            return tensors, structure.text()
        return self._tensors(inputs, kwargs), self._native.argument_structure  # tells of others

    def _numbers_now(self) -> dict[str, float]:
        return {**_read(self._numbers), **self._given}

    def with_numbers(self, **numbers: float) -> "Family":
        """The same family, for which these numbers are what the program has for them. Error for a
        name that no number has. Names with a point are given as `**{"train.py:31": 0.1}`."""
        self._native.with_numbers(numbers)  # tells of wrong names
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
        numbers = self._numbers_now()
        try:
            capture = trace(self._captures[0]._program.function, *inputs, seen_once, **kwargs)
            self._native.extend(capture._native, numbers)
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
        return Capture(native, first._arguments.structure, first._results, first._program,
                       first.name, by_name=True)

    def _tensors(self, inputs, kwargs):
        structure = self._for_structure()
        return structure.flatten(inputs, kwargs)

    def _first(self) -> Capture:
        if self._captures:
            return self._captures[0]
        shown = {name: shown[0] for name, (origin, shown) in self._native.numbers.items()
                 if origin != "read"}
        return self._captured(self._native.with_numbers(shown).at(
            {name: shown[0] for name, shown, *_ in self._native.sizes}))

    def _for_structure(self):
        return self._first()._arguments

    def _results(self):
        return self._first()._results

    def _name(self) -> str:
        return _identifier(self._first().name)

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
        results = self._programs.call(tensors, structure, self._family._numbers_now())
        return self._family._results().unflatten(results)

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
