// State that a program keeps between its runs: a value that one run made and left alive, and that
// the next one reads from outside.
//
//   h = tanh(linear(x) + h)        the first run makes the value that the second one reads as `h`
//
// Two recordings of the same form show it: source `h` of the graph gets the value of `tanh` after
// each run, as an input that is read and written back.
#pragma once

#include <string>
#include <vector>

#include "tracer/recording.h"

namespace flashlight {

// Input or constant `source` of a run has the content that value `next` of the last run ended with.
struct StateLink {
  tracer::RecordId source;
  tracer::ValueId next;
  bool operator==(const StateLink&) const = default;
};

// The values made by `before` that `after` reads.
std::vector<StateLink> find_links(const tracer::Recording& before, const tracer::Recording& after);

// True if both have the same operators on the same operands in the same order. Their numbers may
// differ, and the sizes of their values.
bool same_form(const tracer::Recording& a, const tracer::Recording& b);

// True if the state of this link has another type than the value that replaces it.
bool grows(const tracer::Recording& recording, const StateLink& link);

// True if the links can be those of this recording.
bool fits(const tracer::Recording& recording, const std::vector<StateLink>& links);

// Makes the sources inputs that are written back (once more changes nothing).
void apply_links(tracer::Recording& recording, const std::vector<StateLink>& links);

// The tensor that holds `value` after the run, in the memory it was left in; undefined if that is
// gone.
at::Tensor tensor_left(const tracer::Recording& recording, tracer::ValueId value);

// "aten::tanh in rnn (model.py:12)": the operator that made a value.
std::string maker_of(const tracer::Recording& recording, tracer::ValueId value);

}  // namespace flashlight
