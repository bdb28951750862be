// Operations whose results have as many elements as values say. Their types are not known before;
// a captured graph holds for the sizes that it was captured with.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "composit/op/promotion.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "composit/ops/operations.h"

namespace composit {
namespace {

[[noreturn]] std::vector<Type> refuse() {
  throw SizesDependOnValues(
      "gives sizes that depend on values, which composit does not have; use where or masked_fill");
}

Ints sizes_of(const Array& x) { return x.type().sizes; }

int64_t product(const Ints& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

Array of_int64(const Ints& sizes, const std::vector<int64_t>& values) {
  return array_of(tensor_type(DType::int64, sizes), values);
}

// Blocks of `bytes` from `data`, by their numbers.
Array picked(const Type& type, const std::byte* data, size_t bytes,
             const std::vector<int64_t>& numbers) {
  std::vector<std::byte> chosen(numbers.size() * bytes);
  for (size_t i = 0; i < numbers.size(); ++i)
    std::memcpy(chosen.data() + i * bytes, data + static_cast<size_t>(numbers[i]) * bytes, bytes);
  return Array::copy_of(type, chosen.data());
}

// x in sizes that it broadcasts to.
Array expanded(const Array& x, const Ints& sizes) {
  Type type = x.type();
  const size_t missing = sizes.size() - type.rank();
  std::vector<int64_t> strides(missing, 0);
  for (size_t i = missing; i < sizes.size(); ++i)
    strides.push_back(type.sizes[i - missing] == 1 ? 0 : type.strides[i - missing]);
  type.sizes.assign(sizes.begin(), sizes.end());
  type.strides = strides;
  return Array(type, x.owner(), x.data()).contiguous();
}

std::vector<Array> masked_select(const Array& x, const Array& mask) {
  const Ints sizes = broadcast_sizes({sizes_of(x), sizes_of(mask)});
  const Array whole = expanded(x, sizes);
  const std::vector<int64_t> chosen = elements<int64_t>(expanded(mask, sizes));
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < chosen.size(); ++i)
    if (chosen[i] != 0) numbers.push_back(static_cast<int64_t>(i));
  const DType dtype = x.type().dtype;
  const Type type = tensor_type(dtype, {static_cast<int64_t>(numbers.size())});
  return {picked(type, whole.data(), item_size(dtype), numbers)};
}

LazyTensors masked_select_of_size(const Opening& open, const LazyTensor& x,
                                  const LazyTensor& mask) {
  const int64_t count = open.results[0].sizes[0];
  const Ints sizes = broadcast_sizes({x.sizes(), mask.sizes()});
  const LazyTensor chosen = reshape(expand(mask, sizes), {-1}),
                   flat = reshape(expand(x, sizes), {-1});
  open.expect(sum(chosen), count);
  const LazyTensor places = apply_one("aten::nonzero_static", {chosen, count});
  return {apply_one("aten::take", {flat, reshape(places, {-1})})};
}

// A complex array as pairs of real numbers.
Array parts_of(const Array& x) {
  Type type = tensor_type(real_dtype(x.type().dtype), x.type().sizes);
  type.sizes.emplace_back(2);
  type.strides = contiguous_strides(type.sizes);
  const Array plain = x.contiguous();
  return Array(type, plain.owner(), plain.data());
}

// Per element whether it is another number than zero; NaN is.
std::vector<bool> is_nonzero(const Array& x) {
  const size_t parts = is_complex(x.type().dtype) ? 2 : 1;
  const std::vector<double> values = elements<double>(parts == 2 ? parts_of(x) : x);
  std::vector<bool> result(values.size() / parts);
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] != 0) result[i / parts] = true;
  return result;
}

// The indices of the elements that are not zero, one per row.
std::vector<Array> nonzero(const Array& x) {
  const Ints sizes = sizes_of(x);
  const std::vector<bool> values = is_nonzero(x);
  std::vector<int64_t> places;
  int64_t count = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) continue;
    ++count;
    auto rest = static_cast<int64_t>(i);
    for (size_t axis = 0, inner = values.size(); axis < sizes.size(); ++axis) {
      inner /= static_cast<size_t>(sizes[axis]);
      places.push_back(rest / static_cast<int64_t>(inner));
      rest %= static_cast<int64_t>(inner);
    }
  }
  return {of_int64({count, static_cast<int64_t>(sizes.size())}, places)};
}

// ---- unique -------------------------------------------------------------------------------------

