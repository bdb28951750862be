// Sorts examples by structure, and finds the conditions that choose between structures. For
// cases.cpp only.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "composit/family/cases.h"

namespace composit {

class CaseFinder {
 public:
  // `examples` without incidentals; `sizes` with names, over the inputs of the first.
  CaseFinder(const std::vector<Graph>& examples, std::vector<FreeSize> sizes,
             const NumbersShown& numbers);
  Cases find();

 private:
  using Members = std::vector<size_t>;                // examples, by number
  using Path = std::vector<std::pair<size_t, bool>>;  // forks, and whether their condition holds

  Way way(const Members& members, const Path& path);
  Way new_case(const Members& members, const Path& path);
  // How many nodes all of these examples have in common.
  size_t common_nodes(const Members& members) const;
  // The fork where all of them read one bool, but not all the same; nothing: they part elsewhere.
  std::optional<std::pair<Fork, Members>> fork_by_value(const Members& members);
  bool has_other_structure_at_each_size() const;
  // A fork of these examples: behind their first nodes, as many as all have in common.
  std::pair<Fork, Members> fork(const Members& members, const Path& path);
  Family before(const Members& members, size_t common) const;
  std::vector<SizeLeaf> leaves_of(const Members& members, const Family& before) const;
  Separation resolved(const std::vector<Separation>& all, const Family& before, const Path& path,
                      const std::string& what) const;
  void expect_boundary(const SizeCondition& condition, const Family& before, const Members& members,
                       const Path& path, const std::string& what) const;
  std::string text_of_path(const Path& path) const;

  bool is_on(const Path& path, const SizeValues& sizes) const;
  std::vector<FreeSize> sizes_of(const Members& members) const;
  // The same over the inputs of a graph, which may lack some.
  std::vector<FreeSize> sizes_in(const Graph& graph, const Members& members) const;
  void expect_enough_by_value(const std::vector<FreeSize>& sizes, const Path& path) const;
  void expect_enough(const std::vector<FreeSize>& sizes, const Path& path) const;

  const std::vector<Graph>& examples_;
  std::vector<FreeSize> sizes_;
  const NumbersShown& numbers_;
  std::vector<std::vector<Hash>> structures_;  // by example
  std::vector<SizeValues> grid_;
  Cases cases_;
  std::vector<Family> befores_;  // by fork
};

}  // namespace composit
