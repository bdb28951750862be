// The text that says which device computes what.
//
//   const Choices choices = parse_choices("device small: mosaic, threads 1, memory far\n"
//                                         "encoder.layer.3: on small   # a module and what is in
//                                         it\n" "linear_3: on aten           # a value, by its name
//                                         in `plan`\n"
//                                         "*: on mosaic                # all else\n");
//
// A device is a backend with options, and the memory that its values are in. Each backend is a
// device by its own name, in the memory "cpu". A value's line precedes those of modules, a module's
// line those of the modules that it is in.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "composit/op/backend.h"
#include "composit/op/options.h"

namespace flashlight::devices {

// The memory that callers have their values in.
constexpr const char* kCallersMemory = "cpu";

struct DeviceChoice {
  std::string name;
  composit::BackendChoice backend;
  std::string memory = kCallersMemory;
};

// A line "what: on device".
struct Line {
  std::string what;  // a value, a module, or "*"
  std::string device;
  size_t number = 0;  // of the line, from 1
};

struct Choices {
  std::vector<DeviceChoice> devices;  // those that the text describes
  std::vector<Line> lines;            // at most one for each `what`
};

// UserError with the line's number and what was expected, for a backend that does not exist, and
// for an option that it does not have.
Choices parse_choices(std::string_view text);
// The device of this name: one that the text describes, or a backend. UserError that lists all.
DeviceChoice device_named(const std::string& name, const Choices& choices,
                          const std::string& where);
// The backends that run code and meet a condition: "cpp, mosaic"; "no backend" where none does.
std::string names_of_runners(const std::function<bool(const composit::Backend&)>& fits);
// UserError with those that are for a device of a backend that writes text alone.
void expect_compiles(const DeviceChoice& device);
// "mosaic", "threads 1" of "mosaic, threads 1".
std::vector<std::string> names_between_commas(const std::string& text);
// "mosaic, threads 1, memory far"
std::string describe(const DeviceChoice& device);

}  // namespace flashlight::devices