// Slices of an array along an axis, as rows of numbers.
class Rows {
 public:
  Rows(const Array& x, std::optional<int64_t> dim) {
    Ints sizes = sizes_of(x);
    const Array plain = x.contiguous();
    if (is_complex(x.type().dtype)) throw UserError("expected real numbers");
    if (is_floating_point(x.type().dtype))
      numbers_ = elements<double>(plain);
    else
      integers_ = elements<int64_t>(plain);
    if (dim && !sizes.empty()) {
      const auto axis = static_cast<size_t>(wrap_axis(*dim, static_cast<int64_t>(sizes.size())));
      count_ = sizes[axis];
      for (size_t i = axis + 1; i < sizes.size(); ++i) inner_ *= sizes[i];
      length_ = count_ == 0 ? 0 : product(sizes) / count_;
    } else {
      count_ = product(sizes);
      length_ = 1;
    }
  }
  int64_t count() const { return count_; }

  // A NaN comes after all other numbers, and equal to none.
  bool is_before(int64_t a, int64_t b) const {
    return integers_.empty() ? is_before(numbers_, a, b) : is_before(integers_, a, b);
  }
  bool are_equal(int64_t a, int64_t b) const {
    return integers_.empty() ? are_equal(numbers_, a, b) : are_equal(integers_, a, b);
  }

 private:
  template <class T>
  bool is_before(const std::vector<T>& numbers, int64_t a, int64_t b) const {
    for (int64_t i = 0; i < length_; ++i) {
      const T x = numbers[place(a, i)], y = numbers[place(b, i)];
      if (x < y || (y != y && x == x)) return true;
      if (!(x == y)) return false;
    }
    return false;
  }
  template <class T>
  bool are_equal(const std::vector<T>& numbers, int64_t a, int64_t b) const {
    for (int64_t i = 0; i < length_; ++i)
      if (numbers[place(a, i)] != numbers[place(b, i)]) return false;
    return true;
  }
  size_t place(int64_t row, int64_t i) const {
    return static_cast<size_t>((i / inner_ * count_ + row) * inner_ + i % inner_);
  }
  std::vector<double> numbers_;
  std::vector<int64_t> integers_;
  int64_t count_ = 0, length_ = 1, inner_ = 1;
};

struct Groups {
  std::vector<int64_t> first;    // of each group, a row
  std::vector<int64_t> of_row;   // its group
  std::vector<int64_t> members;  // how many
};

Groups groups_of(const Rows& rows, bool sorted) {
  std::vector<int64_t> order(static_cast<size_t>(rows.count()));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (sorted)
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return rows.is_before(a, b); });
  Groups groups;
  groups.of_row.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || !rows.are_equal(order[i - 1], order[i])) {
      groups.first.push_back(order[i]);
      groups.members.push_back(0);
    }
    groups.of_row[static_cast<size_t>(order[i])] = static_cast<int64_t>(groups.first.size()) - 1;
    ++groups.members.back();
  }
  return groups;
}

// The slices `chosen` of x along `dim`; of the flat x without one.
Array slices(const Array& x, std::optional<int64_t> dim, const std::vector<int64_t>& chosen) {
  const Array plain = x.contiguous();
  Ints sizes = sizes_of(x);
  if (!dim || sizes.empty()) {
    const Type type = tensor_type(x.type().dtype, {static_cast<int64_t>(chosen.size())});
    return picked(type, plain.data(), item_size(type.dtype), chosen);
  }
  const auto axis = static_cast<size_t>(wrap_axis(*dim, static_cast<int64_t>(sizes.size())));
  const int64_t outer = product({sizes.begin(), sizes.begin() + static_cast<int64_t>(axis)});
  const int64_t inner = product({sizes.begin() + static_cast<int64_t>(axis) + 1, sizes.end()});
  std::vector<int64_t> numbers;
  for (int64_t o = 0; o < outer; ++o)
    for (const int64_t row : chosen) numbers.push_back(o * sizes[axis] + row);
  sizes[axis] = static_cast<int64_t>(chosen.size());
  const Type type = tensor_type(x.type().dtype, sizes);
  return picked(type, plain.data(), static_cast<size_t>(inner) * item_size(type.dtype), numbers);
}

// Values, the group of each element or slice, and how many are in each; empty where not asked for.
std::vector<Array> unique(const Array& x, std::optional<int64_t> dim, bool sorted, bool inverse,
                          bool counts) {
  const Groups groups = groups_of(Rows(x, dim), sorted);
  const auto size = [](const std::vector<int64_t>& list) {
    return static_cast<int64_t>(list.size());
  };
  const Ints shape = dim ? Ints{size(groups.of_row)} : sizes_of(x);
  return {slices(x, dim, groups.first),
          inverse ? of_int64(shape, groups.of_row) : of_int64({0}, {}),
          counts ? of_int64({size(groups.members)}, groups.members) : of_int64({0}, {})};
}

