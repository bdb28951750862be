#include "flashlight/loops/block.h"

#include <algorithm>
#include <set>

#include "flashlight/loops/renumber.h"
#include "flashlight/loops/statement.h"

namespace flashlight::loops {
namespace {

using composit::AxisKind;
using composit::Store;

class BlockExtractor {
 public:
  BlockExtractor(Routine& whole, const Region& region) : whole_(whole), region_(region) {}

  Blocks run(int64_t size) {
    for (const auto& [step, axis] : region_.axes) {
      steps_.push_back(std::get<Nest>(whole_.steps[step]));
      if (region_.is_sum(whole_, step)) open_sum(step, steps_.back());
    }
    Control& loop = blocks_.loop;
    loop.kind = Control::Kind::blocks;
    loop.length = region_.extent;
    loop.block = size;
    loop.origin = steps_[0].origin;
    blocks_.bodies.push_back(body(size));
    if (region_.extent % size != 0) {
      loop.sequences = loop.outside = loop.results = {};
      loop.along = {};
      blocks_.bodies.push_back(body(region_.extent % size));
    }
    return std::move(blocks_);
  }

 private:
  size_t writers(ValueId value) const {
    return static_cast<size_t>(
        std::count_if(whole_.steps.begin(), whole_.steps.end(),
                      [&](const Step& step) { return contains(writes(step), value); }));
  }

  // Makes the sum add to its result block by block. If it has an epilogue, it adds to a new value
  // instead, and the epilogue becomes a nest that runs after all blocks.
  void open_sum(StepId step, Nest& nest) {
    Statement& sum = nest.statement;
    const Expr accumulator = Expr::accumulator(0, sum.init[0].dtype());
    Store& first = sum.stores[0];
    const Type& type = whole_.values[value_of(first)].type;
    const auto dimensions = axes_of_dimensions(first.at);
    const bool plain = sum.stores.size() == 1 && first.value.same(accumulator) && !first.add &&
                       type.dtype == accumulator.dtype() && writers(value_of(first)) == 1 &&
                       dimensions && dimensions->size() == parallel_axes(sum);
    if (!plain) {
      Statement rest;
      composit::Dims sizes;
      std::vector<Expr> at;
      for (const composit::Axis& axis : sum.axes) {
        if (axis.kind != AxisKind::parallel) continue;
        at.push_back(Expr::axis(rest.axes.size()));
        rest.axes.push_back(axis);
        sizes.push_back(axis.extent);
      }
      const ValueId value = whole_.values.next();
      whole_.values.push_back({composit::tensor_type(accumulator.dtype(), sizes), Role::temporary,
                               whole_.values[value_of(first)].name + "_sum"});
      rest.stores = std::move(sum.stores);
      sum.stores = {{value, at, accumulator, false}};
      const Expr load = Expr::load(value, accumulator.dtype(), at);
      rest = replaced(std::move(rest), [&](const Expr& part) {
        return part.kind() == ExprKind::accumulator ? load : Expr();
      });
      blocks_.after[step] = {std::move(rest), nest.origin};
    }
    sum.stores[0].add = true;
    sums_.insert(value_of(sum.stores[0]));
  }

  // The function that runs the steps for `size` elements of the axis.
  Routine body(int64_t size) {
    body_ = {};
    body_.is_part = true;
    numbers_.clear();
    std::set<ValueId> written;
    for (const Nest& step : steps_)
      for (ValueId value : writes(step)) written.insert(value);
    ValueIds outside;
    for (const Nest& step : steps_)
      for (const auto& list : {reads(step), writes(step)})
        for (ValueId value : list)
          if (!numbers_.contains(value)) take(value, written.contains(value), size, outside);
    body_.inputs.insert(body_.inputs.end(), outside.begin(), outside.end());
    auto& along = blocks_.loop.along;
    along.insert(along.end(), results_along_.begin(), results_along_.end());
    results_along_.clear();
    auto axis = region_.axes.begin();
    for (const Nest& step : steps_) body_.steps.push_back(round_of(step, (axis++)->second, size));
    return std::move(body_);
  }

  // Declares `value`, or a block of it, in the body.
  void take(ValueId value, bool written, int64_t size, ValueIds& outside) {
    Value inner = whole_.values[value];
    const auto found = region_.dimensions.find(value);
    const bool split = found != region_.dimensions.end() && !sums_.contains(value);
    const bool local = split && region_.is_local(whole_, value);
    if (split && (local || found->second == 0)) {
      composit::Dims sizes = inner.type.sizes;
      sizes[found->second] = size;
      inner.type = composit::tensor_type(inner.type.dtype, sizes);
    }
    const ValueId number = numbers_[value] = body_.values.next();
    const auto dimension = split ? std::optional(found->second) : std::nullopt;
    if (inner.role == Role::constant || local) {
      body_.values.push_back(std::move(inner));
      return;
    }
    inner.role = written ? Role::result : Role::argument;
    body_.values.push_back(std::move(inner));
    Control& loop = blocks_.loop;
    if (written) {
      body_.results.push_back(number);
      loop.results.push_back(value);
      results_along_.push_back(dimension);
    } else if (split) {
      body_.inputs.push_back(number);
      loop.sequences.push_back(value);
      loop.along.push_back(dimension);
    } else {
      outside.push_back(number);
      loop.outside.push_back(value);
    }
  }

  Nest round_of(const Nest& step, AxisId axis, int64_t size) const {
    Nest round = std::get<Nest>(renumbered(step, numbers_));
    round.statement.axes[axis].extent = size;
    round.statement = simplified(std::move(round.statement));
    return round;
  }

  Routine& whole_;
  const Region& region_;
  std::vector<Nest> steps_;
  std::set<ValueId> sums_;
  Routine body_;
  std::map<ValueId, ValueId> numbers_;  // by value: its number in the body
  std::vector<std::optional<size_t>> results_along_;
  Blocks blocks_;
};

}  // namespace

Blocks extract_blocks(Routine& function, const Region& region, int64_t size) {
  return BlockExtractor(function, region).run(size);
}

}  // namespace flashlight::loops
