#include "tests/flashlight/scope_causes.h"

#include <torch/torch.h>

#include "flashlight/open_capture.h"

namespace flashlight::test {
namespace {

using composit::InputKind;

void input_name_twice() {
  const at::Tensor x = at::ones({3});
  OpenCapture open;
  open.input(x, "x");
  open.state(x, "x", InputKind::buffer);
}
void named_after_it_was_read() {
  const at::Tensor x = at::ones({3});
  OpenCapture open;
  const at::Tensor y = x + 1;
  open.input(x, "x");
}
void state_without_a_name() {
  const at::Tensor x = at::ones({3});
  OpenCapture open;
  open.state(x, "", InputKind::parameter);
}
void undefined_input() {
  OpenCapture open;
  open.input(at::Tensor());
}
void output_of_nobody() {
  const at::Tensor x = at::ones({3});
  OpenCapture open;
  open.output(x);
}
void output_name_twice() {
  OpenCapture open;
  const at::Tensor x = at::ones({3});
  open.output(x, "y");
  open.output(x, "y");
}
void outputs_with_and_without_names() {
  OpenCapture open;
  const at::Tensor x = at::ones({3});
  open.output(x, "y");
  open.output(x);
}
void check_with_a_generator() {
  auto generator = at::detail::createCPUGenerator(1);
  const auto run = [&](OpenCapture& open) { open.output(at::rand({3}, generator)); };
  OpenCapture first;
  run(first);
  const CaptureBase captured = first.end();
  OpenCapture second;
  run(second);
  second.check(captured);
}

}  // namespace

Causes with_scope_causes(Causes others) {
  others.merge(Causes{
      {"[scope] expected a name that no other input has, received '…' once more", input_name_twice},
      {"[scope] '…': expected a tensor that no operator of the scope has read or made; name inputs "
       "before the program runs",
       named_after_it_was_read},
      {"[scope] expected a name for a parameter or buffer, received an empty one",
       state_without_a_name},
      {"[scope] …: expected a tensor, received an undefined one", undefined_input},
      {"[scope] output '…': expected a tensor that was made in the scope or is one of its inputs, "
       "received one that the scope has not seen",
       output_of_nobody},
      {"[scope] expected a name that no other output has, received '…' once more",
       output_name_twice},
      {"[scope] output '…': expected names for all outputs or for none of them",
       outputs_with_and_without_names},
      {"[check] expected a program that draws from the default generator, received one that draws "
       "from '…'",
       check_with_a_generator}});
  return others;
}

}  // namespace flashlight::test
