// The text of kernels: which thread computes what, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "composit/ops/operations.h"
#include "tests/flashlight/cuda/compare.h"
#include "tests/user_error.h"

namespace flashlight::cuda {
namespace {

using namespace composit;  // NOLINT
using testing::HasSubstr;
using testing::Not;

LazyTensor x_of(const Ints& sizes, DType dtype = DType::float32) {
  return input("x", tensor_type(dtype, Dims(sizes.begin(), sizes.end())));
}
std::string text_of(const LazyTensor& x, const LazyTensor& y) {
  Graph::Parts parts;
  parts.inputs = {x};
  parts.outputs = {y};
  return source_of(Graph(std::move(parts)), {.name = "f", .outline = false}).text;
}

TEST(CudaText, ElementwiseIsOneKernelWithNeighboursInMemory) {
  const LazyTensor x = x_of({3, 5});
  const std::string text = text_of(x, exp(x) * 2.0 + 1.0);
  EXPECT_THAT(text, HasSubstr("__global__ void add_kernel(const float* __restrict__ x, float* "
                              "__restrict__ add)"));
  EXPECT_THAT(text, HasSubstr("for (int64_t point = fl::thread(); point < 15"));
  EXPECT_THAT(text, HasSubstr("const int j = static_cast<int>(point % 5);"));
  EXPECT_THAT(text, HasSubstr("add[i * 5 + j] = fl::exp(x[i * 5 + j]) * 2.0f + 1.0f;"));
  EXPECT_THAT(text, HasSubstr("extern \"C\" cudaError_t f(const float* x, float* add, void* "
                              "/*arena*/, cudaStream_t stream)"));
}

TEST(CudaText, LongSumsAreDivided) {
  const LazyTensor rows = x_of({7, 100}), long_rows = x_of({7, 5000}), many = x_of({200000, 100});
  EXPECT_THAT(text_of(rows, sum(rows, {1})), HasSubstr("fl::of_warp(part, fl::add_of<float>)"));
  EXPECT_THAT(text_of(long_rows, sum(long_rows, {1})), HasSubstr("fl::of_block(part"));
  EXPECT_THAT(text_of(many, sum(many, {1})), Not(HasSubstr("fl::of_")));
  EXPECT_THAT(text_of(rows, amax(rows, {1})), HasSubstr("fl::of_warp(part, fl::max_of<float>)"));
}

// Memory of a device begins with constant expressions: bits, not conversions of a float.
TEST(CudaText, ShortFloatsAreComputedAsFloats) {
  const LazyTensor x = x_of({2}, DType::bfloat16);
  constexpr uint16_t kBits[] = {0x3f80, 0x4049};
  const LazyTensor weights = constant(Array::copy_of(tensor_type(DType::bfloat16, {2}), kBits));
  const std::string text = text_of(x, x * weights);
  EXPECT_THAT(text, HasSubstr("const fl::bfloat16* __restrict__ x"));
  EXPECT_THAT(text, HasSubstr("mul[i] = float(x[i]) * float(constant[i]);"));
  EXPECT_THAT(text, HasSubstr("{fl::bfloat16::of_bits(16256),"));
  EXPECT_THAT(text, HasSubstr("cudaError_t f(const uint16_t* x_bits, uint16_t* mul_bits,"));
}

// Two points that add to one element are one thread's: there are no atomics.
TEST(CudaText, PointsThatAddAreOneThreads) {
  const LazyTensor x = x_of({4, 6});
  const LazyTensor index = input("index", tensor_type(DType::int64, {6}));
  Graph::Parts parts;
  parts.inputs = {x, index};
  parts.outputs = {
      apply_one("aten::index_add", {zeros({4, 3}, DType::float32), int64_t{1}, index, x})};
  const std::string text = source_of(Graph(std::move(parts)), {.name = "f", .outline = false}).text;
  EXPECT_THAT(text, HasSubstr("point < 4;"));
  EXPECT_THAT(text, HasSubstr("fl::checked("));
  EXPECT_THAT(text, Not(HasSubstr("atomic")));
}

std::string linked_text(const LazyTensors& inputs, const LazyTensors& outputs) {
  return linked_source_of(Graph({.inputs = inputs, .outputs = outputs}),
                          {.name = "f", .called = schema_of_call, .outline = false})
      .text;
}

// A kernel that copies an input in another order is left out, unless a kernel reads the copy.
TEST(CudaText, LibTorchReadsThroughStrides) {
  const LazyTensor x = x_of({4, 3}), w = input("w", tensor_type(DType::float32, {5, 3})),
                   row = input("row", tensor_type(DType::float32, {3}));
  const LazyTensor turned = apply_one("aten::permute", {w, Ints{1, 0}});
  const LazyTensor y = apply_one("aten::matmul", {x, turned});
  const std::string text = linked_text({x, w}, {y});
  EXPECT_THAT(text, HasSubstr("at::mm(fl::tensor(x, {4, 3}), fl::view(w, {3, 5}, {1, 3}))"));
  EXPECT_THAT(text, Not(HasSubstr("__global__")));

  const LazyTensor same = apply_one("aten::expand", {row, Ints{5, 3}, false});
  EXPECT_THAT(
      linked_text({x, row},
                  {apply_one("aten::matmul", {x, apply_one("aten::permute", {same, Ints{1, 0}})})}),
      HasSubstr("fl::view(row, {3, 5}, {1, 0})"));
  EXPECT_THAT(linked_text({x, w}, {y, turned}), Not(HasSubstr("fl::view")));
  EXPECT_THAT(linked_text({x, w}, {apply_one("aten::matmul", {x, exp(turned)})}),
              Not(HasSubstr("fl::view")));
}

TEST(CudaText, AGraphHasAFunctionOfItsOwn) {
  const LazyTensor x = x_of({8});
  Graph::Parts parts;
  parts.inputs = {x};
  parts.outputs = {exp(x)};
  const CudaSource source =
      source_of(Graph(std::move(parts)), {.name = "f", .outline = false}, {.graph = true});
  EXPECT_THAT(source.header, HasSubstr("cudaError_t f_graph(const float* x, float* exp, void* "
                                       "/*arena*/, cudaStream_t stream, cudaGraphExec_t* graph);"));
  EXPECT_THAT(source.text, HasSubstr("return fl::captured(stream, graph, [&] { return f(x, exp, "
                                     "nullptr, stream); });"));
}

// Names of inputs are the program's; parameters get others.
TEST(CudaText, ParametersHaveNamesOfTheirOwn) {
  const LazyTensor x = x_of({8}, DType::bfloat16),
                   bits = input("x_bits", tensor_type(DType::float32, {8})),
                   graph = input("graph", tensor_type(DType::float32, {8}));
  const std::string header =
      source_of(
          Graph({.inputs = {x, bits, graph}, .outputs = {to(x, DType::float32) + bits + graph}}),
          {.name = "f", .outline = false}, {.graph = true})
          .header;
  EXPECT_THAT(header, HasSubstr("const uint16_t* x_bits_2, const float* x_bits, const float* "
                                "graph_2, float* add_2, "));
  EXPECT_THAT(header, HasSubstr("cudaGraphExec_t* graph)"));
}

// Functions of C and of CUDA have C linkage, too.
TEST(CudaText, NamesAreNoneOfC) {
  const LazyTensor x = x_of({2});
  const auto text = [&](const char* name) {
    return source_of(Graph({.inputs = {x}, .outputs = {composit::exp(x)}}),
                     {.name = name, .outline = false})
        .text;
  };
  EXPECT_THAT(text("exp"), HasSubstr("cudaError_t exp_program(const float* x, float* exp,"));
  EXPECT_THAT(text("rsqrt"), HasSubstr("cudaError_t rsqrt_program("));
  EXPECT_THAT(text("exponential"), HasSubstr("cudaError_t exponential("));
  EXPECT_THAT(text("linux"), HasSubstr("cudaError_t linux_("));
  EXPECT_THAT(text("co_await"), HasSubstr("cudaError_t co_await_("));
}

// The variable of the loop goes beyond the last term by a block.
TEST(CudaText, ManyTermsAreCountedByWideNumbers) {
  const LazyTensor most = x_of({(1 << 24) - 1, 128}), fewer = x_of({(1 << 24) - 9, 128});
  const std::string text = text_of(most, sum(most));
  EXPECT_THAT(text, HasSubstr("for (int64_t term = static_cast<int64_t>(threadIdx.x); "));
  EXPECT_THAT(text, HasSubstr("term < 2147483520; term += static_cast<int64_t>(blockDim.x))"));
  EXPECT_THAT(text, HasSubstr("const int i = static_cast<int>(term / 128);"));
  EXPECT_THAT(text_of(fewer, sum(fewer)), HasSubstr("for (int term = "));
}

// LibTorch has products of integers on the CPU alone; what it gives is freed where nothing reads
// it.
TEST(CudaText, LibTorchMultipliesNoIntegers) {
  const LazyTensor x = x_of({3, 3}, DType::int64), y = x_of({3, 3}, DType::float64);
  EXPECT_THAT(linked_text({x}, {apply_one("aten::mm", {x, x})}), Not(HasSubstr("at::mm")));
  EXPECT_THAT(linked_text({y}, {apply_one("aten::mm", {y, y})}), HasSubstr("at::mm"));
  const LazyTensors sorted = apply("aten::sort", {y, int64_t{0}, false});
  const std::string text = linked_text({y}, {exp(sorted[0])});
  EXPECT_THAT(text, HasSubstr("  auto sort_values_all = at::sort("));
  EXPECT_THAT(text, HasSubstr("= std::move(std::get<0>(sort_values_all));"));
  EXPECT_THAT(text, HasSubstr("sort_values_memory.reset();"));
}

// The host would wait for the number that decides.
TEST(CudaText, AGraphHasNoBranches) {
  const LazyTensor x = x_of({8});
  const LazyTensors y = cond(
      sum(x) < 0.0, [&](const LazyTensors&) { return LazyTensors{x * -1.0}; },
      [&](const LazyTensors&) { return LazyTensors{x}; });
  const Graph graph({.inputs = {x}, .outputs = y});
  EXPECT_THAT(user_error([&] {
                source_of(graph, {.name = "f", .outline = false}, {.graph = true});
              }).value_or(""),
              HasSubstr("in a CUDA graph: the host waits for a number"));
}

TEST(CudaText, RefusesByName) {
  const auto error = [](const LazyTensor& x, const LazyTensor& y) {
    return user_error([&] { text_of(x, y); }).value_or("");
  };
  const LazyTensor x = x_of({8});
  EXPECT_THAT(error(x, apply("aten::sort", {x, int64_t{0}, false})[0]),
              HasSubstr("[compile] no code for 'aten::sort' on a GPU"));
  EXPECT_THAT(error(x, apply_one("aten::digamma", {x})), HasSubstr("for the function digamma"));
  EXPECT_THAT(user_error([&] {
                Graph::Parts parts;
                parts.inputs = {x};
                parts.outputs = {exp(x)};
                backend().compile(Graph(std::move(parts)));
              }).value_or(""),
              HasSubstr("[cuda] this backend writes CUDA C++, which is called elsewhere"));
}

}  // namespace
}  // namespace flashlight::cuda
