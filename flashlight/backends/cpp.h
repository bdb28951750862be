// Options of the backend `cpp`, which writes C++ for people to read.
//
//   flashlight::compile(captured, {.backend = flashlight::Cpp{.link_aten = true}});
#pragma once

#include "composit/op/options.h"

namespace flashlight {

struct Cpp {
  // Operations without a definition become calls of LibTorch instead of errors.
  bool link_aten = false;

  // The table of its options.
  static const composit::OptionFields<Cpp>& fields();
  // The backend "cpp" with these options.
  operator composit::BackendChoice() const { return {"cpp", fields().options(*this)}; }  // NOLINT
};

}  // namespace flashlight
