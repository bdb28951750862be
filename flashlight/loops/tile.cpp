#include "flashlight/loops/tile.h"

#include <algorithm>
#include <set>

#include "composit/ir/scope.h"
#include "flashlight/loops/block.h"
#include "flashlight/loops/region.h"
#include "flashlight/loops/schedule.h"
#include "flashlight/loops/sizes.h"
#include "flashlight/loops/statement.h"

namespace flashlight::loops {
namespace {

// The bytes that a round of a loop may touch of one value, half of a usual second-level cache; and
// the bytes it may touch of a block, which leave room for other values.
constexpr int64_t kCacheBytes = 512 << 10, kBlockBytes = 256 << 10;
// A block needs this many elements to keep loops and products busy.
constexpr int64_t kLeastBlock = 64;
// Blocks must cut memory traffic by this factor to be worth their calls.
constexpr int64_t kLeastGain = 2;

int64_t bytes_of(const Type& type) {
  return type.numel() * static_cast<int64_t>(composit::item_size(type.dtype));
}

class Tiler {
 public:
  Tiler(Program& program, FunctionId number)
      : program_(program), function_(program.functions[number]), number_(number) {}

  // Adds one loop over blocks if that pays; true if it did.
  bool run() {
    schedule_ = schedule_of(function_);
    for (ValueId value : large_values())
      for (size_t dimension = 0; dimension < function_.values[value].type.rank(); ++dimension)
        if (try_blocks(value, dimension)) return true;
    return false;
  }

 private:
  // Temporaries of which one round of a shared loop touches more than a cache holds.
  std::set<ValueId> large_values() const {
    std::set<ValueId> values;
    for (const StepId step : function_.steps.ids()) {
      if (schedule_.shared[step] == 0) continue;
      visit_traffic(step, [&](ValueId value, const Traffic& traffic) {
        const bool own = function_.values[value].role == Role::temporary;
        if (own && traffic.bytes > kCacheBytes) values.insert(value);
      });
    }
    return values;
  }

  bool try_blocks(ValueId value, size_t dimension) {
    if (function_.values[value].type.sizes[dimension] < 2 * kLeastBlock) return false;
    const Region region = region_of(program_, function_, value, dimension);
    if (!region.is_local(function_, value)) return false;
    const int64_t size = block_of(region);
    if (size < kLeastBlock || !pays(region, size)) return false;
    apply(region, size);
    return true;
  }

  // The bytes of a value that `step` touches in one round of its shared loops, and the number of
  // rounds.
  struct Traffic {
    int64_t bytes, rounds = 1;
  };
  Traffic traffic(StepId step, ValueId value, const std::vector<Expr>& at) const {
    Traffic traffic = {bytes_of(function_.values[value].type)};
    const composit::Statement& statement = std::get<Nest>(function_.steps[step]).statement;
    for (size_t depth = 0; depth < schedule_.shared[step]; ++depth) {
      const AxisId axis = schedule_.order[step][depth];
      const int64_t extent = statement.axes[axis].extent;
      traffic.rounds *= extent;
      for (const Expr& index : at) {
        if (contains(axes_in(index), axis)) traffic.bytes /= extent;
      }
    }
    return traffic;
  }

  // Calls visit(value, traffic) for every value that `step`, or a step of the region, touches.
  template <class Visit>
  void visit_traffic(StepId step, const Visit& visit) const {
    visit_traffic(step, std::get<Nest>(function_.steps[step]).statement, visit);
  }
  template <class Visit>
  void visit_traffic(StepId step, const Statement& statement, const Visit& visit) const {
    std::set<ValueId> seen;
    const auto touch = [&](ValueId value, const std::vector<Expr>& at) {
      if (seen.insert(value).second) visit(value, traffic(step, value, at));
    };
    for (const composit::Store& store : statement.stores) touch(value_of(store), store.at);
    for (const Expr& part : composit::parts_of(expressions(statement)))
      if (part.kind() == ExprKind::load) touch(value_of(part), part.arguments());
  }
  template <class Visit>
  void visit_traffic(const Region& region, const Visit& visit) const {
    for (const auto& [step, axis] : region.axes)
      visit_traffic(step, region.inside(function_, step), visit);
  }

