#include "composit/passes/repeats.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "composit/ir/flat_map.h"
#include "composit/ir/scope.h"
#include "composit/op/call.h"

namespace composit {
namespace {

uint64_t mixed(std::initializer_list<uint64_t> words) {
  Hasher hasher;
  for (uint64_t word : words) hasher.add(word);
  return hasher.finish().low;
}

uint64_t token_of(const Node& node, bool effects) {
  static const Symbol kEffect("effect");
  Hasher hasher;
  hasher.add(std::string_view(node.op().str()));
  for (const Argument& argument : node.arguments()) {
    hasher.add(static_cast<uint64_t>(argument.kind));
    hasher.add(uint64_t{argument.size});
  }
  for (const LazyTensor& operand : node.operands()) {
    if (operand) operand.type().add_to(hasher);
    if (operand && is_part_of_piece(operand)) hasher.add(operand.hash());
  }
  for (const Attributes* attributes : {&node.attributes(), &node.execution()})
    for (const auto& [name, value] : *attributes) {
      if (effects && name == kEffect) continue;
      hasher.add(std::string_view(name.str()));
      value.add_to(hasher);
    }
  for (const Type& type : node.outputs()) type.add_to(hasher);
  return hasher.finish().low;
}

// Fingerprints of all pieces of one length, by moving a window over the sequence: the sum over its
// nodes of (token + codes of the edges within the window) * base^place, divided by base^begin, in
// arithmetic modulo 2^64.
class Fingerprints {
 public:
  explicit Fingerprints(const Sequence& sequence) : sequence_(sequence) {
    constexpr uint64_t kBase = 0x9e3779b97f4a7c15ULL;
    uint64_t inverse = kBase;  // Newton's iteration; an odd number is its own inverse modulo 8
    for (int i = 0; i < 5; ++i) inverse *= 2 - kBase * inverse;
    powers_.push_back(1);
    inverses_.push_back(1);
    for (size_t i = 0; i < sequence.nodes.size(); ++i) {
      powers_.push_back(powers_.back() * kBase);
      inverses_.push_back(inverses_.back() * inverse);
    }
  }

  // The hashes of the pieces of this length that begin at 0, 1, …
  std::vector<uint64_t> of_length(size_t length) const {
    std::vector<uint64_t> result;
    const size_t size = sequence_.nodes.size();
    uint64_t sum = 0;
    for (size_t end = 0; end < size; ++end) {
      const size_t begin = end + 1 < length ? 0 : end + 1 - length;
      if (begin > 0) sum -= share_of_first(begin - 1, end);
      sum += share_of_last(begin, end);
      if (end + 1 >= length) result.push_back(sum * inverses_[begin]);
    }
    return result;
  }

 private:
  uint64_t share_of_last(size_t begin, size_t place) const {
    uint64_t share = sequence_.tokens[place];
    for (const auto& [other, code] : sequence_.before[place])
      if (other >= begin) share += code;
    return share * powers_[place];
  }
  // With the edges to it from nodes before `end`.
  uint64_t share_of_first(size_t place, size_t end) const {
    uint64_t share = sequence_.tokens[place] * powers_[place];
    for (const auto& [other, code] : sequence_.behind[place])
      if (other < end) share += code * powers_[other];
    return share;
  }

  const Sequence& sequence_;
  std::vector<uint64_t> powers_, inverses_;
};

// Begins of equal pieces, ascending, at least two to a group.
using Group = std::vector<size_t>;

// Groups for lengths that grow: where no equal piece begins, no longer one does.
class Grouping {
 public:
  explicit Grouping(const Sequence& sequence) : fingerprints_(sequence) {
    candidates_.resize(sequence.nodes.size());
    std::iota(candidates_.begin(), candidates_.end(), size_t{0});
  }

  std::vector<Group> of_length(size_t length) {
    const std::vector<uint64_t> fingerprints = fingerprints_.of_length(length);
    std::vector<std::pair<uint64_t, size_t>> sorted;
    for (size_t begin : candidates_)
      if (begin < fingerprints.size()) sorted.emplace_back(fingerprints[begin], begin);
    std::sort(sorted.begin(), sorted.end());
    std::vector<Group> groups;
    for (size_t i = 0; i < sorted.size(); ++i) {
      const bool opens = i == 0 || sorted[i].first != sorted[i - 1].first;
      const bool closes = i + 1 == sorted.size() || sorted[i + 1].first != sorted[i].first;
      if (opens && closes) continue;
      if (opens) groups.emplace_back();
      groups.back().push_back(sorted[i].second);
    }
    // Of groups that are as good the first one is taken: by place, not by fingerprint, so that
    // graphs of other sizes are cut alike.
    std::sort(groups.begin(), groups.end());
    candidates_.clear();
    for (const Group& group : groups)
      candidates_.insert(candidates_.end(), group.begin(), group.end());
    return groups;
  }

