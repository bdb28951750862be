// A tensor after a write through a view: its elements that the view shows, found by showing their
// numbers, are the view's new ones, and the others stay.
#include "composit/ops/views.h"

#include <gtest/gtest.h>

#include "composit/eval/evaluate.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"

namespace composit {
namespace {

struct ViewCase {
  std::string op;
  Ints sizes;
  std::vector<ArgumentValue> arguments = {};  // behind the tensor
};

std::vector<double> values_of(const LazyTensor& x) { return elements<double>(evaluate({x})[0]); }

LazyTensors views_of(const LazyTensor& x, const ViewCase& view) {
  std::vector<ArgumentValue> arguments = {x};
  arguments.insert(arguments.end(), view.arguments.begin(), view.arguments.end());
  return composit::apply(view.op, arguments);
}

// `old` with `written` in the place of what the view's result `output` shows.
LazyTensor after_write(const LazyTensor& old, const LazyTensor& written, const ViewCase& view,
                       size_t output) {
  const auto numbers = [&](size_t i) {
    const Attribute& argument = view.arguments.at(i).data();
    return argument.kind() == AttributeKind::dim ? Ints{argument.as_int()} : to_ints(argument);
  };
  const auto inverse = inverse_of({view.op, view.sizes, output, numbers});
  if (!inverse) throw UserError(view.op + " has no inverse");
  if (inverse->op.empty()) return written;
  std::vector<ArgumentValue> arguments;
  if (inverse->takes_parent) arguments.emplace_back(old);
  arguments.emplace_back(written);
  if (inverse->same_arguments)
    arguments.insert(arguments.end(), view.arguments.begin(), view.arguments.end());
  for (const auto& argument : inverse->arguments)
    std::visit([&](const auto& value) { arguments.emplace_back(value); }, argument);
  return apply_one(inverse->op, arguments);
}

void expect_written(const ViewCase& view) {
  const LazyTensor old = reshape(arange(24, DType::float64), view.sizes);
  const LazyTensors views = views_of(old, view);
  for (size_t output = 0; output < views.size(); ++output) {
    SCOPED_TRACE(view.op + ", result " + std::to_string(output));
    const LazyTensor& shown = views[output];
    std::vector<double> expected = values_of(old);
    for (const double number : values_of(shown)) expected[static_cast<size_t>(number)] = -number;
    const LazyTensor now = after_write(old, -shown, view, output);
    EXPECT_EQ(now.sizes(), view.sizes);
    EXPECT_EQ(values_of(now), expected);
  }
}

TEST(ViewsThatAreWritten, parts) {
  expect_written({"aten::select.int", {4, 6}, {1, -2}});
  expect_written({"aten::slice.Tensor", {4, 6}, {-1, 1, 6, 2}});
  expect_written({"aten::diagonal", {2, 3, 4}, {1, -2, -1}});
  expect_written({"aten::unbind.int", {2, 3, 4}, {-2}});
  expect_written({"aten::narrow", {4, 6}, {1, 2, 3}});
  expect_written({"aten::narrow", {4, 6}, {-1, -3, 2}});
  expect_written({"aten::split.Tensor", {4, 6}, {4, -1}});
  expect_written({"aten::split.sizes", {4, 6}, {Ints{1, 2, 1}, 0}});
  expect_written({"aten::split_with_sizes", {4, 6}, {Ints{1, 5}, -1}});
  expect_written({"aten::chunk", {4, 6}, {4, 1}});
}

TEST(ViewsThatAreWritten, wholes) {
  expect_written({"aten::transpose.int", {2, 3, 4}, {0, -1}});
  expect_written({"aten::swapaxes", {2, 3, 4}, {1, 2}});
  expect_written({"aten::swapdims", {2, 3, 4}, {-3, 1}});
  expect_written({"aten::t", {4, 6}});
  expect_written({"aten::t", {24}});
  expect_written({"aten::numpy_T", {4, 6}});
  expect_written({"aten::mT", {4, 6}});
  expect_written({"aten::permute", {2, 3, 4}, {Ints{-1, 0, 1}}});
  expect_written({"aten::unsqueeze", {4, 6}, {-2}});
  expect_written({"aten::unsqueeze", {4, 6}, {2}});
  expect_written({"aten::squeeze", {4, 1, 6, 1}});
  expect_written({"aten::squeeze.dim", {4, 1, 6, 1}, {1}});
  expect_written({"aten::squeeze.dims", {4, 1, 6, 1}, {Ints{1, 3}}});
  expect_written({"aten::view", {4, 6}, {Ints{8, 3}}});
  expect_written({"aten::reshape", {4, 6}, {Ints{-1}}});
  expect_written({"aten::flatten.using_ints", {2, 3, 4}, {1, -1}});
  expect_written({"aten::unflatten.int", {4, 6}, {1, Ints{2, 3}}});
  expect_written({"aten::alias", {4, 6}});
  expect_written({"aten::detach", {4, 6}});
}

TEST(ViewsThatAreWritten, not_all_can_be) {
  const auto none = [](size_t) -> Ints { return {}; };
  const Ints sizes = {2, 3, 4};
  EXPECT_FALSE(inverse_of({"aten::expand", sizes, 0, none}));
  EXPECT_FALSE(inverse_of({"aten::mT", sizes, 0, none}));
}

}  // namespace
}  // namespace composit
