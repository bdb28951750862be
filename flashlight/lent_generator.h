// LibTorch's default generator for the CPU, lent to compiled code: what is drawn here is drawn
// there, so that eager and compiled programs share one sequence.
//
//   LentGenerator lent;
//   compiled.run(inputs, results, *lent);
#pragma once

#include <ATen/core/Generator.h>

#include <mutex>

#include "flashlight/runtime/random.hpp"

namespace flashlight {

class LentGenerator {
 public:
  // Others that draw wait until it is given back.
  LentGenerator();
  ~LentGenerator();
  LentGenerator(const LentGenerator&) = delete;
  LentGenerator& operator=(const LentGenerator&) = delete;
  fl::Generator& operator*() { return generator_; }

 private:
  at::Generator owner_;
  std::lock_guard<std::mutex> lock_;
  fl::Generator generator_;
};

}  // namespace flashlight
