// Numbers that a program reads of tensors, computes with and gives to operators: the step count of
// Adam, which becomes its bias corrections. A replay computes them again (tracer/given_numbers.h).
//
//   const auto places = find_followed(before, now);     // two runs of the same form
//   follow(now, places);                                // those reads are guards no longer
//   state.changing = changing_places(places, published, graph);
#pragma once

#include <optional>
#include <vector>

#include "composit/ir/compare.h"
#include "flashlight/capture_state.h"
#include "tracer/publish.h"
#include "tracer/recording.h"

namespace flashlight {

// The number that a record has from others: one of its attributes, or of the list that the
// attribute is; or the only element of the constant that the record is.
struct FollowedNumber {
  tracer::RecordId record = 0;
  uint32_t attribute = 0;  // counted among the record's; 0 for a constant
  std::optional<size_t> element = {};
  composit::NumberFormula formula = {};  // over the names of reads
};

// What both runs give by the same formulas. A read of which something else was made, or whose
// number is not found where it was given to, is in none of these.
std::vector<FollowedNumber> find_followed(const tracer::Recording& before,
                                          const tracer::Recording& now);

// Reads that the formulas are made of are published without the number that they expect; others
// with it.
void follow(tracer::Recording& recording, const std::vector<FollowedNumber>& numbers);

// Without those that follow from a value within a composite operator.
std::vector<FollowedNumber> without_inner_reads(std::vector<FollowedNumber> numbers,
                                                const tracer::Published& published);

// The places of these numbers in the graph that was published.
std::vector<ChangingPlace> changing_places(const std::vector<FollowedNumber>& numbers,
                                           const tracer::Recording& recording,
                                           const tracer::Published& published);

// Differences of two graphs but for those that are numbers at these places of the second one.
std::vector<composit::Difference> without_places(std::vector<composit::Difference> differences,
                                                 const composit::Graph& graph,
                                                 const std::vector<ChangingPlace>& places);

// The graph that computes these numbers itself, of which all follow from its own values.
composit::Graph with_numbers_inside(const composit::Graph& graph,
                                    const std::vector<ChangingPlace>& places);

}  // namespace flashlight
