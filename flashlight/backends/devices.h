// Options of the backend `devices`, which gives parts of a program to several other backends.
//
//   flashlight::compile(captured, {.backend = flashlight::Devices{
//       .choices = "encoder.layer.3: on aten\n"
//                  "*: on mosaic\n"}});
//
// A device is a backend by its name, or what a line of the choices describes: a backend with
// options, and a memory of its own, to which values are copied. Other lines say what is on a
// device: a value by its name in `Backend::plan`, a module and all within, or "*", all else.
//
// ```text
//   device small: mosaic, threads 1, memory far
//   encoder.layer.3: on small        # what stands behind a # is a comment
//   linear_3: on aten
//   *: on mosaic
// ```
#pragma once

#include <string>

#include "composit/op/options.h"

namespace flashlight {

struct Devices {
  // Lines as above. UserError, with the line, for one that names nothing.
  std::string choices = {};
  // Names of devices, separated by commas, that compute what no choice covers: each module where it
  // is fastest by an estimate, for which small programs are timed on each device.
  std::string propose = {};
  // Parts and copies that need not wait for each other run at the same time.
  bool overlap = true;
  // Choices may name what the program does not have, as derivatives have only some of its modules.
  bool lenient = false;

  // The table of its options.
  static const composit::OptionFields<Devices>& fields();
  // The backend "devices" with these options.
  operator composit::BackendChoice() const {  // NOLINT
    return {"devices", fields().options(*this)};
  }
};

}  // namespace flashlight
