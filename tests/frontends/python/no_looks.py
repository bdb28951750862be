"""For tests of replays: calls of captures never run the program again, and none did.

    if __name__ == "__main__":
        no_looks.main()
"""

import os
import unittest

os.environ["FLASHLIGHT_SEEN_ONCE"] = "1"


def main() -> None:
    from flashlight import _flashlight

    program = unittest.main(exit=False)
    if _flashlight.looks_taken():
        raise SystemExit("a test of replays ran the program instead")
    raise SystemExit(not program.result.wasSuccessful())
