// Notices when a random generator is seeded, set or drawn from without the tracer's knowledge, and
// tells where in the run a state that it is set to was read.
//
//   GeneratorWatch watch(generator, 0);  ...  if (watch.moved()) record watch.now();
//   watch.follow();
//
// `manual_seed`, `get_state` and `set_state` reach no dispatcher. So every state that a program
// could read is *marked*: numbered in bits that `get_state` and `set_state` carry and no draw
// reads, the low 31 of the first word, once that word was drawn. A state that was read at one place
// of the run is then told from an equal one that `manual_seed` gives. What is drawn stays the same,
// and the mark goes when no watch is left. Comparing states costs some 20 ns, following a draw some
// 1 µs.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>

#include <optional>

#include "composit/ir/hash.h"

namespace flashlight::tracer {

class GeneratorWatch {
 public:
  // Marks the state the generator is in. `index` is into Recording::generators.
  GeneratorWatch(const at::Generator& generator, uint32_t index);
  ~GeneratorWatch();
  GeneratorWatch(const GeneratorWatch&) = delete;
  GeneratorWatch& operator=(const GeneratorWatch&) = delete;

  uint32_t index() const { return index_; }
  at::Generator generator() const;  // undefined when it is no longer owned
  // The state before the first mark: what `get_state` gave before the watch began.
  const composit::Hash& first() const { return first_; }

  // Did the state change since the last call of `follow` (or construction)? A dead one does not.
  bool moved() const;
  // Which state it is in now.
  composit::Hash now() const;
  // Did something draw from it that was not followed? A seed or another sequence's state says no.
  bool goes_on() const;
  void follow();
  // Which state was followed last, the mark included: no other place of the run has it.
  const composit::Hash& place() const { return place_; }

  struct State {
    at::mt19937_data_pod engine;
    std::optional<float> float_normal;
    std::optional<double> double_normal;
    bool operator==(const State& other) const;
    composit::Hash words() const;  // of the engine's words alone
    composit::Hash hash() const { return hash(words()); }
    composit::Hash hash(const composit::Hash& words) const;
  };

 private:
  c10::weak_intrusive_ptr<c10::GeneratorImpl> impl_;
  uint32_t index_;
  composit::Hash first_, place_;
  State state_;
};

// As in Python: others that draw wait meanwhile.
at::Tensor get_state(at::Generator generator);
void set_state(at::Generator generator, const at::Tensor& state);
// Which state the bytes of `get_state` are; nothing where they are none.
std::optional<composit::Hash> state_in(const at::Tensor& bytes);
// `get_state` without the mark.
at::Tensor unmarked_state(const at::Generator& generator);
// Takes the mark from the bytes of `get_state`, where they have one.
void unmark(const at::Tensor& bytes);
// The number of those bytes.
int64_t generator_state_size();

}  // namespace flashlight::tracer
