#include "flashlight/cuda/kernel_writer.h"

#include <algorithm>
#include <limits>

#include "composit/ir/error.h"
#include "composit/ir/scope.h"
#include "composit/op/affine.h"
#include "composit/op/stores.h"
#include "flashlight/loops/statement.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/nest_writer.h"

namespace flashlight::cuda {

using composit::AxisKind;
using composit::Expr;
using composit::Store;
using text::Code;
using text::Leaves;
using ScalarFunction = composit::Function;

namespace {

// Shorter sums are a thread's, and so are those of so many points that threads have enough to do.
constexpr int64_t kLeastTerms = 64, kManyPoints = 1 << 17;
// Longer ones are a block's.
constexpr int64_t kBlockTerms = 2048;
constexpr int64_t kMostThreads = 1024;  // of a block

bool stores_at(const Store& store, AxisId axis) {
  return std::any_of(store.at.begin(), store.at.end(),
                     [&](const Expr& index) { return is_axis(index, axis); });
}

// True unless each point stores to an element of its own.
bool may_collide(const Statement& statement, const Store& store) {
  composit::IndexAnalysis analysis(statement.axes);
  return !composit::injective(store.at, composit::store_axes(statement), analysis);
}

AxisIds reduced_axes(const Statement& statement) {
  AxisIds axes;
  for (const AxisId i : axes_of(statement))
    if (statement.axes[i].kind == AxisKind::reduction) axes.push_back(i);
  return axes;
}

// The value that changes nothing in a fold.
Expr neutral(ScalarFunction function, composit::DType dtype) {
  const double infinity = std::numeric_limits<double>::infinity();
  switch (function) {
    case ScalarFunction::add:
      return composit::cast(Expr(int64_t{0}), dtype);
    case ScalarFunction::mul:
      return composit::cast(Expr(int64_t{1}), dtype);
    default:
      return Expr::literal(function == ScalarFunction::max ? -infinity : infinity, dtype);
  }
}

// The function of a reduction that warps and blocks may divide; nothing for others.
std::optional<ScalarFunction> divided_fold(const Statement& statement) {
  const auto function = fold_function(statement);
  if (!function || has_axes(statement, AxisKind::scan)) return std::nullopt;
  const bool of_order = *function == ScalarFunction::max || *function == ScalarFunction::min;
  if (of_order && !composit::is_floating_point(statement.init[0].dtype())) return std::nullopt;
  return function;
}

}  // namespace

KernelShape shape_of(const Statement& statement) {
  KernelShape shape;
  AxisIds parallel;
  for (const AxisId i : axes_of(statement))
    if (statement.axes[i].kind == AxisKind::parallel) parallel.push_back(i);
  // Threads write neighbouring elements: in the order of the first result's dimensions.
  if (!statement.stores.empty())
    for (const Expr& index : statement.stores[0].at)
      for (const AxisId axis : parallel)
        if (is_axis(index, axis) &&
            std::count(shape.threads.begin(), shape.threads.end(), axis) == 0)
          shape.threads.push_back(axis);
  for (const AxisId axis : parallel)
    if (std::count(shape.threads.begin(), shape.threads.end(), axis) == 0)
      shape.threads.insert(shape.threads.begin(), axis);
  // Points that may store to one element are one thread's, in the order of the loops: those of axes
  // that are no index of such a store.
  std::vector<const Store*> colliding;
  for (const Store& store : statement.stores)
    if (may_collide(statement, store)) colliding.push_back(&store);
  const auto shared = [&](AxisId axis) {
    return std::any_of(colliding.begin(), colliding.end(),
                       [&](const Store* store) { return !stores_at(*store, axis); });
  };
  for (const AxisId axis : parallel)
    if (shared(axis)) {
      std::erase(shape.threads, axis);
      shape.serial.push_back(axis);
    }
  shape.points = iterations(statement, shape.threads);
  const int64_t terms = iterations(statement, reduced_axes(statement));
  if (shape.serial.empty() && divided_fold(statement) && terms >= kLeastTerms &&
      shape.points < kManyPoints)
    shape.worker = terms >= kBlockTerms ? Worker::block : Worker::warp;
  return shape;
}

KernelWriter::KernelWriter(const Statement& statement, const KernelShape& shape,
                           const KernelContext& context)
    : statement_(statement),
      shape_(shape),
      context_(context),
      taken_({"point", "lane", "term"}),
      axes_(statement.axes.size()) {}

text::Element KernelWriter::element(ValueId value, const std::vector<std::string>& indices) const {
  const Type& type = context_.type(value);
  std::string place = "0";
  for (size_t i = 0; i < indices.size(); ++i) {
    const bool sum = indices[i].find(' ') != std::string::npos;
    const bool scaled = place.find(' ') != std::string::npos;
    if (place == "0") {
      place = indices[i];
      continue;
    }
    place = (scaled ? "(" + place + ")" : place) + " * " + std::to_string(type.sizes[i]) + " + " +
            (sum ? "(" + indices[i] + ")" : indices[i]);
  }
  return {context_.name(value), {place}};
}

Code KernelWriter::indices(const AxisIds& axes, const std::string& point, bool is_wide) {
  Code code;
  int64_t stride = iterations(statement_, axes);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t extent = statement_.axes[axes[i]].extent;
    stride /= extent;
    std::string index = stride == 1 ? point : point + " / " + std::to_string(stride);
    if (i > 0) index += " % " + std::to_string(extent);
    axes_[axes[i]] =
        text::loop_name([this](const std::string& name) { return taken_.insert(name).second; });
    if (is_wide) index = "static_cast<int>(" + index + ")";
    code += text::assignment("const int " + axes_[axes[i]], index);
  }
  return code;
}

