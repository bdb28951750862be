// The sizes that differ between examples, and what is asked of them.
#include <algorithm>
#include <map>
#include <set>

#include "composit/family/unify.h"
#include "composit/ir/error.h"
#include "composit/ir/literal.h"
#include "composit/ir/words.h"

namespace composit {
namespace {

// The name of an argument, "input_ids" for the tracer's "input.input_ids", as a word.
std::string word_for(std::string_view name) {
  constexpr std::string_view kArgument = "input.";
  if (name.starts_with(kArgument)) name.remove_prefix(kArgument.size());
  std::string word;
  for (const char c : name) word += is_word_char(c) && c != '.' && c != ':' ? c : '_';
  return word;
}

}  // namespace

void refuse_one(const std::string& size, int64_t number) {
  throw UserError("[unify] " + size + " = " + std::to_string(number) +
                  " in an example: a program may take another path there; show sizes from 2 on, "
                  "and check the family at this one");
}

void expect_shown_apart(const std::vector<FreeSize>& sizes) {
  for (const FreeSize& size : sizes) {
    const std::set<int64_t> different(size.shown.begin(), size.shown.end());
    if (different.size() < kLeastExamples)
      throw UserError("[unify] expected at least " + std::to_string(kLeastExamples) +
                      " different numbers for " + size.name + ", received " + list_of(size.shown) +
                      ": add an example with another one");
    if (*different.begin() <= 1) refuse_one(size.name, *different.begin());
  }
}

void set_names(std::vector<FreeSize>& sizes, const std::vector<std::string>& names) {
  if (names.empty()) return;
  if (names.size() != sizes.size()) {
    std::string received;
    for (const FreeSize& size : sizes) received += (received.empty() ? "" : ", ") + size.name;
    throw UserError("[unify] expected a name for each of the " + std::to_string(sizes.size()) +
                    " sizes that differ (" + received + "), received " +
                    std::to_string(names.size()));
  }
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i].name = names[i];
}

std::optional<size_t> find_input(const Graph& graph, const std::string& name) {
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    if (input_name(*graph.inputs()[i].node) == name) return i;
  return std::nullopt;
}

size_t input_called(const Graph& graph, const std::string& name) {
  const auto found = find_input(graph, name);
  if (!found) throw UserError("[unify] expected an input '" + name + "' in all examples");
  return *found;
}

void expect_examples(const std::vector<Graph>& examples) {
  if (examples.size() < kLeastExamples)
    throw UserError("[unify] expected at least " + std::to_string(kLeastExamples) +
                    " examples whose sizes differ, received " + std::to_string(examples.size()));
}

std::vector<FreeSize> free_sizes(const std::vector<Graph>& examples) {
  std::vector<FreeSize> sizes;
  std::map<std::vector<int64_t>, size_t> known;
  const LazyTensors& inputs = examples[0].inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string& name = input_name(*inputs[i].node);
    // A parameter may serve one structure only.
    const bool everywhere = std::all_of(examples.begin(), examples.end(), [&](const Graph& other) {
      return find_input(other, name).has_value();
    });
    if (!everywhere && input_kind(*inputs[i].node) != InputKind::user_input) continue;
    for (size_t axis = 0; axis < inputs[i].type().rank(); ++axis) {
      std::vector<int64_t> values;
      for (const Graph& example : examples) {
        const Dims& all = example.inputs()[input_called(example, name)].sizes();
        if (all.size() != inputs[i].type().rank())
          throw UserError("[unify] input '" + name +
                          "' has another number of axes in another example");
        values.push_back(all[axis]);
      }
      if (std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == values[0]; }))
        continue;
      const auto [at, added] = known.emplace(values, sizes.size());
      if (added) sizes.push_back(free_size(word_for(name) + "_" + std::to_string(axis), values));
      sizes[at->second].axes.push_back({i, axis});
    }
  }
  return sizes;
}

}  // namespace composit
