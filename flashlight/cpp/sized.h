// One text for all sizes of a program: its sizes are parameters of its functions.
//
//   const SizedProgram bert({at_8, at_100, at_512}, {.name = "bert"});
//   bert.source().text;                       // "void bert(…, int tokens, …)"
//   bert.sizes_of(graph_at_77);               // {77}: the text is this graph's
//
// The graphs are lowered and fused in the same way, as the largest of them is, and unified
// (loops/unify.h). The text is written at sizes that are primes, where a number says what it
// follows from, and must come out the same at others.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "composit/op/backend.h"
#include "flashlight/cpp/emit.h"
#include "flashlight/cpp/split.h"
#include "flashlight/loops/lower.h"
#include "flashlight/loops/sizes.h"

namespace flashlight::cpp {

// The name of a size in a text, by the program's name for it.
std::string size_word(std::string name);

class SizedProgram {
 public:
  // `shown`: by size, ascending. Takes those whose loops have one form, which others have not:
  // those of one row. UserError where these are fewer than two, where their numbers follow from
  // sizes in no way (unify.h), or where the text needs a constant.
  SizedProgram(const std::vector<composit::SizedGraph>& shown, LowerOptions lowering,
               const SplitOptions& split = {});

  const Source& source() const { return source_; }
  // The loops, with sizes by name and with their ranges.
  const Program& program() const { return open_; }
  // The numbers of Source::sizes at which the text computes this graph; nothing where it does not.
  std::optional<std::vector<int64_t>> sizes_of(const composit::Graph& graph) const;

 private:
  Program fused_like_model(const composit::Graph& graph) const;

  LowerOptions lowering_;
  std::vector<std::vector<bool>> in_memory_;  // of the largest graph: by function and value
  Program open_;
  Source source_;
};

}  // namespace flashlight::cpp
