#include "tests/flashlight/interchange_causes.h"

#include <torch/torch.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "composit/interchange/onnx.h"
#include "composit/interchange/onnx/fields.h"
#include "composit/interchange/onnx/wire.h"
#include "flashlight/interchange.h"
#include "flashlight/trace.h"

namespace flashlight::test {
namespace {

namespace fs = std::filesystem;

fs::path file() { return fs::temp_directory_path() / "flashlight_errors_test.pt2"; }

void draws_of_another_generator() {
  auto generator = at::detail::createCPUGenerator(1);
  save_pt2(trace([&](const at::Tensor& x) { return x + at::rand({3}, generator); }, at::ones({3})),
           file());
}
void draws_for_onnx() {
  save_onnx(trace([](const at::Tensor& x) { return x + at::rand({3}); }, at::ones({3})), file());
}
void opset_of_before() {
  save_onnx(trace([](const at::Tensor& x) { return x + 1; }, at::ones({3})), file(), {.opset = 9});
}
void operator_of_nobody() {
  save_pt2(trace([](const at::Tensor& x) { return x.relu(); }, at::ones({3})), file());
  std::ifstream in(file(), std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  const std::string known = "aten.relu.default";
  bytes.replace(bytes.find(known), known.size(), "aten.rulu.default");
  std::ofstream(file(), std::ios::binary) << bytes;
  load_pt2(file());
}
void operators_that_are_not_known() {
  composit::onnx::Message node, graph, model;
  node.text(composit::onnx::field::op_type, "Mystery");
  graph.message(composit::onnx::field::node, node);
  model.message(composit::onnx::field::graph, graph);
  std::ofstream(file(), std::ios::binary) << model.bytes();
  composit::load_onnx(file());
}
void file_in_no_folder() {
  save_pt2(trace([](const at::Tensor& x) { return x + 1; }, at::ones({3})),
           file() / "is_no_folder" / "a.pt2");
}

}  // namespace

Causes with_interchange_causes(Causes others) {
  others.merge(Causes{{"[pt2] …: these cannot be exported:…", draws_of_another_generator},
                      {"[pt2] …: these cannot be imported:…", operator_of_nobody},
                      {"[onnx] …: these cannot be exported:…", draws_for_onnx},
                      {"[onnx] …: these operators are not known:…", operators_that_are_not_known},
                      {"[onnx] …: …", opset_of_before},
                      {"[pt2] …: …", file_in_no_folder}});
  return others;
}

}  // namespace flashlight::test
