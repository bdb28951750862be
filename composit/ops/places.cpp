#include "composit/ops/places.h"

#include "composit/ir/error.h"

namespace composit {

void expect_index(const In& index) {
  if (index.numel() == 0) return;  // torch does not look at it, then
  if (index.dtype() != DType::int64 && index.dtype() != DType::int32)
    throw UserError("expected an index of int64 or int32, received " +
                    std::string(name(index.dtype())));
}

Nest copy_of(const In& x) {
  Nest nest;
  nest.store(x(nest.parallel(x.sizes())));
  return nest;
}

Ints joined(Ints front, const Ints& back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

Index joined(Index front, const Index& back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

Expr flattened(const Index& at, const Ints& sizes) {
  if (at.empty()) return Expr::literal(int64_t{0}, DType::int64);
  Expr flat = at[0];
  for (size_t axis = 1; axis < at.size(); ++axis) flat = flat * sizes[axis] + at[axis];
  return flat;
}

Index unflattened(Expr flat, const Ints& sizes) {
  Index at(sizes.size());
  for (size_t axis = sizes.size(); axis-- > 0;) {
    at[axis] = axis == 0 ? flat : remainder(flat, sizes[axis]);
    if (axis > 0) flat = floor_divide(flat, sizes[axis]);
  }
  return at;
}

static std::vector<Expr> better(const std::vector<Expr>& l, const std::vector<Expr>& r,
                                const Expr& beats) {
  const Expr ties = eq(r[0], l[0]) || (isnan(r[0]) && isnan(l[0]));
  const Expr wins = !isnan(l[0]) && (isnan(r[0]) || beats);
  const Expr take = r[1] >= 0 && (l[1] < 0 || wins || (ties && r[1] < l[1]));
  return {select(take, r[0], l[0]), select(take, r[1], l[1])};
}

std::vector<Expr> first_largest(const std::vector<Expr>& left, const std::vector<Expr>& right) {
  return better(left, right, right[0] > left[0]);
}

std::vector<Expr> first_smallest(const std::vector<Expr>& left, const std::vector<Expr>& right) {
  return better(left, right, right[0] < left[0]);
}

void expect_axes(const Ints& sizes, size_t axes) {
  if (sizes.size() != axes + 1 && sizes.size() != axes + 2)
    throw UserError("expected an input of " + std::to_string(axes + 1) + " or " +
                    std::to_string(axes + 2) + " axes, received sizes " + str(sizes));
}

Loops at_maxima(const In& gradient, const In& indices, const In& x, size_t axes) {
  expect_axes(x.sizes(), axes);
  if (gradient.sizes() != indices.sizes())
    throw UserError("expected a gradient per index, received sizes " + str(gradient.sizes()) +
                    " and " + str(indices.sizes()));
  const Ints sizes = x.sizes(), last(sizes.end() - static_cast<int64_t>(axes), sizes.end());
  Nest nest;
  const Index at = nest.parallel(gradient.sizes());
  const Index lead(at.begin(), at.end() - static_cast<int64_t>(axes));
  return nest.store(sizes, joined(lead, unflattened(indices(at), last)), gradient(at), true)
      .loops();
}

}  // namespace composit
