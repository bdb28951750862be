// A run of a program whose results are the program's, recorded if it can be. For adaptive.cpp only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "flashlight/adaptive.h"

namespace flashlight {

// The program's own results of its last run: a capture keeps copies as its example.
using LastResults = std::shared_ptr<std::optional<FlatValues>>;

struct RecordedRun {
  FlatValues results;
  std::optional<CaptureBase> capture;
  LastResults last;    // of further runs by the capture
  std::string why;     // there is no capture
  std::string beyond;  // see AdaptiveProgram
};

// Throws what the program throws; UserError where the tracer refused an operator of a program that
// had written something by then.
RecordedRun recorded_run(const AdaptiveProgram& program, const FlatValues& arguments,
                         const TraceOptions& options);

// One more run of a recorded program by its capture, which compares: see CaptureBase::call.
// Throws as above, and where the capture refuses the call.
FlatValues look_again(const CaptureBase& capture, const LastResults& last,
                      const AdaptiveProgram& program, const FlatValues& arguments);

}  // namespace flashlight
