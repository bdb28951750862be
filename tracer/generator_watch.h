// Notices when a random generator is seeded or drawn from behind the tracer's back.
//
//   GeneratorWatch watch(generator);  ...  if (watch.moved()) record the new state
//
// `manual_seed` reaches no dispatcher; comparing the engine's state before each draw costs some 20
// ns.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>

#include <optional>

namespace flashlight::tracer {

class GeneratorWatch {
 public:
  explicit GeneratorWatch(const at::Generator& generator);

  const c10::GeneratorImpl* impl() const { return impl_; }
  // Did the state change since the last call of `follow` (or construction)?
  bool moved() const;
  void follow();

 private:
  struct State {
    at::mt19937_data_pod engine;
    std::optional<float> float_normal;
    std::optional<double> double_normal;
  };
  static State state_of(const c10::GeneratorImpl* impl);

  c10::GeneratorImpl* impl_;
  State state_;
};

}  // namespace flashlight::tracer
