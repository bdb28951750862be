"""Runs calls that may crash the process (an internal op checks little of what it is given).

    for result in isolated(function, items):   # function(item), or None where the process died
"""

import os
import pickle


def isolated(function, items):
    """Yields function(item) for each item, run one after the other in forked processes.

    A process that dies is replaced by one that goes on after the item it died of."""
    done = 0
    while done < len(items):
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read_end)
            _serve(function, items[done:], write_end)
        os.close(write_end)
        with os.fdopen(read_end, "rb") as results:
            for result in _received(results):
                done += 1
                yield result
        os.waitpid(child, 0)
        if done < len(items):
            done += 1
            yield None


def _serve(function, items, write_end):
    try:
        with os.fdopen(write_end, "wb") as results:
            for item in items:
                pickle.dump(function(item), results)
                results.flush()
    finally:
        os._exit(0)


def _received(results):
    while True:
        try:
            yield pickle.load(results)
        except (EOFError, pickle.UnpicklingError):
            return
