#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>

#include "composit/ir/error.h"
#include "composit/op/call.h"
#include "composit/ops/operations.h"
#include "flashlight/backends/registry.h"
#include "flashlight/devices/cost.h"

namespace flashlight::devices {

using composit::Array;
using composit::Compiled;
using composit::CompileOptions;
using composit::DType;
using composit::Graph;
using composit::LazyTensor;
using composit::tensor_type;

namespace {

using Arrays = std::vector<Array>;

// A small program, and how much it does.
struct Probe {
  Graph graph;
  double amount = 1;
};

Graph graph_of(const composit::LazyTensors& inputs, const LazyTensor& output) {
  return Graph({.inputs = inputs, .outputs = {output}});
}

Probe product() {
  constexpr int64_t n = 256;
  const LazyTensor x = composit::input("x", tensor_type(DType::float32, {n, n})),
                   y = composit::input("y", tensor_type(DType::float32, {n, n}));
  return {graph_of({x, y}, composit::apply("aten::mm", {x, y})[0]), 2.0 * n * n * n};
}

Probe convolution() {
  constexpr int64_t channels = 32, size = 28;
  const LazyTensor x = composit::input("x", tensor_type(DType::float32, {1, channels, size, size})),
                   w = composit::input("w",
                                       tensor_type(DType::float32, {channels, channels, 3, 3}));
  const composit::Ints ones = {1, 1}, zeros = {0, 0};
  const LazyTensor y = composit::apply(
      "aten::convolution", {x, w, LazyTensor(), ones, ones, ones, false, zeros, int64_t{1}})[0];
  return {graph_of({x, w}, y), 2.0 * channels * channels * 9 * size * size};
}

// As many operations as a layer has between two products, so that fusing them shows.
Probe elementwise() {
  constexpr int kOperations = 4;
  constexpr int64_t n = int64_t{1} << 18;
  const LazyTensor x = composit::input("x", tensor_type(DType::float32, {n}));
  LazyTensor y = x;
  for (int i = 0; i < kOperations / 2; ++i) {
    y = composit::apply("aten::mul.Tensor", {y, x})[0];
    y = composit::apply("aten::tanh", {y})[0];
  }
  constexpr double kBytes = sizeof(float) * (kOperations / 2) * (3 + 2);
  return {graph_of({x}, y), kBytes * n};
}

Probe nothing() {
  const LazyTensor x = composit::input("x", tensor_type(DType::float32, {1}));
  return {graph_of({x}, composit::apply("aten::neg", {x})[0])};
}

// The shortest of several calls, in seconds.
double time_of(const Compiled& code, const Graph& graph) {
  using Clock = std::chrono::steady_clock;
  Arrays inputs;
  for (const LazyTensor& input : graph.inputs()) {
    const std::vector<float> values(static_cast<size_t>(input.numel()), 0.25F);
    inputs.push_back(Array::copy_of(input.type(), values.data()));
  }
  constexpr int kLeastCalls = 5, kMostCalls = 50;
  constexpr double kEnough = 0.05;
  double best = HUGE_VAL, all = 0;
  code(inputs);
  for (int i = 0; i < kMostCalls && (i < kLeastCalls || all < kEnough); ++i) {
    const Clock::time_point start = Clock::now();
    code(inputs);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::min(best, seconds);
    all += seconds;
  }
  return best;
}

// 0 where the device has no code for it.
double seconds_for(const Probe& probe, const DeviceChoice& device, const CompileOptions& options) {
  CompileOptions plain = {.name = "probe", .options = device.backend.options};
  plain.schemas = options.schemas;
  plain.torch_folders = options.torch_folders;
  try {
    return time_of(backend_named(device.backend.name).compile(probe.graph, plain), probe.graph);
  } catch (const composit::UserError&) {
    return 0;
  }
}

Speed measured(const DeviceChoice& device, const CompileOptions& options) {
  Speed speed;
  speed.call = seconds_for(nothing(), device, options);
  const auto rate = [&](const Probe& probe) {
    const double seconds = seconds_for(probe, device, options);
    return seconds == 0 ? 0 : probe.amount / std::max(seconds - speed.call, seconds / 10);
  };
  speed.products = rate(product());
  speed.convolutions = rate(convolution());
  speed.bytes = rate(elementwise());
  return speed;
}

// The median rate of several copies that no cache holds.
double measured_copies() {
  using Clock = std::chrono::steady_clock;
  constexpr size_t kBytes = size_t{1} << 25;
  constexpr int kCopies = 7;
  const std::vector<char> from(kBytes, 1);
  std::vector<char> to(kBytes);
  std::vector<double> seconds;
  for (int i = 0; i < kCopies; ++i) {
    const Clock::time_point start = Clock::now();
    std::memcpy(to.data(), from.data(), kBytes);
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + kCopies / 2, seconds.end());
  const double median = seconds[kCopies / 2];
  return to.back() == 1 && median > 0 ? kBytes / median : kUsualCopiedBytes;
}

}  // namespace

double copied_bytes() {
  static const double rate = measured_copies();
  return rate;
}

Costs costs_of(const std::vector<DeviceChoice>& devices, const CompileOptions& options) {
  Costs costs{.copied_bytes = copied_bytes()};
  for (const DeviceChoice& device : devices) costs.speeds.push_back(speed_of(device, options));
  return costs;
}

const Speed& speed_of(const DeviceChoice& device, const CompileOptions& options) {
  static std::mutex mutex;
  static std::map<std::string, Speed> speeds;
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = speeds.emplace(describe(device), Speed());
  if (is_new) found->second = measured(device, options);
  return found->second;
}

}  // namespace flashlight::devices
