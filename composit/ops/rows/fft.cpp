// torch.fft, as the transforms of fourier.cpp with lengths, axes and scalings as users write them.
// Source of the definitions: https://pytorch.org/docs/stable/fft.html
#include <numeric>
#include <optional>
#include <string_view>

#include "composit/op/promotion.h"
#include "composit/ops/functions.h"

namespace composit {
namespace {

using Norm = std::optional<std::string>;

// 0, 1 or 2 of the transforms: none, by the root of the length, by the length.
int64_t scaling_of(const Norm& norm, bool forward) {
  const std::string how = norm.value_or("backward");
  if (how == "ortho") return 1;
  if (how != "backward" && how != "forward")
    throw UserError("expected the norm 'forward', 'backward' or 'ortho', received '" + how + "'");
  return (how == "forward") == forward ? 2 : 0;
}

LazyTensor floats(const LazyTensor& x) {
  const DTypeCategory of = category(x.dtype());
  return of == DTypeCategory::floating || of == DTypeCategory::complex ? x : to(x, DType::float32);
}
LazyTensor complex_numbers(const LazyTensor& x) {
  const LazyTensor numbers = floats(x);
  return is_complex(numbers.dtype()) ? numbers : to(numbers, complex_dtype(numbers.dtype()));
}
LazyTensor reals(const LazyTensor& x) {
  if (is_complex(x.dtype()))
    throw UserError("expected real numbers, received " + std::string(name(x.dtype())));
  return floats(x);
}

// The first `length` along an axis, with zeros after what is there.
LazyTensor resized(const LazyTensor& x, int64_t axis, int64_t length) {
  if (length < 1) throw UserError("expected a length above 0, received " + std::to_string(length));
  const int64_t size = x.size(axis);
  if (length <= size) return length == size ? x : slice(x, axis, 0, length);
  Ints pad(static_cast<size_t>(x.rank() - axis) * 2, 0);  // the last axis first
  pad.back() = length - size;
  return apply_one("aten::constant_pad_nd", {x, pad});
}

// Axes and their lengths: all axes without `dim`, the last ones where only lengths are given.
struct Where {
  Ints axes, lengths;
};
Where where_of(const LazyTensor& x, const Ints& lengths, const Ints& dims) {
  Where where;
  for (const int64_t dim : dims) where.axes.push_back(wrap_axis(dim, x.rank()));
  if (dims.empty()) {
    const auto rank = static_cast<size_t>(x.rank());
    if (lengths.size() > rank)
      throw UserError("expected at most " + std::to_string(rank) + " lengths, received " +
                      std::to_string(lengths.size()));
    where.axes.resize(lengths.empty() ? rank : lengths.size());
    std::iota(where.axes.begin(), where.axes.end(), static_cast<int64_t>(rank - where.axes.size()));
  }
  if (where.axes.empty()) throw UserError("expected an axis at least");
  if (!lengths.empty() && lengths.size() != where.axes.size())
    throw UserError("expected a length per axis, received " + str(lengths) + " and " + str(dims));
  for (size_t i = 0; i < where.axes.size(); ++i) {
    const bool given = !lengths.empty() && lengths[i] != -1;
    where.lengths.push_back(given ? lengths[i] : x.size(where.axes[i]));
  }
  return where;
}
LazyTensor resized(LazyTensor x, const Where& where) {
  for (size_t i = 0; i < where.axes.size(); ++i) x = resized(x, where.axes[i], where.lengths[i]);
  return x;
}

LazyTensor between_complex(const LazyTensor& x, const Ints& lengths, const Ints& dims,
                           const Norm& norm, bool forward) {
  const Where where = where_of(x, lengths, dims);
  const LazyTensor numbers = complex_numbers(resized(x, where));
  return apply_one("aten::_fft_c2c", {numbers, where.axes, scaling_of(norm, forward), forward});
}
LazyTensor from_real(const LazyTensor& x, const Ints& lengths, const Ints& dims, const Norm& norm,
                     bool forward) {
  const Where where = where_of(x, lengths, dims);
  const LazyTensor y = apply_one(
      "aten::_fft_r2c", {reals(resized(x, where)), where.axes, scaling_of(norm, forward), true});
  return forward ? y : apply_one("aten::conj_physical", {y});
}
LazyTensor to_real(const LazyTensor& x, const Ints& lengths, const Ints& dims, const Norm& norm,
                   bool forward) {
  Where where = where_of(x, lengths, dims);
  const bool given = !lengths.empty() && lengths.back() != -1;
  const int64_t last = given ? lengths.back() : 2 * (where.lengths.back() - 1);
  if (last < 1) throw UserError("expected a length above 0, received " + std::to_string(last));
  where.lengths.back() = last / 2 + 1;
  LazyTensor numbers = complex_numbers(resized(x, where));
  if (forward) numbers = apply_one("aten::conj_physical", {numbers});
  return apply_one("aten::_fft_c2r", {numbers, where.axes, scaling_of(norm, forward), last});
}

using Transform = LazyTensor (*)(const LazyTensor&, const Ints&, const Ints&, const Norm&, bool);

template <Transform kTransform, bool kForward>
Row of_axis(std::string_view schema, std::string_view samples) {
  return {
      .schema = schema,
      .decompose =
          [](LazyTensor x, std::optional<int64_t> n, int64_t dim, Norm norm) {
            return LazyTensors{kTransform(x, n ? Ints{*n} : Ints{}, {dim}, norm, kForward)};
          },
      .samples = samples,
      .bad =
          "f32[3] 0: above 0 | f32[3] 4 1: an axis from -1 to 0 | f32[3] None 0 'all': the norm"};
}
template <Transform kTransform, bool kForward>
Row of_axes(std::string_view schema, std::string_view samples) {
  return {.schema = schema,
          .decompose = [](LazyTensor x, Ints s, Ints dim,
                          Norm norm) { return LazyTensors{kTransform(x, s, dim, norm, kForward)}; },
          .samples = samples,
          .bad = "f32[3,4] [2] [0,1]: a length per axis | f32[3,4] [2,0] [0,1]: above 0"};
}

// Half a turn, so that frequency 0 is in the middle, or back.
LazyTensor turned(const LazyTensor& x, const Ints& dims, bool back) {
  if (x.rank() == 0) return x;
  const Ints axes = where_of(x, {}, dims).axes;
  Ints by;
  for (const int64_t axis : axes) by.push_back((x.size(axis) + (back ? 1 : 0)) / 2);
  return apply_one("aten::roll", {x, by, axes});
}

}  // namespace

void add_fft_rows(OperationTable& rows) {
  rows.add(of_axis<between_complex, true>(
      "aten::fft_fft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
      "f32[3,4] | c64[5] 4 | c64[2,3] 4 0 'ortho' | i64[3]"));
  rows.add(of_axis<between_complex, false>(
      "aten::fft_ifft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
      "f32[4] | c64[5] None -1 'forward' | c64[2,3] 4 0"));
  rows.add(of_axis<from_real, true>(
      "aten::fft_rfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
      "f32[3,4] | f32[5] 4 | f64[2,3] 4 0 'ortho' | bool[3]"));
  rows.add(of_axis<from_real, false>(
      "aten::fft_ihfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
      "f32[3,4] | f32[5] 4 -1 'forward'"));
  rows.add(of_axis<to_real, false>(
      "aten::fft_irfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
      "c64[3] | c64[2,3] 5 | c64[3] 4 0 'ortho' | f32[4]"));
  rows.add(of_axis<to_real, true>(
      "aten::fft_hfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
      "c64[3] | c64[2,3] 5 1 'forward'"));
  rows.add(
      of_axes<between_complex, true>("aten::fft_fft2(Tensor self, SymInt[1]? s=None, int[1] "
                                     "dim=[-2, -1], str? norm=None) -> Tensor",
                                     "f32[3,4] | c64[2,3,4] [4,2] [0,2] 'ortho'"));
  rows.add(of_axes<between_complex, true>(
      "aten::fft_fftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
      "f32[2,3,4] | c64[2,3,4] [4,2] None 'ortho'"));
  rows.add(
      of_axes<between_complex, false>("aten::fft_ifft2(Tensor self, SymInt[1]? s=None, int[1] "
                                      "dim=[-2, -1], str? norm=None) -> Tensor",
                                      "f32[3,4] | c64[2,3,4] None [1,-1] 'forward'"));
  rows.add(of_axes<between_complex, false>(
      "aten::fft_ifftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
      "f32[3,4] | c64[2,3,4] [4,-1] [0,2]"));
  rows.add(
      of_axes<from_real, true>("aten::fft_rfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, "
                               "-1], str? norm=None) -> Tensor",
                               "f32[3,4] | f32[2,3,4] [2,-1] [0,2] 'ortho'"));
  rows.add(of_axes<from_real, true>(
      "aten::fft_rfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
      "f32[2,3,4] | f32[2,3,4] [2,5] None 'forward'"));
  rows.add(
      of_axes<to_real, false>("aten::fft_irfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, "
                              "-1], str? norm=None) -> Tensor",
                              "c64[3,4] | c64[2,3,4] [2,5] [0,1] 'forward'"));
  rows.add(
      of_axes<to_real, false>("aten::fft_irfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, "
                              "str? norm=None) -> Tensor",
                              "c64[2,3,4] | c64[3,4] [2,5] None 'ortho'"));
  rows.add({.schema = "aten::fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor",
            .decompose = [](LazyTensor x, Ints dim) { return LazyTensors{turned(x, dim, false)}; },
            .samples = "f32[5] | f32[4,3] | f32[4,3] [0] | i64[2,5] [-1]",
            .bad = "f32[3] [1]: an axis from -1 to 0"});
  rows.add({.schema = "aten::fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor",
            .decompose = [](LazyTensor x, Ints dim) { return LazyTensors{turned(x, dim, true)}; },
            .samples = "f32[5] | f32[4,3] | f32[4,3] [0] | i64[2,5] [-1]",
            .bad = "f32[3] [1]: an axis from -1 to 0"});
}

}  // namespace composit
