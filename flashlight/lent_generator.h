// Lends LibTorch's default CPU generator to compiled code: draws here advance that generator, so
// that eager and compiled programs share one sequence.
//
//   LentGenerator lent;
//   compiled.run(inputs, results, *lent);
#pragma once

#include <ATen/core/Generator.h>

#include <mutex>

#include "flashlight/runtime/random.hpp"

namespace flashlight {

// The state of a CPU generator of LibTorch, and another one for it. Nobody may draw meanwhile.
fl::Generator::State state_of(const at::Generator& generator);
void set_state(const at::Generator& generator, const fl::Generator::State& state);

class LentGenerator {
 public:
  // Other threads that draw wait until the destructor gives it back.
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
