#include "tests/flashlight/cuda/compare.h"

#include <algorithm>
#include <cstring>

#include "composit/eval/evaluate.h"
#include "composit/ir/error.h"
#include "flashlight/package/shipped.h"
#include "flashlight/text/literal.h"
#include "flashlight/toolchain/library.h"
#include "tests/agreement.h"

namespace flashlight::cuda::test {
namespace {

using composit::Array;
using Entry = int(const void* const*, void* const*, void*);

std::string element_type(composit::DType dtype) {
  return composit::is_half(dtype)               ? "uint16_t"
         : dtype == composit::DType::complex64  ? "float"
         : dtype == composit::DType::complex128 ? "double"
                                                : text::type_name(dtype);
}

// Calls the function with pointers of its own types, or captures a call and launches the graph.
std::string entry(const composit::Graph& graph, const std::string& name, bool captured) {
  std::string arguments;
  size_t i = 0;
  for (const composit::LazyTensor& input : graph.inputs())
    arguments += "static_cast<const " + element_type(input.dtype()) + "*>(in[" +
                 std::to_string(i++) + "]), ";
  i = 0;
  for (const composit::LazyTensor& output : graph.outputs())
    arguments +=
        "static_cast<" + element_type(output.dtype()) + "*>(out[" + std::to_string(i++) + "]), ";
  arguments += "arena, nullptr";
  const std::string call =
      captured ? "  cudaGraphExec_t graph = nullptr;\n  if (const int error = " + name + "_graph(" +
                     arguments + ", &graph)) return error;\n" +
                     "  const int error = cudaGraphLaunch(graph, nullptr);\n"
                     "  cudaGraphExecDestroy(graph);\n  return error;\n"
               : "  return " + name + "(" + arguments + ");\n";
  return "extern \"C\" int " + name +
         "_entry(const void* const* in, void* const* out, void* arena) {\n" + call + "}\n";
}

// Memory with bytes around it that nobody may write; it begins where cudaMalloc's would, so that
// sectors are those of a device.
class Guarded {
 public:
  explicit Guarded(size_t size) : size_(size), bytes_(3 * kAround + size, kPoison) {
    const auto first = reinterpret_cast<uintptr_t>(bytes_.data());
    begin_ = static_cast<int64_t>((first + 2 * kAround - 1) / kAround * kAround - first);
  }
  void* data() { return bytes_.data() + begin_; }
  size_t size() const { return size_; }
  bool is_whole() const {
    const auto poisoned = [](std::byte one) { return one == kPoison; };
    return std::all_of(bytes_.begin(), bytes_.begin() + begin_, poisoned) &&
           std::all_of(bytes_.begin() + begin_ + static_cast<int64_t>(size_), bytes_.end(),
                       poisoned);
  }

 private:
  static constexpr size_t kAround = 256;
  static constexpr std::byte kPoison{0xc7};
  size_t size_;
  std::vector<std::byte> bytes_;
  int64_t begin_ = 0;
};

// The dtype whose rounding a result has: what is computed of 16-bit floats has theirs where it ends
// as a wider float, as scales of quantizers do.
composit::DType rounding_of(const composit::Graph& graph, composit::DType result) {
  if (!composit::is_floating_point(result)) return result;
  for (const composit::LazyTensor& input : graph.inputs())
    if (composit::is_half(input.dtype())) return input.dtype();
  return result;
}

std::string difference(const Case& one, const CudaSource& source, Entry* run, double times,
                       const Watch& watch, Sectors& sectors) {
  watch.forget();
  std::vector<Guarded> values;
  std::vector<const void*> in;
  for (const Array& value : one.values) {
    values.emplace_back(static_cast<size_t>(value.type().nbytes()));
    if (values.back().size() > 0)
      std::memcpy(values.back().data(), value.data(), values.back().size());
    in.push_back(values.back().data());
    watch.allow(values.back().data(), values.back().size());
  }
  std::vector<Guarded> results;
  std::vector<void*> out;
  for (const composit::LazyTensor& output : one.graph.outputs())
    results.emplace_back(static_cast<size_t>(output.numel()) * composit::item_size(output.dtype()));
  for (Guarded& result : results) {
    out.push_back(result.data());
    watch.allow(result.data(), result.size());
  }
  Guarded arena(static_cast<size_t>(source.arena_bytes));
  watch.allow(arena.data(), arena.size());
  const int error = run(in.data(), out.data(), arena.data());
  sectors = watch.sectors();
  if (const std::string fault = watch.fault(); !fault.empty())
    return one.text + ": " + fault + "\n" + source.text + "\n";
  if (error != 0) return one.text + ": a kernel fails\n";
  const std::vector<Array> expected = composit::evaluate(one.graph, one.values);
  for (size_t i = 0; i < results.size(); ++i) {
    const composit::LazyTensor& output = one.graph.outputs()[i];
    const Array result =
        Array::copy_of(composit::tensor_type(output.dtype(), output.sizes()), out[i]);
    const auto tolerance = composit::test::tolerance_of(rounding_of(one.graph, output.dtype()));
    std::string found = composit::test::difference(
        result, expected[i], {tolerance.relative * times, tolerance.absolute * times});
    if (!results[i].is_whole() || !arena.is_whole()) found = "writes beside its memory";
    if (!found.empty())
      return one.text + ", result " + std::to_string(i) + ": " + found + "\n" + source.text + "\n";
  }
  return "";
}

}  // namespace

std::string differences(const std::vector<Case>& cases, double times, std::vector<Sectors>* sectors,
                        bool captured) {
  toolchain::Sources sources;
  for (const auto& [name, header] : machine_headers()) sources.headers.push_back({name, header});
  sources.headers.push_back(package::shipped_file("flashlight_cuda.cuh"));
  std::string text = "#include \"host_cuda.h\"\n";
  std::vector<CudaSource> emitted;
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string name = "case_" + std::to_string(i);
    emitted.push_back(
        source_of(cases[i].graph, {.name = name, .outline = false}, {.graph = captured}));
    const std::string& whole = emitted.back().text;
    text += "namespace " + name + "_kernels {\n" + watched(whole.substr(whole.find('\n') + 1)) +
            "\n" + entry(cases[i].graph, name, captured) + "}\n";
  }
  sources.units.push_back({"kernels.cpp", text});
  const toolchain::Library library =
      toolchain::Library::load(sources, {.flags = {"-std=c++17", "-O0", kUndefined}});
  const Watch watch(library);
  std::string found;
  std::vector<Sectors> seen(cases.size());
  for (size_t i = 0; i < cases.size(); ++i)
    found += difference(cases[i], emitted[i],
                        library.symbol<Entry>("case_" + std::to_string(i) + "_entry"), times, watch,
                        seen[i]);
  if (sectors != nullptr) *sectors = seen;
  return found;
}

}  // namespace flashlight::cuda::test
