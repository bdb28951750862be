"""Runs calls that may crash the process (an internal op checks little of what it is given).

    for fact in isolated(function, items): ...    # all that function(item) yields, item by item
"""

import os
import pickle
import traceback


def isolated(function, items):
    """What function(item) yields for each item, run one after the other in a forked process.

    When the process dies, another one goes on after the item it died of."""
    done = 0
    while done < len(items):
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read_end)
            _serve(function, items[done:], write_end)
        os.close(write_end)
        with os.fdopen(read_end, "rb") as results:
            for is_last, fact in _received(results):
                done += is_last
                if not is_last:
                    yield fact
        os.waitpid(child, 0)
        done += done < len(items)


def _serve(function, items, write_end):
    try:
        with os.fdopen(write_end, "wb") as results:
            for item in items:
                for fact in function(item):
                    pickle.dump((False, fact), results)
                    results.flush()
                pickle.dump((True, None), results)
    except BaseException:  # of ours: what a call raises is a fact
        traceback.print_exc()
    finally:
        os._exit(0)


def _received(results):
    while True:
        try:
            yield pickle.load(results)
        except (EOFError, pickle.UnpicklingError):
            return
