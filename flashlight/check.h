// Checks that a capture is still the program.
//
//   flashlight::CheckReport report = captured.check(x2);
//   if (!report) std::cerr << str(report);
//   std::exit(report.exit_code());
//
// `check` captures the program again on the new arguments, in strict mode, and compares the two
// graphs: a difference is a value of the host that the capture has baked in. Then it replays the
// first capture and compares every intermediate value with the eager one, bit for bit unless told
// otherwise, and names the first node that differs. Buffers, parameters and random generators are
// left as they were: each run begins with the state that generators have when `check` is called.
#pragma once

#include "flashlight/capture.h"
#include "flashlight/check_report.h"