 private:
  const Fingerprints fingerprints_;
  std::vector<size_t> candidates_;
};

class Search {
 public:
  Search(const Sequence& sequence, const RepeatLimits& limits)
      : sequence_(sequence), limits_(limits) {
    if (limits.whole_modules) find_modules();
  }

  std::optional<Repeat> run() {
    std::vector<Repeat> best;
    Grouping grouping(sequence_);
    for (size_t length : lengths())
      for (Repeat& repeat : best_of(grouping.of_length(length), length))
        if (best.empty() || repeat.saved() >= best.front().saved()) {
          if (!best.empty() && repeat.saved() > best.front().saved()) best.clear();
          best.push_back(std::move(repeat));
        }
    if (best.empty()) return std::nullopt;
    // Any cut of a period saves the same. A whole module reads best, then the piece that takes and
    // gives least.
    std::optional<std::pair<int64_t, size_t>> least;
    const Repeat* chosen = nullptr;
    for (const Repeat& repeat : best) {
      const std::pair cost{-depth_of(repeat), interface_of(repeat)};
      if (least && *least <= cost) continue;
      least = cost;
      chosen = &repeat;
    }
    return modules_.empty() ? extended(*chosen) : *chosen;
  }

 private:
  // True if a module's nodes begin at `begin` and are `length` or few more. Nodes after the last
  // layer that read no parameter look as if they belonged to it.
  bool is_module(size_t begin, size_t length) const {
    constexpr size_t kFew = 2;
    const auto run = modules_.lower_bound({begin, length});
    return run != modules_.end() && run->first == begin && run->second <= length + kFew;
  }

  // Runs of nodes of one module, those of its parts included: where they begin, their length.
  void find_modules() {
    const auto scope = [&](size_t i) { return sequence_.nodes[i]->annotation("scope"); };
    for (size_t begin = 0; begin < sequence_.nodes.size(); ++begin) {
      const std::string_view path = scope(begin);
      for (size_t end = path.find('.'); !path.empty(); end = path.find('.', end + 1)) {
        const std::string_view module = path.substr(0, end);
        if (begin == 0 || !is_within(scope(begin - 1), module)) {
          size_t length = 1;
          while (begin + length < sequence_.nodes.size() &&
                 is_within(scope(begin + length), module))
            ++length;
          modules_.insert({begin, length});
        }
        if (end == std::string_view::npos) break;
      }
    }
  }

  // A geometric series, and what nodes repeat at: the most frequent distances to the next equal
  // short piece. Of many short periods the best calls take several at once, about the root of their
  // number.
  std::vector<size_t> lengths() const {
    constexpr size_t kDistances = 32;
    const size_t most = sequence_.nodes.size() / 2;
    std::vector<size_t> lengths;
    if (!modules_.empty()) {
      for (const auto& [begin, length] : modules_) lengths.push_back(length);
      return usable(std::move(lengths));
    }
    std::map<size_t, size_t> distances;
    for (size_t one = std::max<size_t>(1, limits_.min_length); one <= most;
         one += std::max<size_t>(1, one / 4))
      lengths.push_back(one);
    Grouping grouping(sequence_);
    for (size_t length = 1; length <= most; length *= 4)
      for (const Group& group : grouping.of_length(length))
        for (size_t i = 1; i < group.size(); ++i) ++distances[group[i] - group[i - 1]];
    std::vector<std::pair<size_t, size_t>> frequent;
    for (const auto& [distance, count] : distances) frequent.emplace_back(count, distance);
    std::sort(frequent.rbegin(), frequent.rend());
    frequent.resize(std::min(frequent.size(), kDistances));
    for (const auto& [count, distance] : frequent) {
      const double periods = static_cast<double>(count) / static_cast<double>(distance) + 1;
      const double at_once = std::sqrt(periods / static_cast<double>(distance));
      lengths.push_back(distance);
      lengths.push_back(distance * std::max<size_t>(1, static_cast<size_t>(std::lround(at_once))));
    }
    return usable(std::move(lengths));
  }
  std::vector<size_t> usable(std::vector<size_t> lengths) const {
    const size_t most = sequence_.nodes.size() / 2;
    std::erase_if(lengths, [&](size_t one) { return one < limits_.min_length || one > most; });
    std::sort(lengths.begin(), lengths.end());
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
    return lengths;
  }

  // All that save as much as the best one does.
  std::vector<Repeat> best_of(const std::vector<Group>& groups, size_t length) const {
    std::vector<Repeat> best;
    int64_t most = limits_.min_saved;
    for (const Group& group : groups) {
      Repeat repeat{length, {}};
      for (size_t begin : group)
        if ((modules_.empty() || is_module(begin, length)) &&
            (repeat.begins.empty() || begin >= repeat.begins.back() + length))
          repeat.begins.push_back(begin);
      if (repeat.saved() < most) continue;
      keep_equal(repeat);
      if (repeat.saved() < most) continue;
      if (repeat.saved() > most) best.clear();
      most = repeat.saved();
      best.push_back(std::move(repeat));
    }
    return best;
  }

