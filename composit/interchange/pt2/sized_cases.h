// A family whose structure depends on sizes, as one program for torch.export: its one node stands
// for all cases, and is written as `torch.cond` on sizes (sized_cases.cpp).
//
//   const SizedCases cases(size_tree(saved), saved);
//   cases.whole().graph;        // … = composit::sized_cases(%x, %weight, …)
#pragma once

#include <memory>
#include <vector>

#include "composit/family/size_tree.h"
#include "composit/interchange/pt2/symbols.h"

namespace composit::pt2 {

class SizedCases {
 public:
  // Of a tree with several leaves. UserError where the cases take other arguments or give other
  // results, have numbers that callers give, or were shown at one size.
  SizedCases(SizeTree tree, const SavedCapture& saved);

  const SizeTree& tree() const { return tree_; }
  // All inputs of all cases, the node, and what it gives: the results, then what is written.
  const SavedCapture& whole() const { return whole_; }
  const Family& family() const { return family_; }
  // Of a leaf.
  const Family& family(size_t leaf) const { return families_.at(leaf); }
  const Symbols& symbols(size_t leaf) const { return *symbols_.at(leaf); }
  // What the leaf gives for each output of the node, in its own graph; what it does not write is
  // its input, or absent where it has none.
  LazyTensors results(size_t leaf) const;
  // The names of inputs that some leaf writes, in the order of the node's last outputs.
  const std::vector<std::string>& written() const { return written_; }

 private:
  void expect_alike() const;
  void join_captures(const SavedCapture& saved);
  void make_whole();

  SizeTree tree_;
  std::vector<Family> families_;
  std::vector<std::unique_ptr<Symbols>> symbols_;
  std::vector<std::string> written_;
  SavedCapture whole_;
  Family family_;
};

// True for that node.
bool is_sized_cases(const Node& node);

}  // namespace composit::pt2
