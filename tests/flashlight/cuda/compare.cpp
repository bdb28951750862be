#include "tests/flashlight/cuda/compare.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>

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

std::string read(const std::string& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

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

// The kernels with parameters that are watched.
std::string watched(const std::string& text) {
  static const std::regex pointer(R"((const )?([\w:<>]+)\* __restrict__ (\w+))");
  return std::regex_replace(text, pointer, "host_cuda::Pointer<$1$2> $3");
}

// Memory with bytes around it that nobody may write.
class Guarded {
 public:
  explicit Guarded(size_t bytes) : bytes_(2 * kAround + bytes, kPoison) {}
  void* data() { return bytes_.data() + kAround; }
  size_t size() const { return bytes_.size() - 2 * kAround; }
  bool is_whole() const {
    const auto poisoned = [](std::byte one) { return one == kPoison; };
    return std::all_of(bytes_.begin(), bytes_.begin() + kAround, poisoned) &&
           std::all_of(bytes_.end() - kAround, bytes_.end(), poisoned);
  }

 private:
  static constexpr int64_t kAround = 256;
  static constexpr std::byte kPoison{0xc7};
  std::vector<std::byte> bytes_;
};

// The functions of host_memory.h in a library of kernels.
struct Watch {
  explicit Watch(const toolchain::Library& library)
      : allow(library.symbol<void(const void*, size_t)>("host_cuda_allow")),
        forget(library.symbol<void()>("host_cuda_forget")),
        report(library.symbol<void(char*, int64_t*, int64_t*)>("host_cuda_report")) {}
  void (*allow)(const void*, size_t);
  void (*forget)();
  void (*report)(char*, int64_t*, int64_t*);
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
  std::vector<const void*> in;
  for (const Array& value : one.values) {
    in.push_back(value.data());
    watch.allow(value.data(), static_cast<size_t>(value.type().nbytes()));
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
  char fault[200] = "";
  Sectors more;
  watch.report(fault, &more.written, &more.least);
  sectors.written += more.written;
  sectors.least += more.least;
  if (fault[0] != 0) return one.text + ": " + fault + "\n" + source.text + "\n";
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

std::string differences(const std::vector<Case>& cases, double times, Sectors* sectors,
                        bool captured) {
  toolchain::Sources sources;
  sources.headers = {package::shipped_file("flashlight_cuda.cuh"),
                     {"host_cuda.h", read(std::string(FLASHLIGHT_HOST_CUDA) + "/host_cuda.h")},
                     {"host_memory.h", read(std::string(FLASHLIGHT_HOST_CUDA) + "/host_memory.h")}};
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
      toolchain::Library::load(sources, {.flags = {"-std=c++17", "-O0", "-fwrapv"}});
  const Watch watch(library);
  std::string found;
  Sectors all;
  for (size_t i = 0; i < cases.size(); ++i)
    found += difference(cases[i], emitted[i],
                        library.symbol<Entry>("case_" + std::to_string(i) + "_entry"), times, watch,
                        all);
  if (sectors != nullptr) *sectors = all;
  return found;
}

}  // namespace flashlight::cuda::test
