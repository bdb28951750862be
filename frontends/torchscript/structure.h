// Walking through values of a program: tuples, lists and dicts, and the leaves within them.
//
//   const IValue both = merge(a, b, [&](const IValue& x, const IValue& y) { … });
#pragma once

#include <functional>
#include <string>

#include "frontends/torchscript/state.h"

namespace flashlight::torchscript {

// Merges two leaves that differ into one.
using MergeLeaves = std::function<IValue(const IValue& a, const IValue& b)>;
// `a` and `b`, made since `mark`, as one value. `leaf` is asked for each pair of tensors or numbers
// that are not the same, and of an uninitialized value with such a one. Lists become new lists, but
// where both are the same list; frozen, unless both were made since the mark. UserError where the
// structures or other leaves differ.
IValue merge(const IValue& a, const IValue& b, State& state, const Mark& mark,
             const MergeLeaves& leaf);

// `value` with `leaf(x)` in the place of each leaf x. What no leaf of changes stays the same
// object; new lists are frozen: they stand for the old ones.
using MapLeaf = std::function<IValue(const IValue& leaf)>;
IValue map_leaves(const IValue& value, State& state, const MapLeaf& leaf);
// Calls `visit` with every leaf, and its name, as in "xs.0" for the first item of "xs".
using VisitLeaf = std::function<void(const IValue& leaf, const std::string& name)>;
void for_each_leaf(const IValue& value, const std::string& name, const VisitLeaf& visit);

// True if it contains a value that the graph computes.
bool is_computed(const IValue& value, const State& state);
// "a tensor", "a list of 3", "None".
std::string describe(const IValue& value, State& state);

}  // namespace flashlight::torchscript
