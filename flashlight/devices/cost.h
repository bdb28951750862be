// Proposes which device computes which module, by how fast devices are.
//
//   const Proposal proposal = propose(graph, names, devices, costs_of(devices, options));
//   std::cout << proposal.text;      // "layer.3: on mosaic   # mosaic 1.2 ms, cpp 8.1 ms\n"
//
// A node's time on a device is that for its arithmetic, or else for the bytes that it reads and
// writes, at rates that small programs show on this machine (measured once per process and device).
// A device that goes on where another was pays for a call, and for copies of what it reads if its
// memory is another one; one whose memory is not the caller's, for arguments and results. Of all
// ways to give modules to devices, in the order of the program, the fastest by these numbers is
// taken (Viterbi's algorithm). Where a module is not on the device that is the fastest for it
// alone, the text says what calls and copies made of that:
//
//   head: on cpp   # cpp 1.2 ms, far 1.0 ms; 0.2 ms slower, but far has 1.1 ms more of copies
#pragma once

#include <string>
#include <vector>

#include "composit/op/backend.h"
#include "flashlight/devices/placement.h"

namespace flashlight::devices {

// Rates of a device, per second; 0: it has no code for such operations.
struct Speed {
  double products = 0, convolutions = 0;  // multiplications and additions
  double bytes = 0;                       // of elementwise operations, read and written
  double call = 0;                        // seconds for a call that computes next to nothing
};
// Runs small programs on the device. Thread-safe.
const Speed& speed_of(const DeviceChoice& device, const composit::CompileOptions& options);

// Bytes per second that are copied from one memory to another where no measurement tells.
constexpr double kUsualCopiedBytes = 5e9;
// The rate on this machine: the median of several copies, measured once per process. Thread-safe.
double copied_bytes();

// What a proposal goes by.
struct Costs {
  std::vector<Speed> speeds = {};           // by device
  double copied_bytes = kUsualCopiedBytes;  // per second, from one memory to another
};
// By measurements on this machine.
Costs costs_of(const std::vector<DeviceChoice>& devices, const composit::CompileOptions& options);

struct Proposal {
  std::vector<Line> lines;  // for `place`, "*" last
  std::string text;         // the same for people, with the reason behind each line
};
// For what none of the lines `given` covers, with code made by `options`. A device whose draws
// would leave the program's sequence has no code for them. UserError if a node has no code on any
// of the devices.
Proposal propose(const composit::Graph& graph, const NodeNames& names,
                 const std::vector<DeviceChoice>& devices, const Costs& costs,
                 const composit::CompileOptions& options = {}, const std::vector<Line>& given = {});

}  // namespace flashlight::devices
