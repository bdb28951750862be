#include "tests/flashlight/interchange_causes.h"

#include <torch/torch.h>

#include <filesystem>

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
void family_of_two_structures() {
  const auto program = [](const at::Tensor& x) { return x.size(0) > 4 ? x.relu() : x.tanh(); };
  FamilySettings settings;
  settings.names = {"rows"};
  std::vector<CaptureBase> captures;
  for (const int64_t rows : {2, 3, 4, 5, 7, 9})
    captures.push_back(trace(program, at::ones({rows})));
  save_pt2(FamilyBase(captures, {.names = {"rows"}}), file());
}
void draws_for_onnx() {
  save_onnx(trace([](const at::Tensor& x) { return x + at::rand({3}); }, at::ones({3})), file());
}
void opset_of_before() {
  save_onnx(trace([](const at::Tensor& x) { return x + 1; }, at::ones({3})), file(), {.opset = 9});
}
void file_in_no_folder() {
  save_pt2(trace([](const at::Tensor& x) { return x + 1; }, at::ones({3})),
           file() / "is_no_folder" / "a.pt2");
}

}  // namespace

Causes with_interchange_causes(Causes others) {
  others.merge(Causes{{"[pt2] …: these cannot be exported:…", draws_of_another_generator},
                      {"[pt2] …: expected a family …, received one …: 'bind' gives a capture of "
                       "one size, which can "
                       "be exported",
                       family_of_two_structures},
                      {"[onnx] …: these cannot be exported:…", draws_for_onnx},
                      {"[onnx] …: …", opset_of_before},
                      {"[pt2] …: …", file_in_no_folder}});
  return others;
}

}  // namespace flashlight::test