Leaves KernelWriter::leaves() const {
  Leaves leaves;
  leaves.axes = axes_;
  leaves.element = [this](ValueId value, const std::vector<std::string>& indices) {
    return element(value, indices);
  };
  leaves.type = context_.type;
  leaves.range = context_.range;
  return leaves;
}

Code KernelWriter::write(const std::string& name, const std::vector<std::string>& parameters) {
  for (const std::string& one : parameters) taken_.insert(one.substr(one.rfind(' ') + 1));
  const std::string points = std::to_string(shape_.points);
  Code loop;
  switch (shape_.worker) {
    case Worker::thread:
      loop = text::braced(
          "for (int64_t point = fl::thread(); point < " + points + "; point += fl::threads())",
          of_thread());
      break;
    case Worker::warp:
      loop = text::braced("for (int64_t point = fl::thread() / 32; point < " + points +
                              "; point += fl::threads() / 32)",
                          of_several());
      break;
    case Worker::block:
      loop = text::braced(
          "for (int64_t point = blockIdx.x; point < " + points + "; point += gridDim.x)",
          of_several());
      break;
  }
  return text::code(text::Definition{"__global__ void " + name, parameters, loop});
}

// ---- one thread per point -----------------------------------------------------------------------

Code KernelWriter::of_thread() {
  Code code = indices(shape_.threads, "point", true);
  text::NestContext context;
  AxisIds order = shape_.threads;
  order.insert(order.end(), shape_.serial.begin(), shape_.serial.end());
  for (const AxisId axis : shape_.threads) context.loops.push_back(axes_[axis]);
  context.element = [this](ValueId value, const std::vector<std::string>& indices) {
    return element(value, indices);
  };
  context.type = context_.type;
  context.range = context_.range;
  context.name = context_.name;
  context.mention = [](ValueId) {};
  context.declares = [](ValueId) { return false; };
  context.taken = &taken_;
  context.plain = true;
  code += text::NestWriter(statement_, order, context).write();
  return code;
}

// ---- a warp or a block per point ----------------------------------------------------------------

