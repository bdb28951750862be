#!/usr/bin/env python3
"""Captures the operators of torch's own database, replays, evaluates, differentiates and compiles
the captures, and compares with torch.

    conformance.py                              all; writes docs/coverage.md and failures.txt
    conformance.py --only 'linalg\\.' --column rows --column cpp
    conformance.py --sample                     a few of each kind; fails on what is no known failure
    conformance.py --resume                     goes on where an earlier run ended
    conformance.py --failed                     the same, and does again what failed in it

Each operator is checked in a worker, another process, so that one that crashes or hangs is a failure
of that operator. Results are written as they come, a line of JSON per operator and column.
"""

import argparse
import json
import os
import pathlib
import queue
import re
import subprocess
import sys
import threading
import time

import report

os.environ["FLASHLIGHT_SEEN_ONCE"] = "1"  # replays are judged, not looks
_HERE = pathlib.Path(__file__).resolve().parent
_ROOT = _HERE.parents[1]
COLUMNS = ["captured", "replayed", "rows", "differentiated", "cpp", "mosaic", "pt2", "onnx", "xla"]
_SAMPLE_STEP = 29  # of --sample: every so many operators


class Worker:
    """A process that checks operators; begins anew when it dies."""

    def __init__(self, timeout):
        self._timeout = timeout  # seconds per column
        self._process = None

    def check(self, name, columns):
        """Yields an answer per column."""
        wanted = list(columns)
        while wanted:
            self._send({"name": name, "columns": wanted})
            yield from self._answers(wanted)

    def close(self):
        if self._process is not None:
            self._process.stdin.close()
            self._process.wait()

    def _send(self, message):
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, str(_HERE / "worker.py")],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                env=os.environ | {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"},
            )  # fmt: skip
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def _answers(self, wanted):
        """Until it is done or dead; takes columns that have an answer off `wanted`."""
        start = time.monotonic()
        timed_out = False

        def stop():
            nonlocal timed_out
            timed_out = True
            self._process.kill()

        while True:
            timer = threading.Timer(self._timeout, stop)
            timer.start()
            line = self._process.stdout.readline()
            timer.cancel()
            if not line:
                break
            answer = json.loads(line)
            if "begins" in answer:
                start = time.monotonic()
                continue
            if "done" in answer:
                wanted.clear()
                return
            wanted.remove(answer["column"])
            yield answer
        code = self._process.wait()
        self._process = None
        why = f"took longer than {self._timeout} s" if timed_out else f"the process ended with {code}"
        seconds = round(time.monotonic() - start, 3)
        yield {"column": wanted.pop(0), "seconds": seconds, "samples": 1,
               "failures": [["all samples", why]]}  # fmt: skip


class Run:
    def __init__(self, results, timeout):
        self._file = results.open("a")
        self._timeout = timeout
        self._lock = threading.Lock()
        self._todo = queue.SimpleQueue()

    def do(self, tasks, jobs):
        """tasks: (name, columns)."""
        self._count, self._done = len(tasks), 0
        for task in tasks:
            self._todo.put(task)
        threads = [threading.Thread(target=self._work) for _ in range(jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _work(self):
        worker = Worker(self._timeout)
        while True:
            try:
                name, columns = self._todo.get_nowait()
            except queue.Empty:
                worker.close()
                return
            for answer in worker.check(name, columns):
                self._write({"op": name} | answer)
            with self._lock:
                self._done += 1
                print(f"{self._done}/{self._count} {name}", flush=True)

    def _write(self, answer):
        with self._lock:
            self._file.write(json.dumps(answer) + "\n")
            self._file.flush()


def names_of_database():
    listed = subprocess.run(
        [sys.executable, str(_HERE / "worker.py"), "--list"], stdout=subprocess.PIPE, text=True
    )
    if listed.returncode == 77:
        print("skipped: torch's operator database needs requirements-test.txt")
    if listed.returncode != 0:
        sys.exit(listed.returncode)
    return listed.stdout.split()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="REGEX", help="operators whose name has it")
    parser.add_argument("--column", action="append", choices=COLUMNS, help="may be repeated")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every N-th operator")
    parser.add_argument("--sample", action="store_true", help="a fixed choice, for tests")
    parser.add_argument("--resume", action="store_true", help="keep the results that are there")
    parser.add_argument("--failed", action="store_true", help="as --resume; what failed again")
    parser.add_argument("--results", type=pathlib.Path,
                        default=_ROOT / "build" / "conformance" / "results.jsonl")  # fmt: skip
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--timeout", type=int, default=180, help="seconds per operator and column")
    return parser.parse_args()


def columns_here():
    """All but those whose programs are not installed."""
    sys.path.insert(0, str(_ROOT / "tests/frontends/python"))
    import engines

    return [column for column in COLUMNS if column not in ("onnx", "xla") or engines.PYTHON]


def main():
    given = arguments()
    names = names_of_database()
    chosen = [n for n in names if re.search(given.only, n)]
    chosen = chosen[:: _SAMPLE_STEP if given.sample else given.every]
    columns = given.column or columns_here()
    given.results.parent.mkdir(parents=True, exist_ok=True)
    if not (given.resume or given.failed):
        given.results.unlink(missing_ok=True)
    results = report.read(given.results)
    known = {(r["op"], r["column"]) for r in results if not (given.failed and r["failures"])}
    tasks = [(n, [c for c in columns if (n, c) not in known]) for n in chosen]
    tasks = [task for task in tasks if task[1]]
    start = time.monotonic()
    Run(given.results, given.timeout).do(tasks, given.jobs)
    minutes = (time.monotonic() - start) / 60
    results = [r for r in report.read(given.results) if r["op"] in set(chosen)]
    print(report.table(results, columns))
    print(f"{len(chosen)} operators in {minutes:.1f} minutes")
    is_new = report.print_new_failures(results, _HERE / "failures.txt")
    if chosen == names and columns == COLUMNS:
        page = _ROOT / "docs" / "coverage.md"
        report.write(results, len(names), columns, page, _HERE / "failures.txt")
    sys.exit(is_new)


if __name__ == "__main__":
    main()
