#include "composit/eval/program.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "composit/ir/error.h"
#include "composit/op/compute_type.h"
#include "composit/op/scalar_templates.h"
#include "composit/op/scalar_value.h"

namespace composit::eval {
namespace {

constexpr uint64_t kFromOutside = uint64_t{1} << 63;  // blocks of the environment
constexpr uint64_t kAll = ~uint64_t{0};

uint64_t bit(size_t axis) {
  COMPOSIT_ASSERT(axis <= Program::kNoAxis, "a statement of more than 62 axes");
  return uint64_t{1} << axis;
}

int64_t integer(const std::byte* block, size_t i = 0) {
  return reinterpret_cast<const int64_t*>(block)[i];
}

bool within(int64_t x, int64_t limit) { return -limit <= x && x <= limit; }

void write_literal(const Expr& literal, std::byte* to) {
  with_compute(literal.dtype(), [&]<class T>(std::type_identity<T>) {
    *reinterpret_cast<T*>(to) =
        std::visit([](auto value) { return convert<T>(value); }, literal.value());
  });
}

}  // namespace

void Fault::raise() const {
  if (kind == division)
    throw UserError("[" + std::string(info_of(function).name) + "] integer division by zero");
  throw UserError("index " + std::to_string(index) + " is out of range for axis " +
                  std::to_string(axis) + " of size " + std::to_string(size));
}

Program::Program(const Environment& environment, size_t run_axis, size_t capacity)
    : environment_(environment),
      run_axis_(run_axis),
      capacity_(capacity),
      varying_(bit(run_axis) | kFromOutside) {}

// --- Building ---------------------------------------------------------------------------------

size_t Program::add(const Expr& root) {
  roots_.push_back(number_of(root));
  return roots_.back();
}

size_t Program::add_place(const std::vector<Expr>& at, const Type& type) {
  places_.push_back(place_of(at, type));
  for (const Index& index : places_.back().indices) parts_[index.part].needed = true;
  return places_.size() - 1;
}

size_t Program::number_of(const Expr& expr) {
  for (const Expr& part : parts_of({expr}))
    if (!numbers_.contains(part.hash())) add_part(part);
  return *numbers_.find(expr.hash());
}

void Program::add_part(const Expr& expr) {
  Part part;
  part.expr = expr;
  part.kind = expr.kind();
  part.dtype = expr.dtype();
  switch (part.kind) {
    case ExprKind::literal:
      break;
    case ExprKind::axis:
      part.axes = bit(expr.number());
      break;
    case ExprKind::load:
      places_.push_back(place_of(expr.arguments(), environment_.operands.at(expr.number()).type()));
      part.place = places_.size() - 1;
      for (const Index& index : places_.back().indices) part.arguments.push_back(index.part);
      break;
    case ExprKind::call:
      part.function = expr.function();
      for (const Expr& argument : expr.arguments())
        part.arguments.push_back(*numbers_.find(argument.hash()));
      break;
    case ExprKind::parameter:
      COMPOSIT_ASSERT(false, "a parameter in a loop form");
    default:
      part.axes = kFromOutside;
  }
  for (const Expr& argument : expr.arguments())
    part.axes |= parts_[*numbers_.find(argument.hash())].axes;
  part.step = step_of(part);
  numbers_.insert(expr.hash(), parts_.size());
  parts_.push_back(std::move(part));
}

std::optional<int64_t> Program::step_of(const Part& part) const {
  if ((part.axes & varying_) == 0) return 0;
  if (part.kind == ExprKind::axis) return 1;
  if (part.kind != ExprKind::call || part.dtype != DType::int64) return std::nullopt;
  std::array<int64_t, 2> steps = {};
  for (size_t i = 0; i < part.arguments.size() && i < 2; ++i) {
    const std::optional<int64_t> step = parts_[part.arguments[i]].step;
    if (!step) return std::nullopt;
    steps[i] = *step;
  }
  switch (part.function) {
    case Function::neg:
      return scalar::neg(steps[0]);
    case Function::add:
      return scalar::add(steps[0], steps[1]);
    case Function::sub:
      return scalar::sub(steps[0], steps[1]);
    case Function::mul:
      for (size_t i = 0; i < 2; ++i)
        if (part.expr[i].kind() == ExprKind::literal)
          return scalar::mul(std::get<int64_t>(part.expr[i].value()), steps[1 - i]);
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

Program::Place Program::place_of(const std::vector<Expr>& at, const Type& type) {
  Place place;
  COMPOSIT_ASSERT(at.size() == type.rank(), "an index per axis");
  for (size_t axis = 0; axis < at.size(); ++axis) {
    place.sizes.push_back(type.sizes[axis]);
    place.strides.push_back(type.strides[axis]);
    Expr index = cast(at[axis], DType::int64);
    const std::optional<int64_t> step = parts_[number_of(index)].step;
    if (step.value_or(0) != 0) {  // its value at the start of the axis
      index = replace(index, [&](const Expr& part) {
        const bool runs = part.kind() == ExprKind::axis && part.number() == run_axis_;
        return runs ? Expr::literal(int64_t{0}, DType::int64) : Expr();
      });
    }
    place.indices.push_back({number_of(index), step});
  }
  return place;
}

// A value that an expression over all points uses is repeated for each of them.
void Program::need(size_t part, bool by_points) {
  parts_[part].needed = true;
  parts_[part].repeated |= by_points && !depends_on_run(part);
}

void Program::finish() {
  for (const size_t root : roots_) need(root, true);
  for (size_t i = parts_.size(); i-- > 0;) {
    Part& part = parts_[i];
    if (!part.needed) continue;
    const bool load = part.kind == ExprKind::load;
    for (const size_t argument : part.arguments) need(argument, !load && depends_on_run(i));
    const size_t elements = depends_on_run(i) || part.repeated ? capacity_ : 1;
    if ((part.axes & kFromOutside) == 0 || part.kind == ExprKind::call || load)
      part.own = std::make_unique<std::byte[]>(elements * compute_size(part.dtype));
    order_.push_back(i);
  }
  std::reverse(order_.begin(), order_.end());
}

double Program::cost(double points_per_run) const {
  double sum = 0;
  for (const size_t i : order_) {
    sum += 15 / points_per_run;
    if (!depends_on_run(i)) continue;
    sum += 0.3;
    if (parts_[i].kind != ExprKind::load) continue;
    const Place& place = places_[parts_[i].place];
    for (size_t axis = 0; axis < place.indices.size(); ++axis) {
      const std::optional<int64_t> step = place.indices[axis].step;
      if (!step)
        sum += 3;
      else if (std::abs(static_cast<double>(*step) * static_cast<double>(place.strides[axis])) > 1)
        sum += 2;
    }
  }
  return sum;
}

// --- Running ----------------------------------------------------------------------------------

void Program::run(const Points& points) {
  const uint64_t changed = moved(points);
  for (const size_t i : order_)
    if (!has_run_ || (parts_[i].axes & changed) != 0) evaluate(parts_[i]);
  has_run_ = true;
}

// The axes whose index is another than at the last run.
uint64_t Program::moved(const Points& points) {
  uint64_t changed = kFromOutside;
  const bool same = points.list == nullptr && points_.list == nullptr &&
                    points.first == points_.first && points.count == points_.count;
  if (!same) changed |= varying_;
  points_ = points;
  axes_.resize(environment_.axes.size());
  for (size_t axis = 0; axis < axes_.size(); ++axis) {
    if (axes_[axis] == environment_.axes[axis]) continue;
    axes_[axis] = environment_.axes[axis];
    changed |= bit(axis);
  }
  return changed;
}

void Program::evaluate(Part& part) {
  part.data = part.own.get();
  part.faults.clear();
  const size_t number = part.kind == ExprKind::call ? 0 : part.expr.number();
  const auto from = [&](const std::vector<const void*>& blocks) {
    part.data = static_cast<const std::byte*>(blocks.at(number));
  };
  auto* integers = reinterpret_cast<int64_t*>(part.own.get());
  switch (part.kind) {
    case ExprKind::literal:
      write_literal(part.expr, part.own.get());
      break;
    case ExprKind::axis:
      integers[0] = environment_.axes.at(number);
      if (number == run_axis_)
        for (size_t i = 0; i < points_.count; ++i) integers[i] = points_.at(i);
      break;
    case ExprKind::load:
      evaluate_load(part);
      break;
    case ExprKind::accumulator:
      from(environment_.accumulators);
      break;
    case ExprKind::left:
      from(environment_.left);
      break;
    case ExprKind::right:
      from(environment_.right);
      break;
    default:
      evaluate_call(part);
  }
  if (part.repeated) repeat(part.dtype, capacity_, part.own.get());
}

void Program::evaluate_load(Part& part) {
  const Array& array = environment_.operands[part.expr.number()];
  const bool varies = (part.axes & varying_) != 0;
  Place& place = places_[part.place];
  const Points points = varies ? points_ : Points();
  const std::optional<Elements> regular = affine_elements(place, points);
  const Elements from = regular ? *regular : listed_elements(place, points, part.faults);
  const std::byte* there = varies ? view(array.type().dtype, array.data(), from) : nullptr;
  if (there != nullptr)
    part.data = there;
  else
    read(array.type().dtype, points.count, array.data(), from, part.own.get());
}

// The access, if all indices are affine and in range; else nothing.
std::optional<Elements> Program::affine_elements(Place& place, const Points& points) const {
  constexpr int64_t kFar = int64_t{1} << 60;  // from here on `start + step * point` might overflow
  const int64_t first = points.at(0), last = points.last();
  Elements elements;
  for (size_t axis = 0; axis < place.indices.size(); ++axis) {
    const auto& [part, step] = place.indices[axis];
    if (!step || !parts_[part].faults.empty()) return std::nullopt;
    const int64_t start = integer(parts_[part].data);
    if (!within(start, kFar) || !within(*step, kFar / (last + 1))) return std::nullopt;
    const int64_t one = start + *step * first, other = start + *step * last;
    if (std::min(one, other) < 0 || std::max(one, other) >= place.sizes[axis]) return std::nullopt;
    elements.first += one * place.strides[axis];
    if (last > first) elements.step += *step * place.strides[axis];
  }
  if (points.list != nullptr) {
    place.offsets.resize(points.count);
    for (size_t i = 0; i < points.count; ++i)
      place.offsets[i] = elements.first + elements.step * (points.list[i] - first);
    elements.offsets = place.offsets.data();
  }
  return elements;
}

Elements Program::listed_elements(Place& place, const Points& points,
                                  std::vector<Fault>& faults) const {
  place.offsets.assign(points.count, 0);
  for (size_t axis = 0; axis < place.indices.size(); ++axis) {
    const auto& [number, step] = place.indices[axis];
    const Part& part = parts_[number];
    for (size_t i = 0; i < points.count; ++i) {
      int64_t& offset = place.offsets[i];
      if (offset == kNowhere) continue;
      const int64_t index = step ? scalar::add(integer(part.data), scalar::mul(*step, points.at(i)))
                                 : integer(part.data, i);
      Fault fault = part.faults.empty() ? Fault() : part.fault(i);
      if (fault.kind == Fault::none && (index < 0 || index >= place.sizes[axis]))
        fault = {.kind = Fault::range, .axis = axis, .index = index, .size = place.sizes[axis]};
      if (fault.kind == Fault::none) {
        offset += index * place.strides[axis];
      } else {
        faults.resize(points.count);
        faults[i] = fault;
        offset = kNowhere;
      }
    }
  }
  return {.offsets = place.offsets.data()};
}

void Program::evaluate_call(Part& part) {
  const std::vector<size_t>& arguments = part.arguments;
  const size_t n = count(part);
  std::array<const void*, 3> data = {};
  for (size_t i = 0; i < arguments.size(); ++i) data[i] = parts_[arguments[i]].data;
  const DType operand = parts_[arguments[0]].dtype;
  std::byte* result = part.own.get();
  if (part.function == Function::select) {
    apply_select(part.dtype, n, static_cast<const bool*>(data[0]), data[1], data[2], result);
    return inherit_chosen_faults(part);
  }
  if (part.function == Function::cast)
    apply_cast(operand, part.dtype, n, data[0], result);
  else
    apply(part.function, operand, n, data.data(), result);
  inherit_faults(part);
  if (divides_integers(part.function, operand)) find_zero_divisors(part);
}

void Program::inherit_faults(Part& part) const {
  for (const size_t argument : part.arguments) {
    const Part& from = parts_[argument];
    if (from.faults.empty()) continue;
    part.faults.resize(count(part));
    for (size_t i = 0; i < part.faults.size(); ++i)
      if (part.faults[i].kind == Fault::none) part.faults[i] = from.fault(i);
  }
}

void Program::inherit_chosen_faults(Part& part) const {
  const Part* arguments[3];
  bool clean = true;
  for (size_t i = 0; i < 3; ++i) {
    arguments[i] = &parts_[part.arguments[i]];
    clean = clean && arguments[i]->faults.empty();
  }
  if (clean) return;
  const auto fault = [](const Part& from, size_t i) {
    return from.faults.empty() ? Fault() : from.fault(i);
  };
  const auto* condition = reinterpret_cast<const bool*>(arguments[0]->data);
  part.faults.resize(count(part));
  for (size_t i = 0; i < part.faults.size(); ++i) {
    part.faults[i] = fault(*arguments[0], i);
    if (part.faults[i].kind == Fault::none)
      part.faults[i] = fault(*arguments[condition[i] ? 1 : 2], i);
  }
}

void Program::find_zero_divisors(Part& part) const {
  with_compute(part.dtype, [&]<class T>(std::type_identity<T>) {
    const T* divisors = reinterpret_cast<const T*>(parts_[part.arguments[1]].data);
    const size_t n = count(part);
    if (std::find(divisors, divisors + n, T(0)) == divisors + n) return;
    part.faults.resize(n);
    for (size_t i = 0; i < n; ++i)
      if (divisors[i] == T(0) && part.faults[i].kind == Fault::none)
        part.faults[i] = {.kind = Fault::division, .function = part.function};
  });
}

// --- Results ----------------------------------------------------------------------------------

const void* Program::values(size_t part) const {
  for (const Fault& fault : parts_[part].faults)
    if (fault.kind != Fault::none) fault.raise();
  return parts_[part].data;
}

Elements Program::elements(size_t number) {
  Place& place = places_[number];
  if (const std::optional<Elements> regular = affine_elements(place, points_)) return *regular;
  std::vector<Fault> faults;
  const Elements listed = listed_elements(place, points_, faults);
  for (const Fault& fault : faults)
    if (fault.kind != Fault::none) fault.raise();
  return listed;
}

}  // namespace composit::eval