  // The block size: the most elements of the axis for which a round stays in the cache. Prefers a
  // divisor of the axis, which leaves no rest, and avoids multiples of 64: rows that are such a
  // stride apart would compete for few sets of the cache.
  int64_t block_of(const Region& region) const {
    int64_t most = 0;
    visit_traffic(region, [&](ValueId value, const Traffic& traffic) {
      if (traffic.rounds > 1 && region.is_local(function_, value))
        most = std::max(most, traffic.bytes);
    });
    constexpr int64_t kLanes = 8, kPowerOf2 = 64;
    const int64_t limit = kBlockBytes * region.extent / most;
    for (int64_t size = limit; size > limit / 2; --size)
      if (region.extent % size == 0 && size % kPowerOf2 != 0) return size;
    if (limit < kLeastBlock) return limit;
    const int64_t blocks = (region.extent + limit - 1) / limit;
    const int64_t even = (region.extent / blocks + kLanes - 1) / kLanes * kLanes;
    return even % kPowerOf2 == 0 ? even - kLanes : even;
  }

  // Compares what rounds read from memory now with what each block would read as a whole (a sum is
  // read and written). False if a temporary that now is stored for one round only would become too
  // large for the cache.
  bool pays(const Region& region, int64_t size) const {
    const int64_t blocks = (region.extent + size - 1) / size;
    int64_t now = 0, then = 0;
    bool grows = false;
    visit_traffic(region, [&](ValueId value, const Traffic& traffic) {
      const Value& one = function_.values[value];
      grows |= one.role == Role::temporary && !region.is_local(function_, value) &&
               schedule_.storage[value].elements < one.type.numel() &&
               bytes_of(one.type) > kCacheBytes;
      if (!region.dimensions.contains(value))
        then += blocks * bytes_of(one.type);
      else if (traffic.bytes > kCacheBytes)
        now += traffic.bytes * traffic.rounds;
    });
    for (const auto& [step, axis] : region.axes)
      if (region.is_sum(function_, step)) then += blocks * 2 * bytes_of_sum(step);
    return blocks > 1 && !grows && now > kLeastGain * then;
  }
  int64_t bytes_of_sum(StepId step) const {
    const Statement& sum = std::get<Nest>(function_.steps[step]).statement;
    auto bytes = static_cast<int64_t>(composit::item_size(sum.init[0].dtype()));
    for (const composit::Axis& axis : sum.axes)
      if (axis.kind == composit::AxisKind::parallel) bytes *= axis.extent;
    return bytes;
  }

  void apply(const Region& region, int64_t size) {
    Blocks blocks = extract_blocks(function_, region, size);
    Table<StepId, Step> steps;
    for (StepId step : region.before) steps.push_back(function_.steps[step]);
    const StepId loop = steps.next();
    steps.push_back(std::move(blocks.loop));
    for (StepId step : region.after) {
      if (!region.has(step))
        steps.push_back(function_.steps[step]);
      else if (blocks.after.contains(step))
        steps.push_back(std::move(blocks.after[step]));
    }
    function_.steps = std::move(steps);
    name(blocks.bodies);
    std::vector<FunctionId>& functions = std::get<Control>(function_.steps[loop]).functions;
    for (size_t i = 0; i < blocks.bodies.size(); ++i) renumber_callees(program_, number_);
    for (size_t i = 0; i < blocks.bodies.size(); ++i) functions.push_back(number_ + i);
    program_.functions.insert(program_.functions.begin() + static_cast<std::ptrdiff_t>(number_),
                              std::make_move_iterator(blocks.bodies.begin()),
                              std::make_move_iterator(blocks.bodies.end()));
  }

  void name(std::vector<Routine>& bodies) const {
    std::set<std::string> names;
    for (const Routine& function : program_.functions) names.insert(function.name);
    for (size_t i = 0; i < bodies.size(); ++i)
      bodies[i].name = composit::unused_name(function_.name + (i == 0 ? "_block" : "_rest"), names);
  }

  Program& program_;
  Routine& function_;
  const FunctionId number_;
  Schedule schedule_;
};

}  // namespace

Program tile(Program program) {
  expect_bound("tile", program);
  for (FunctionId number; number < program.functions.size(); ++number)
    for (size_t before = program.functions.size(); Tiler(program, number).run();) {
      number += program.functions.size() - before;  // its blocks come before it
      before = program.functions.size();
    }
  return program;
}

}  // namespace flashlight::loops