  // Fingerprints may lie.
  void keep_equal(Repeat& repeat) const {
    const size_t first = repeat.begins[0];
    std::erase_if(repeat.begins, [&](size_t begin) {
      for (size_t i = 0; i < repeat.length; ++i)
        if (!equal_at(first, begin, i)) return true;
      return false;
    });
  }
  // True if node number `place` is the same in the pieces that begin at `a` and `b`.
  bool equal_at(size_t a, size_t b, size_t place) const {
    if (sequence_.tokens[a + place] != sequence_.tokens[b + place]) return false;
    const auto &x = sequence_.before[a + place], &y = sequence_.before[b + place];
    size_t i = 0, j = 0;
    while (true) {
      while (i < x.size() && x[i].other < a) ++i;
      while (j < y.size() && y[j].other < b) ++j;
      if (i == x.size() || j == y.size()) return i == x.size() && j == y.size();
      if (x[i++].code != y[j++].code) return false;
    }
  }

  // Longer, as long as all pieces stay equal and apart.
  Repeat extended(Repeat repeat) const {
    const auto fits = [&](size_t begin_shift, size_t length) {
      for (size_t k = 0; k < repeat.begins.size(); ++k) {
        const size_t end = repeat.begins[k] - begin_shift + length;
        const bool last = k + 1 == repeat.begins.size();
        if (end > (last ? sequence_.nodes.size() : repeat.begins[k + 1] - begin_shift))
          return false;
      }
      return true;
    };
    const auto equal = [&](size_t begin_shift, size_t length, size_t from) {
      for (size_t begin : repeat.begins)
        for (size_t i = from; i < length; ++i)
          if (!equal_at(repeat.begins[0] - begin_shift, begin - begin_shift, i)) return false;
      return true;
    };
    while (fits(0, repeat.length + 1) && equal(0, repeat.length + 1, repeat.length))
      ++repeat.length;
    while (repeat.begins[0] > 0 && fits(1, repeat.length + 1) && equal(1, repeat.length + 1, 0)) {
      for (size_t& begin : repeat.begins) --begin;
      ++repeat.length;
    }
    return repeat;
  }

  // The depth of the module that the first piece belongs to.
  int64_t depth_of(const Repeat& repeat) const {
    const std::string scope = common_scope(sequence_, repeat.begins[0], repeat.length);
    return scope.empty() ? 0 : 1 + std::count(scope.begin(), scope.end(), '.');
  }

  // The number of tensors that enter and leave the first piece.
  size_t interface_of(const Repeat& repeat) const {
    const size_t begin = repeat.begins[0], end = begin + repeat.length;
    FlatMap<Hash, std::monostate> in;
    size_t out = 0;
    for (size_t place = begin; place < end; ++place) {
      const auto& behind = sequence_.behind[place];
      out += std::any_of(behind.begin(), behind.end(),
                         [&](const Sequence::Edge& edge) { return edge.other >= end; });
      for (const LazyTensor& operand : sequence_.nodes[place]->operands())
        if (operand && !is_part_of_piece(operand)) in.insert(operand.hash(), {});
    }
    return in.size() + out;
  }

  const Sequence& sequence_;
  const RepeatLimits& limits_;
  std::set<std::pair<size_t, size_t>> modules_;  // begin, length
};

}  // namespace

bool is_part_of_piece(const LazyTensor& operand) { return is_wrapped_number(operand); }

Sequence sequence_of(const Graph& graph, bool effects) {
  Sequence sequence;
  FlatMap<const Node*, uint32_t> places;
  for (const NodePtr& node : graph.nodes()) {
    if (is_input(*node) || node->op() == ops::kConstant) continue;
    const auto place = static_cast<uint32_t>(sequence.nodes.size());
    places.insert(node.get(), place);
    sequence.nodes.push_back(node);
    sequence.tokens.push_back(token_of(*node, effects));
    sequence.before.emplace_back();
    sequence.behind.emplace_back();
    for (size_t i = 0; i < node->operands().size(); ++i) {
      const LazyTensor& operand = node->operands()[i];
      const uint32_t* other = operand ? places.find(operand.node.get()) : nullptr;
      if (other == nullptr) continue;
      const uint64_t code = mixed({i, operand.index, place - *other});
      sequence.before[place].push_back({*other, code});
      sequence.behind[*other].push_back({place, code});
    }
  }
  return sequence;
}

int64_t Repeat::saved() const {
  const auto count = static_cast<int64_t>(begins.size());
  return (count - 1) * static_cast<int64_t>(length) - count;
}

std::string common_scope(const Sequence& sequence, size_t begin, size_t length) {
  std::string common(sequence.nodes[begin]->annotation("scope"));
  for (size_t i = begin + 1; i < begin + length; ++i)
    common = common_scope(common, sequence.nodes[i]->annotation("scope"));
  return common;
}

std::optional<Repeat> best_repeat(const Sequence& sequence, const RepeatLimits& limits) {
  return Search(sequence, limits).run();
}

}  // namespace composit
