// Operators on tensors, views, writes; tuples, lists, dicts, strings; calls.
#include <gtest/gtest.h>

#include "tests/frontends/torchscript/compare.h"

namespace flashlight::test {
namespace {

TEST(Tensors, operators) {
  const char* text = R"(
def f(x: Tensor, w: Tensor):
    n = x.size(-1)
    y = torch.matmul(x, w) + x.mean(dim=1, keepdim=True) / n
    z = torch.softmax(y, dim=-1).transpose(0, 1)
    values, indices = z.max(dim=0)
    a, b = torch.split(y, [1, 1])
    return z, values, indices, a * b, torch.cat([x, y]), y.t().contiguous().view(-1)[1:4:2], F.gelu(x), torch.nn.functional.relu(x), x[:, None], x[..., 0], x[-1], y.reshape(-1), x.shape[0] * y
)";
  check({{.text = text, .arguments = {random({2, 3}), random({3, 3}, 3)}}});
}

TEST(Tensors, writes_through_views) {
  const char* text = R"(
def f(x: Tensor, y: Tensor):
    z = x.clone()
    z[0] = y
    z[1:, 1] *= 2
    t = z.t()
    t[0] += 10
    z.view(-1)[2:4] = 7
    flat = z.view(-1)
    a, b = z.split([1, 2])
    b.mul_(y)
    z[z > 3] = 1.5
    z.diagonal().add_(y)
    u = z.unbind(0)
    u[1].zero_()
    z.unsqueeze(0)[0, 2] = y[0]
    torch.relu_(u[2])
    return z, t, flat, a, b, x
)";
  // Autograd does not write through one of several views.
  check({{.text = text, .arguments = {random({3, 3}), random({3}, 3)}, .autograd = false}});
}

TEST(Tensors, what_is_read_before_a_write_stays) {
  const char* text = R"(
def f(x: Tensor):
    z = x * 2
    before = z + 0
    view = z[1]
    z.fill_(3)
    z += x
    return before, view * 2, z
)";
  check({{.text = text, .arguments = {random({3})}}});
}

// A tensor that is one of several, as values decide: a write changes the one that it is.
TEST(Tensors, writes_to_one_of_several) {
  const char* text = R"(
def f(x: Tensor, y: Tensor):
    a, b = x.clone(), y.clone()
    c = a
    if bool(x.sum() > 0):
        if bool(y.sum() > 0):
            c = b
    elif bool(y.sum() > 1):
        c = a * 2
    c += 1
    b *= 3
    c[0] = 5
    d = c
    n = 0
    while bool(d.sum() < y.sum()):
        d = d * 2 + 1
        n += 1
    d.mul_(2)
    return a, b, c, d, n
)";
  std::vector<Case> cases;
  for (double x : {-1.0, 1.0})
    for (double y : {-5.0, 0.5, 5.0})
      cases.push_back({.text = text, .arguments = {random({3}) * x, random({3}, 1) * y}});
  check(cases);
}

// One of them is written on a way that the other is not.
TEST(Tensors, writes_to_what_may_be_the_same) {
  const std::vector<const char*> texts = {R"(
def f(x: Tensor, y: Tensor, u: float):
    a, b = x.clone(), y * 0.5
    if u > 0.25:
        a = b
    if u > 0.5:
        b[1:] *= 0.5
    else:
        a[1:] *= 0.25
    return a, b
)",
                                          R"(
def f(x: Tensor, y: Tensor, u: float):
    a, b = x.clone(), y * 0.5
    if u > 0.25:
        a = b
    if u > 0.5:
        a[1:] *= 0.5
        b[1:] *= 0.25
    else:
        b += 1
    return a, b
)",
                                          R"(
def f(x: Tensor, y: Tensor, u: float):
    a, b, c = x.clone(), y * 0.5, x * y
    if u > 0.25:
        a = b
    if u > 0.4:
        c = a
    if u > 0.5:
        b += u
    else:
        c[0] = 2
    if u > 9:
        c[1] = 3
    else:
        a[2] = 4
        c *= 2
    return a, b, c
)"};
  std::vector<Case> cases;
  for (const char* text : texts)
    for (double u : {0.1, 0.3, 0.45, 0.7, 10.0})
      cases.push_back({.text = text,
                       .arguments = {random({3}), random({3}, 5), number(u)},
                       .uses = "composit::cond"});
  check(cases);
}

TEST(Tensors, containers) {
  const char* text = R"(
def f(x: Tensor, names: List[str]):
    d = {"a": x, "b": 2 * x}
    d["c"] = x * x
    total = x * 0
    for name in names:
        if name in d:
            total = total + d[name]
    xs = [x, x + 1]
    xs.extend([x + 2])
    xs[0] = xs[1] * xs[2]
    xs.insert(1, x)
    last = xs.pop()
    pair = (x, (xs[0], 3))
    a, (b, n) = pair
    s = "%d" % n
    return total, last, a * b * n, len(xs), torch.stack(xs[::-1]), len(s)
)";
  check({{.text = text, .arguments = {random({3}), c10::List<std::string>({"a", "c", "z"})}}});
}

TEST(Tensors, calls) {
  const char* text = R"(
def scale(x: Tensor, by: float = 2.0) -> Tensor:
    return x * by

def both(x: Tensor, y: Optional[Tensor] = None):
    if y is None:
        return scale(x), x
    return scale(x, by=3.0), y

def f(x: Tensor):
    a, b = both(x)
    c, d = both(x, a)
    assert x.dim() == 1, "expected one axis"
    return a * b + c * d
)";
  check({{.text = text, .arguments = {random({3})}}});
}

}  // namespace
}  // namespace flashlight::test
