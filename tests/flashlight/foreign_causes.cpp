#include "tests/flashlight/foreign_causes.h"

#include <ATen/core/stack.h>
#include <torch/library.h>
#include <torch/torch.h>

#include <thread>
#include <vector>

#include "flashlight/trace.h"

namespace flashlight::test {
namespace {

at::Tensor ones() { return at::ones({3}); }

void thread_makes_an_operand() {
  trace(
      [](const at::Tensor& x) {
        at::Tensor y;
        std::thread([&] { y = x + 1; }).join();
        return y * 2;
      },
      ones());
}
void thread_writes_an_argument() {
  trace(
      [](at::Tensor x) {
        std::thread([&] { x.add_(1); }).join();
        return x * 2;
      },
      at::ones({3}));
}
void thread_reads_a_value() {
  trace(
      [](const at::Tensor& x) {
        const at::Tensor y = x + 1;
        std::thread([&] { y.sum(); }).join();
        return y;
      },
      ones());
}

void resize_in_secret(const at::Tensor& x) { x.resize_({7}); }
void write_in_secret(const at::Tensor& x) { at::Tensor(x).add_(1); }
at::Tensor times_first(const at::Tensor& x) { return x * x.data_ptr<float>()[0]; }
TORCH_LIBRARY(flashlight_errors_test, library) {
  library.def("resize(Tensor x) -> ()");
  library.def("write(Tensor x) -> ()");
  library.def("take(Tensor[][] lists) -> ()");
  library.def("times_first(Tensor x) -> Tensor", &times_first);
}
TORCH_LIBRARY_IMPL(flashlight_errors_test, CPU, library) {
  library.impl("resize", &resize_in_secret);
  library.impl("write", &write_in_secret);
}
at::Tensor call(const char* op, torch::jit::Stack arguments) {
  c10::Dispatcher::singleton().findSchemaOrThrow(op, "").callBoxed(&arguments);
  return arguments.empty() ? at::Tensor() : arguments[0].toTensor();
}

void operator_resizes() {
  trace(
      [](const at::Tensor& x) {
        const at::Tensor y = x + 1;
        call("flashlight_errors_test::resize", {y});
        return y;
      },
      ones());
}
void operator_writes_what_is_lost() {
  const at::Tensor large = at::ones({100000});
  TraceScope scope({.excerpt = true});
  call("flashlight_errors_test::write", {large});
}
void operator_hides_tensors() {
  const std::vector<std::vector<at::Tensor>> lists = {{ones()}};
  trace([&](const at::Tensor&) { return call("flashlight_errors_test::take", {lists}); }, ones());
}
void message_to_a_process() {
  trace(
      [](const at::Tensor& x) {
        return call("c10d::send", {std::vector<at::Tensor>{x}, c10::IValue(), 0, 0});
      },
      ones());
}
void kernel_reads_elements() {
  const at::Tensor weight = at::ones({3}).requires_grad_();
  trace(
      [&](const at::Tensor& x) {
        return call("flashlight_errors_test::times_first", {x * weight});
      },
      ones());
}

}  // namespace

Causes with_foreign_causes(Causes others) {
  others.merge(Causes{
      {"[trace] …: an argument of sizes … was made by … on thread …; no replay would repeat it: do "
       "this work on the thread that is captured",
       thread_makes_an_operand},
      {"[trace] … on thread … writes a tensor that the scope uses; no replay would repeat it: do "
       "this work on the thread that is captured",
       thread_writes_an_argument},
      {"[trace] … on thread … reads a value of the scope; no replay would repeat it: do this work "
       "on the thread that is captured",
       thread_reads_a_value},
      {"[trace] … gave its argument '…' other memory or sizes, which its schema does not declare: "
       "return a new tensor instead",
       operator_resizes},
      {"[trace] … writes an argument that its schema does not mark, and what it held before is "
       "lost: declare it, Tensor(a!)",
       operator_writes_what_is_lost},
      {"[trace] …: its argument '…' is of type …, whose tensors no operand stands for: use an "
       "operator that takes tensors or lists of them",
       operator_hides_tensors},
      {"[trace] …: messages from one process to another are not captured, since each is waited "
       "for: use a collective operator",
       message_to_a_process},
      {"[trace] the kernel of … accesses elements without an operator, and is registered for no "
       "backend, so that autograd looks into it: register it for CPU, or call it under no_grad",
       kernel_reads_elements}});
  return others;
}

}  // namespace flashlight::test
