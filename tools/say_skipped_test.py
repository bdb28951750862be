"""Tests of say_skipped.py on a log as ctest writes it."""

import unittest

import say_skipped

LOG = """Start testing: Nov 24 07:00 UTC
----------------------------------------------------------
1/4 Testing: tiles.one
1/4 Test: tiles.one
Command: "/build/tiles" "--gtest_filter=Tiles.one"
Output:
----------------------------------------------------------
[ RUN      ] Tiles.one
/src/tiles_test.cpp:7: Skipped
this processor lacks AVX-512

[  SKIPPED ] Tiles.one (0 ms)
<end of output>
Test time =   0.01 sec
----------------------------------------------------------
2/4 Testing: many
2/4 Test: many
Command: "/build/many"
Output:
----------------------------------------------------------
[ RUN      ] Many.a
/src/many_test.cpp:9: Skipped
this processor lacks AVX-512

[  SKIPPED ] Many.a (0 ms)
[ RUN      ] Many.b
/src/many_test.cpp:12: Skipped

[  SKIPPED ] Many.b (0 ms)
<end of output>
Test time =   0.02 sec
----------------------------------------------------------
3/4 Testing: dump
3/4 Test: dump
Command: "python" "dump.py"
Output:
----------------------------------------------------------
no module named torch
<end of output>
Test time =   0.02 sec
----------------------------------------------------------
4/4 Testing: passes
4/4 Test: passes
Command: "passes"
Output:
----------------------------------------------------------
fine
<end of output>
Test time =   0.02 sec
"""


class Reasons(unittest.TestCase):
    def test_each_is_counted(self):
        self.assertEqual(
            say_skipped.reasons(LOG, {"tiles.one", "dump"}),
            {
                "this processor lacks AVX-512": 2,
                "many gives no reason": 1,
                "no module named torch": 1,
            },
        )


if __name__ == "__main__":
    unittest.main()