Code KernelWriter::of_several() {
  const bool warp = shape_.worker == Worker::warp;
  const AxisIds reduced = reduced_axes(statement_);
  const composit::DType dtype = statement_.init[0].dtype();
  const std::string type = text::compute_type_name(dtype);
  const ScalarFunction function = *divided_fold(statement_);
  Code code = indices(shape_.threads, "point", true);
  if (warp) code += text::statement("const int lane = threadIdx.x % 32;");
  const std::string lane = warp ? "lane" : "threadIdx.x";

  // Each lane folds some of the terms; the first one begins with the initial value.
  const std::string name = composit::unused_name("part", taken_);
  Leaves leaves = this->leaves();
  text::ExpressionWriter start(leaves, statement_.axes, taken_);
  const Expr init = composit::cast(statement_.init[0], dtype);
  start.plan({init});
  code += start.locals(init);
  const std::string none = start.text(neutral(function, dtype)), first = start.text(init);
  code += text::assignment(type + " " + name,
                           none == first ? none : lane + " == 0 ? " + first + " : " + none);
  const int64_t terms = iterations(statement_, reduced);
  // The variable leaves the terms by up to a block.
  const bool is_wide = terms > INT32_MAX - kMostThreads;
  const std::string number = is_wide ? "int64_t" : "int";
  const std::set<std::string> outside = taken_;
  Code round = indices(reduced, "term", is_wide);
  leaves = this->leaves();
  leaves.accumulators = {{name}};
  round += update(leaves);
  taken_ = outside;
  code += text::braced(text::For{.type = number,
                                 .variable = "term",
                                 .low = warp ? "lane" : "static_cast<" + number + ">(threadIdx.x)",
                                 .high = std::to_string(terms),
                                 .step = warp ? "32" : "static_cast<" + number + ">(blockDim.x)"},
                       round);
  const std::string whole = composit::unused_name("whole", taken_);
  const std::string combine =
      "fl::" + std::string(composit::info_of(function).name) + "_of<" + type + ">";
  code +=
      text::statement("const " + type + " " + whole + " = fl::" + (warp ? "of_warp" : "of_block") +
                      "(" + name + ", " + combine + ");");
  leaves.accumulators = {{whole}};
  code += text::block(text::If{lane + " == 0"}, stores(leaves));
  return code;
}

// Folds one term into a lane's part.
Code KernelWriter::update(Leaves& leaves) {
  text::ExpressionWriter writer(leaves, statement_.axes, taken_);
  leaves.left = leaves.accumulators;
  Expr next = composit::replace(statement_.combine[0], [&](const Expr& part) {
    return part.kind() == composit::ExprKind::right
               ? composit::cast(statement_.body[0], part.dtype())
               : Expr();
  });
  next = composit::cast(next, statement_.init[0].dtype());
  std::vector<Expr> roots = {next};
  if (statement_.domain.defined()) roots.insert(roots.begin(), statement_.domain);
  writer.plan(roots);
  Code condition;
  if (statement_.domain.defined()) condition = writer.locals(statement_.domain);
  Code code = writer.locals(next);
  code += writer.assign(leaves.accumulators[0], next);
  if (!statement_.domain.defined()) return code;
  condition += text::block(text::If{writer.text(statement_.domain)}, code);
  return condition;
}

Code KernelWriter::stores(Leaves& leaves) {
  text::ExpressionWriter writer(leaves, statement_.axes, taken_);
  std::vector<Expr> roots;
  for (Store& one : statement_.stores) {
    one.value = composit::cast(one.value, context_.type(value_of(one)).dtype);
    roots.insert(roots.end(), one.at.begin(), one.at.end());
    roots.push_back(one.value);
  }
  writer.plan(roots);
  Code code;
  for (const Store& one : statement_.stores) {
    std::vector<std::string> place;
    for (size_t i = 0; i < one.at.size(); ++i) {
      code += writer.locals(one.at[i]);
      place.push_back(writer.index(one.at[i], context_.type(value_of(one)).sizes[i]));
    }
    code += writer.locals(one.value);
    const text::Element target = element(value_of(one), place);
    if (one.add)
      code += text::added(target.str(), writer, one.value, context_.type(value_of(one)).dtype);
    else
      code += writer.assign(target, one.value);
  }
  return code;
}

}  // namespace flashlight::cuda
