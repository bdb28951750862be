// Options of the backend `pjrt`, which compiles by XLA or another plugin of PJRT.
//
//   flashlight::compile(captured, {.backend = flashlight::Pjrt{.pjrt = "libpjrt_cpu.so"}});
#pragma once

#include <string>

#include "composit/op/options.h"

namespace flashlight {

struct Pjrt {
  // The path of the plugin: a shared library that exports `GetPjrtApi`.
  std::string pjrt = {};
  // Which of its devices, from 0 on.
  int64_t device = 0;
  // Parameters and buffers that the program does not write go to the device once, not in each call.
  bool freeze = true;

  // The table of its options.
  static const composit::OptionFields<Pjrt>& fields();
  // The backend "pjrt" with these options.
  operator composit::BackendChoice() const {  // NOLINT
    return {"pjrt", fields().options(*this)};
  }
};

}  // namespace flashlight