void add_unique(OperationTable& rows) {
  rows.add({.schema = "aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, "
                      "bool return_counts=False) -> (Tensor, Tensor, Tensor)",
            .infer = [](LazyTensor) { return refuse(); },
            .native = [](Array x, bool, bool inverse,
                         bool counts) { return unique(x, {}, true, inverse, counts); },
            .bad = "f32[2]: depend on values"});
  rows.add({.schema = "aten::unique_dim(Tensor self, int dim, bool sorted=True, bool "
                      "return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
            .infer = [](LazyTensor) { return refuse(); },
            .native = [](Array x, int64_t dim) { return unique(x, dim, true, true, true); },
            .bad = "f32[2] 0: depend on values"});
  rows.add({.schema = "aten::unique_consecutive(Tensor self, bool return_inverse=False, bool "
                      "return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor)",
            .infer = [](LazyTensor) { return refuse(); },
            .native =
                [](Array x, bool inverse, bool counts, std::optional<int64_t> dim) {
                  return unique(x, dim, false, inverse || dim, counts || dim);
                },
            .bad = "f32[2]: depend on values"});
}

}  // namespace

void add_value_sizes_rows(OperationTable& rows) {
  rows.add({.schema = "aten::masked_select(Tensor self, Tensor mask) -> Tensor",
            .infer = [](LazyTensor, LazyTensor) { return refuse(); },
            .native = [](Array x, Array mask) { return masked_select(x, mask); },
            .opened = [](const Opening& open, LazyTensor x,
                         LazyTensor mask) { return masked_select_of_size(open, x, mask); },
            .vjp =
                [](Vjp v, LazyTensor x, LazyTensor mask) {
                  const Ints sizes = broadcast_sizes({x.sizes(), mask.sizes()});
                  const LazyTensor zeros = full(sizes, 0, x.dtype());
                  const LazyTensor whole =
                      apply_one("aten::masked_scatter", {zeros, mask, v.cotangents[0]});
                  return Gradients{sum_to_size(whole, x.sizes()), {}};
                },
            .bad = "f32[2] bool[2]: depend on values"});
  rows.add({.schema = "aten::nonzero(Tensor self) -> Tensor",
            .kind = OpKind::reduction,
            .infer = [](LazyTensor) { return refuse(); },
            .native = [](Array x) { return nonzero(x); },
            .opened =
                [](const Opening& open, LazyTensor x) {
                  const int64_t count = open.results[0].sizes[0];
                  open.expect(sum(ne(x, 0)), count);
                  return LazyTensors{apply_one("aten::nonzero_static", {x, count})};
                },
            .bad = "f32[2]: depend on values"});
  add_unique(rows);
  rows.add({.schema = "aten::repeat_interleave.Tensor(Tensor repeats, *, SymInt? "
                      "output_size=None) -> Tensor",
            .kind = OpKind::movement,
            .infer = [](LazyTensor) { return refuse(); },
            .native =
                [](Array repeats) {
                  const std::vector<int64_t> counts = elements<int64_t>(repeats);
                  std::vector<int64_t> numbers;
                  for (size_t i = 0; i < counts.size(); ++i)
                    numbers.insert(numbers.end(), static_cast<size_t>(counts[i]),
                                   static_cast<int64_t>(i));
                  const auto size = static_cast<int64_t>(numbers.size());
                  return std::vector<Array>{of_int64({size}, numbers)};
                },
            .bad = "i64[2]<3: depend on values"});
  rows.add({.schema = "aten::bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> "
                      "Tensor",
            .infer = [](LazyTensor) { return refuse(); },
            .native =
                [](Array x, std::optional<Array> weights, int64_t least) {
                  const std::vector<int64_t> values = elements<int64_t>(x);
                  int64_t size = least;
                  for (const int64_t value : values) size = std::max(size, value + 1);
                  if (values.empty()) size = least;
                  const auto add = [&](auto given) {
                    decltype(given) bins(static_cast<size_t>(size));
                    for (size_t i = 0; i < values.size(); ++i)
                      bins[static_cast<size_t>(values[i])] += given[i];
                    return bins;
                  };
                  if (!weights)
                    return std::vector<Array>{
                        of_int64({size}, add(std::vector<int64_t>(values.size(), 1)))};
                  const bool single = weights->type().dtype == DType::float32;
                  const Type type = tensor_type(single ? DType::float32 : DType::float64, {size});
                  return std::vector<Array>{array_of(type, add(elements<double>(*weights)))};
                },
            .bad = "i64[2]<3: depend on values"});
}

}  // namespace composit
