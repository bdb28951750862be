// Proposes which device computes which module, by how fast devices are.
//
//   const Proposal proposal = propose(graph, names, devices);
//   std::cout << proposal.text;      // "encoder.layer.3: on mosaic   # 1.20 ms; cpp 8.10 ms\n"
//
// A node's time on a device is the larger of that for its arithmetic and that for the bytes that it
// reads and writes, at rates that small programs show on this machine (measured once per process
// and device). A device that goes on where another was pays for a call, and for copies if its
// memory is another one. Of all ways to give modules to devices, in the order of the program, the
// fastest by these numbers is taken (Viterbi's algorithm).
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

struct Proposal {
  std::vector<Line> lines;  // for `place`, "*" last
  std::string text;         // the same for people, with the reason behind each line
};
// UserError if a node has no code on any of the devices.
Proposal propose(const composit::Graph& graph, const NodeNames& names,
                 const std::vector<DeviceChoice>& devices, const composit::CompileOptions& options);

}  // namespace flashlight::devices
