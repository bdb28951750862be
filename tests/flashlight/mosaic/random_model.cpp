#include "tests/flashlight/mosaic/random_model.h"

#include <algorithm>

#include "composit/ad/chain_rule.h"
#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"
#include "tests/flashlight/mosaic/layers.h"

namespace flashlight::mosaic::test {

using namespace composit;  // NOLINT

namespace {

constexpr int64_t kMostElements = 6000;
constexpr int64_t kExtents[] = {1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 33};

int64_t last(const Ints& sizes) { return sizes.empty() ? 1 : sizes.back(); }

}  // namespace

RandomModel::RandomModel(uint64_t seed) : random_(seed), seed_(seed) {
  dtype_ = one_of(0, 4) == 0 ? DType::float64 : DType::float32;
}

Case RandomModel::make(int steps, bool trains) {
  static const Rule rules[] = {
      &RandomModel::pointwise,  &RandomModel::beside_another, &RandomModel::reduced,
      &RandomModel::normalized, &RandomModel::moved,          &RandomModel::resized,
      &RandomModel::product,    &RandomModel::attention,      &RandomModel::image,
      &RandomModel::convolved,  &RandomModel::controlled,     &RandomModel::product};
  LazyTensor x = input(one_of(1, 4));
  values_ = {x};
  LazyTensors outputs;
  for (int i = 0; i < steps; ++i) {
    const LazyTensor y = (this->*rules[one_of(0, std::ssize(rules) - 1)])(x);
    if (one_of(0, 5) == 0) outputs.push_back(y);  // kept, and read by what follows
    values_.push_back(y);
    // Mostly what was made last.
    x = one_of(0, 3) > 0 ? y : values_[static_cast<size_t>(one_of(0, std::ssize(values_) - 1))];
  }
  outputs.push_back(values_.back());
  const std::string text = "RandomModel(" + std::to_string(seed_) + ").make(" +
                           std::to_string(steps) + (trains ? ", true)" : ")");
  if (!trains) return case_of(text, outputs);
  const LazyTensors inputs = case_of(text, outputs).graph.inputs();
  const LazyTensors gradients = grad(mean(outputs.back()), inputs);
  outputs.insert(outputs.end(), gradients.begin(), gradients.end());
  Case one = case_of(text, outputs);
  // Some inputs move against their gradients.
  Graph::Parts parts = one.graph.parts();
  for (size_t i = 0; i < inputs.size(); ++i)
    if (gradients[i] && one_of(0, 1) == 0)
      parts.mutations.push_back({inputs[i], (inputs[i] - gradients[i] * 0.1)});
  one.graph = composit::Graph(std::move(parts));
  return one;
}

// ---- element by element -------------------------------------------------------------------------

LazyTensor RandomModel::pointwise(const LazyTensor& x) {
  switch (one_of(0, 8)) {
    case 0:
      return relu(x);
    case 1:
      return apply_one("aten::silu", {x});
    case 2:
      return apply_one("aten::gelu", {x});
    case 3:
      return tanh(x) * 2.0 + sin(x);
    case 4:
      return exp(-square(x)) - cos(x) * 0.5;
    case 5:
      return x * 0.5 - sigmoid(x);
    case 6:
      return where(x > 0.3, x * 0.1, Number(0.25));
    case 7:
      return erf(x) / (abs(x) + 1.0);
    default:
      return to(to(x, DType::float64) * 0.7, dtype_);
  }
}

// Broadcast operands, and residuals.
LazyTensor RandomModel::beside_another(const LazyTensor& x) {
  Ints sizes = x.sizes();
  for (const LazyTensor& other : values_)
    if (other.sizes() == sizes && one_of(0, 1) == 0) return x * 0.5 + other;
  for (int64_t& size : sizes)
    if (one_of(0, 1) == 0) size = 1;
  const LazyTensor other = parameter(sizes, 1);
  return one_of(0, 1) == 0 ? x * other : maximum(x + other, tanh(other));
}

// ---- over dimensions ----------------------------------------------------------------------------

LazyTensor RandomModel::reduced(const LazyTensor& x) {
  const auto axis = static_cast<int64_t>(axis_of(x));
  switch (one_of(0, 6)) {
    case 0:
      return softmax(x, axis);
    case 1:
      return x - mean(x, {axis}, true);
    case 2:
      return x / (sum(square(x), {axis}, true) + 1.0);
    case 3:
      return x - amax(x, {axis}, true);
    case 4:
      return cumsum(x, axis) * 0.1;
    case 5:
      return x.type().rank() > 1 ? mean(x, {axis}) : x + sum(x) * 0.01;
    default:
      return x * 0.5 + apply_one("aten::logsumexp", {x, Ints{axis}, true});
  }
}

LazyTensor RandomModel::normalized(const LazyTensor& x) {
  const Ints sizes = x.sizes();
  const int64_t channels = sizes.size() > 1 ? sizes[1] : 1;
  if (sizes.size() < 3 || one_of(0, 1) == 0)
    return apply_one("aten::layer_norm", {x, Ints{last(sizes)}, parameter({last(sizes)}),
                                          parameter({last(sizes)}), 1e-3});
  if (one_of(0, 1) == 0) {
    const int64_t groups = channels % 4 == 0 ? 4 : channels % 3 == 0 ? 3 : 1;
    return apply_one("aten::group_norm",
                     {x, groups, parameter({channels}), parameter({channels}), 1e-3});
  }
  return apply_one("aten::batch_norm",
                   {x, parameter({channels}), parameter({channels}), parameter({channels}),
                    square(parameter({channels})) + 0.5, false, 0.1, 1e-3, true});
}

// ---- movements ----------------------------------------------------------------------------------

LazyTensor RandomModel::moved(const LazyTensor& x) {
  const Ints sizes = x.sizes();
  const size_t rank = sizes.size(), axis = axis_of(x);
  const auto at = static_cast<int64_t>(axis);
  Ints axes;
  for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  std::shuffle(axes.begin(), axes.end(), random_);
  switch (one_of(0, 4)) {
    case 0:
      return permute(x, axes);
    case 1:
      return flip(x, {at});
    case 2: {  // one dimension in two, or two in one
      Ints taken = sizes;
      const int64_t part = sizes[axis] % 4 == 0 ? 4 : sizes[axis] % 3 == 0 ? 3 : 1;
      if (part > 1 && rank < 4) {
        taken[axis] = part;
        taken.insert(taken.begin() + at + 1, sizes[axis] / part);
      } else if (axis + 1 < rank) {
        taken[axis] *= taken[axis + 1];
        taken.erase(taken.begin() + at + 1);
      }
      return reshape(x, taken);
    }
    case 3:
      return rank < 4 ? unsqueeze(x, at) : transpose(x, 1, -1);
    default:
      return apply_one("aten::roll", {x, Ints{1}, Ints{at}});
  }
}

LazyTensor RandomModel::resized(const LazyTensor& x) {
  const Ints sizes = x.sizes();
  const size_t axis = axis_of(x);
  const auto at = static_cast<int64_t>(axis);
  const int64_t size = sizes[axis];
  switch (one_of(0, 4)) {
    case 0:
      return slice(x, at, size / 3, size, one_of(1, 2));
    case 1:
      return x.type().numel() < kMostElements / 2 ? cat({x, sin(x)}, at) : cat({x}, at);
    case 2: {
      Ints pad(2 * sizes.size(), 0);
      pad[2 * (sizes.size() - 1 - axis)] = one_of(0, 2);
      pad[2 * (sizes.size() - 1 - axis) + 1] = one_of(0, 2);
      return apply_one("aten::constant_pad_nd", {x, pad, 0.5});
    }
    case 3:
      return sizes.size() > 1 ? select_at(x, at, size / 2) : cat({x, slice(x, 0, 0, 1)}, 0);
    default:
      return apply_one("aten::index_select",
                       {x, at, apply_one("aten::flip", {arange(size), Ints{0}})});
  }
}

// ---- products -----------------------------------------------------------------------------------

LazyTensor RandomModel::product(const LazyTensor& x) {
  const Ints sizes = x.sizes();
  const int64_t out = kExtents[one_of(0, std::ssize(kExtents) - 1)];
  if (sizes.size() == 1 || one_of(0, 2) == 0) return linear(x, name(), out);
  const LazyTensor scaled = x * (1.0 / static_cast<double>(last(sizes)));
  switch (one_of(0, 3)) {
    case 0:
      return matmul(scaled, parameter({last(sizes), out}, 1));
    case 1:  // by what is known in the call alone
      return matmul(scaled, transpose(tanh(x), -2, -1));
    case 2:
      return matmul(transpose(sin(x), -2, -1) * 0.1, x);
    default:
      return relu(linear(transpose(x, -2, -1), name(), out));
  }
}

LazyTensor RandomModel::attention(const LazyTensor& x) {
  if (x.type().rank() < 2) return softmax(x, 0);
  const int64_t width = last(x.sizes()), tokens = x.sizes()[x.type().rank() - 2];
  const LazyTensor q = linear(x, name(), width);
  const LazyTensor source = one_of(0, 1) == 0 ? x : cat({x, cos(x)}, -2);
  const LazyTensor k = linear(source, name(), width);
  const LazyTensor v = one_of(0, 1) == 0 ? tanh(source) : linear(source, name(), 5);
  const bool is_causal = one_of(0, 2) == 0;
  ArgumentValue mask;
  if (!is_causal && one_of(0, 1) == 0)
    mask = parameter({tokens, source.sizes()[x.type().rank() - 2]}, 1);
  if (x.type().rank() > 2 && one_of(0, 1) == 0)
    return apply_one("aten::scaled_dot_product_attention", {q, k, v, mask, 0.0, is_causal});
  LazyTensor scores = matmul(q, transpose(k, -2, -1)) * 0.3;
  if (one_of(0, 1) == 0) scores = scores + parameter({source.sizes()[x.type().rank() - 2]}, 1);
  return matmul(softmax(scores, -1), v);
}

// ---- images -------------------------------------------------------------------------------------

LazyTensor RandomModel::image(const LazyTensor& given) {
  const LazyTensor x = given.type().rank() == 4 ? given : of_rank(4);
  const Ints sizes = x.sizes();
  if (sizes[2] < 2 || sizes[3] < 2) return relu(x);
  switch (one_of(0, 4)) {
    case 0:
      return apply_one("aten::max_pool2d", {x, Ints{2, 2}, Ints{one_of(1, 2), 1}, Ints{1, 0}});
    case 1:
      return apply_one("aten::avg_pool2d", {x, Ints{2, 2}, Ints{1, 2}});
    case 2:
      return apply_one("aten::adaptive_avg_pool2d", {x, Ints{one_of(1, 3), 2}});
    case 3:
      if (x.type().numel() > kMostElements / 4) return tanh(x);
      return apply_one("aten::upsample_nearest2d",
                       {x, Ints{2 * sizes[2], sizes[3] + 3}, ArgumentValue(), ArgumentValue()});
    default:
      return apply_one("aten::silu", {conv3x3(x, name(), one_of(1, 9))});
  }
}

// A convolution of images; of lines, if there are three dimensions. Large enough for Winograd's
// algorithm at times.
LazyTensor RandomModel::convolved(const LazyTensor& given) {
  const size_t rank = given.type().rank();
  const LazyTensor x = rank == 3 || rank == 4 ? given : of_rank(4);
  Ints size = x.sizes();
  const auto spatial = static_cast<size_t>(x.type().rank() - 2);
  if (spatial == 2 && size[1] > 3 && size[2] > 7 && size[3] > 7 && one_of(0, 1) == 0)
    return conv3x3(permute(linear(permute(x, {0, 2, 3, 1}), name(), 32), {0, 3, 1, 2}), name(), 33);
  Ints kernel, stride, padding, dilation;
  for (size_t i = 2; i < size.size(); ++i) {
    kernel.push_back(one_of(1, 3));
    dilation.push_back(one_of(1, 2));
    stride.push_back(one_of(1, 2));
    const int64_t reach = (kernel.back() - 1) * dilation.back();
    padding.push_back(std::max(std::max<int64_t>(0, (reach + 2 - size[i]) / 2), one_of(0, 2)));
  }
  const int64_t groups = size[1] % 4 == 0 && one_of(0, 2) == 0 ? 4
                         : one_of(0, 4) == 0                   ? size[1]
                                                               : 1;
  const int64_t out = groups * one_of(1, groups > 4 ? 2 : 9);
  Dims sizes = {out, size[1] / groups};
  for (const int64_t side : kernel) sizes.push_back(side);
  const LazyTensor bias = one_of(0, 1) == 0 ? LazyTensor() : parameter({out});
  const LazyTensor w = one_of(0, 5) == 0 ? tanh(mean(x)) * parameter(sizes) : parameter(sizes, 0.2);
  return convolution(x, w, {stride, padding, dilation, false, Ints(spatial, 0), groups}, bias);
}

// ---- control flow -------------------------------------------------------------------------------

LazyTensor RandomModel::controlled(const LazyTensor& x) {
  const int64_t length = x.sizes()[0];
  switch (one_of(0, 3)) {
    case 0:
      return cond(
          sum(x) < 0.123, [&](const LazyTensors&) { return LazyTensors{tanh(x) * 2.0}; },
          [&](const LazyTensors&) { return LazyTensors{x - square(sin(x))}; })[0];
    case 1: {
      if (x.type().rank() < 2) return sigmoid(x);
      const auto body = [](const LazyTensors& state, const LazyTensors& slot) {
        const LazyTensor next = tanh(state[0] * 0.5 + slot[0]);
        return ScanStep{{next}, {next * slot[0]}};
      };
      return scan(body, {select_at(x, 0, length - 1)}, {x}, {.reverse = one_of(0, 1) == 0})
          .outputs[0];
    }
    case 2:
      if (x.type().rank() < 2) return sin(x);
      return map([](const LazyTensors& slot) { return LazyTensors{softmax(slot[0], 0)}; }, {x})[0];
    default:
      return while_loop([](const LazyTensors& state) { return sum(square(state[0])) > 2.0; },
                        [](const LazyTensors& state) { return LazyTensors{state[0] / 2.0}; }, {x},
                        {.limit = 40})[0];
  }
}

// ---- values -------------------------------------------------------------------------------------

int64_t RandomModel::one_of(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
}

std::string RandomModel::name() {
  const int number = names_++;
  return std::string(1, static_cast<char>('a' + number % 26)) + std::to_string(number);
}

LazyTensor RandomModel::parameter(const Dims& sizes, double scale) {
  return weight(name(), sizes, scale, dtype_);
}

LazyTensor RandomModel::of_rank(int64_t rank) {
  for (size_t i = values_.size(); i-- > 0;)
    if (static_cast<int64_t>(values_[i].type().rank()) == rank && one_of(0, 2) > 0)
      return values_[i];
  return input(rank);
}

LazyTensor RandomModel::input(int64_t rank) {
  Dims sizes;
  int64_t elements = 1;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t size = kExtents[one_of(0, std::ssize(kExtents) - 1)];
    while (elements * size > kMostElements / 2) size = (size + 1) / 2;
    sizes.push_back(size);
    elements *= size;
  }
  return given(name(), sizes, 1, dtype_);
}

}  // namespace flashlight::mosaic::test
