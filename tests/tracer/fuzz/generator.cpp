#include "tests/tracer/fuzz/generator.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>

#include "tests/tracer/fuzz/table.h"

namespace flashlight::fuzz {
namespace {

using Sizes = std::vector<int64_t>;

struct Failed {};  // no fitting argument

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int64_t below(int64_t n) {
    return n <= 0 ? 0 : static_cast<int64_t>(engine_() % static_cast<uint64_t>(n));
  }
  bool chance(double p) { return static_cast<double>(engine_() >> 11) * 0x1p-53 < p; }
  template <class Items>
  auto pick(const Items& items) {
    return items[static_cast<size_t>(below(static_cast<int64_t>(items.size())))];
  }
  template <class Items>
  void shuffle(Items& items) {
    for (size_t i = items.size(); i > 1; --i)
      std::swap(items[i - 1], items[static_cast<size_t>(below(static_cast<int64_t>(i)))]);
  }

 private:
  std::mt19937_64 engine_;
};

class Drawer {
 public:
  Drawer(Random& random, const std::vector<at::Tensor>& tensors)
      : random_(random), tensors_(tensors) {}

  std::vector<Argument> draw(const Row& row) {
    for (const char* letter = row.arguments; *letter != 0; ++letter) draw(*letter);
    return std::move(arguments_);
  }

 private:
  void add(Argument argument) { arguments_.push_back(std::move(argument)); }
  void add(c10::IValue value) { arguments_.emplace_back(std::move(value)); }

  // ---- tensors ----------------------------------------------------------------------------------

  template <class Fits>
  Var tensor(Fits fits) {
    std::vector<int> found;
    for (size_t i = 0; i < tensors_.size(); ++i)
      if (tensors_[i].defined() && fits(tensors_[i])) found.push_back(static_cast<int>(i));
    if (found.empty()) throw Failed();
    // Younger tensors are views of views, and written ones.
    const size_t half = found.size() / 2;
    const Var var{random_.chance(0.5)
                      ? found[half + static_cast<size_t>(
                                         random_.below(static_cast<int64_t>(found.size() - half)))]
                      : random_.pick(found)};
    if (!self_) self_ = var;
    return var;
  }
  const at::Tensor& self() const { return tensors_[static_cast<size_t>(self_->index)]; }
  static bool any(const at::Tensor&) { return true; }
  bool same_size(const at::Tensor& tensor) const {
    return !self_ || tensor.sizes() == self().sizes();
  }
  // Sizes that broadcast with the first one's are wanted mostly.
  Var other() {
    if (!self_ || random_.chance(0.15)) return tensor(any);
    try {
      return tensor([&](const at::Tensor& candidate) {
        return candidate.dim() <= self().dim() &&
               std::equal(candidate.sizes().rbegin(), candidate.sizes().rend(),
                          self().sizes().rbegin(),
                          [](int64_t a, int64_t b) { return a == b || a == 1; });
      });
    } catch (Failed) {
      return tensor(any);
    }
  }
  Vars list(bool one_size) {
    Vars vars{one_size && !self_ ? tensor(any) : other()};
    for (int64_t n = 1 + random_.below(3); n > 1; --n)
      vars.push_back(random_.chance(0.2) ? vars.front()
                     : one_size
                         ? tensor([&](const at::Tensor& candidate) { return same_size(candidate); })
                         : other());
    length_ = vars.size();
    return vars;
  }
  Vars second_list() {
    Vars vars;
    for (size_t i = 0; i < std::max<size_t>(length_, 1); ++i)
      vars.push_back(tensor([&](const at::Tensor& candidate) { return same_size(candidate); }));
    return vars;
  }
  Vars indices() {
    Vars vars;
    const int64_t count = std::min<int64_t>(self().dim(), 1 + random_.below(2));
    if (count == 0) throw Failed();
    for (int64_t i = 0; i < count; ++i)
      vars.push_back(
          random_.chance(0.3) && i + 1 < count ? Var{} : tensor([](const at::Tensor& candidate) {
            return candidate.scalar_type() == at::kLong || candidate.scalar_type() == at::kBool;
          }));
    return vars;
  }

  void draw_tensor(char letter) {
    using at::Tensor;
    switch (letter) {
      case 'T':
        return add(other());
      case 'U':
        return add(tensor([](const Tensor& t) {
          return std::count(t.strides().begin(), t.strides().end(), 0) == 0;
        }));
      case 'F':
        return add(tensor([&](const Tensor& t) { return t.is_floating_point(); }));
      case 'C':
        return add(tensor([](const Tensor& t) { return t.is_complex(); }));
      case 'R':
        return add(tensor(
            [](const Tensor& t) { return !t.is_complex() && t.scalar_type() != at::kBool; }));
      case 'I':
        return add(tensor([](const Tensor& t) { return t.scalar_type() == at::kLong; }));
      case 'B':
        return add(tensor([&](const Tensor& t) {
          return t.scalar_type() == at::kBool && (!self_ || fits_self(t));
        }));
      case '=':
        return add(tensor([&](const Tensor& t) { return t.numel() == 1 || same_size(t); }));
      case '1':
        return add(tensor([](const Tensor& t) { return t.dim() == 1 && t.is_floating_point(); }));
      case '2':
        return add(tensor([](const Tensor& t) { return t.dim() == 2; }));
      case '@':
        return add(random_.chance(0.7) ? *self_ : tensor(any));
      case 'L':
        return add(Argument(list(false)));
      case 'M':
        return add(Argument(list(true)));
      case 'N':
        return add(Argument(length_ == 0 ? list(true) : second_list()));
      default:
        return add(Argument(indices()));
    }
  }
  bool fits_self(const at::Tensor& mask) const {
    return mask.dim() <= self().dim() &&
           std::equal(mask.sizes().rbegin(), mask.sizes().rend(), self().sizes().rbegin(),
                      [](int64_t a, int64_t b) { return a == b || a == 1; });
  }

  // ---- numbers ----------------------------------------------------------------------------------

  int64_t draw_axis() {
    if (self().dim() == 0) throw Failed();
    axis_ = random_.below(self().dim());
    return random_.chance(0.3) ? axis_ - self().dim() : axis_;
  }
  int64_t extent() const { return self().dim() == 0 ? 1 : self().size(axis_); }

  void draw_number(char letter) {
    switch (letter) {
      case 's':
        return random_.chance(0.5) ? add(c10::IValue(random_.below(3)))
                                   : add(c10::IValue(0.5 + static_cast<double>(random_.below(3))));
      case 'a':
        return add(c10::IValue(1 + random_.below(2)));
      case 'v':
        return add(c10::IValue(0.125));
      case 'p':
        return add(c10::IValue(0.5));
      case 'h':
        return add(c10::IValue(random_.below(1000000)));
      case 'k':
        return add(c10::IValue(1 + random_.below(4)));
      case 'd':
      case 'D':
        return add(c10::IValue(draw_axis()));
      case 'x':
        if (extent() == 0) throw Failed();
        return add(c10::IValue(random_.below(extent())));
      case 'b':
        begin_ = random_.below(extent());
        return add(c10::IValue(begin_));
      case 'e':
        return random_.chance(0.3)
                   ? add(c10::IValue())
                   : add(c10::IValue(begin_ + 1 + random_.below(extent() - begin_)));
      case 'w':
        return add(c10::IValue(1 + random_.below(std::max<int64_t>(1, extent() - begin_))));
      default:
        return add(c10::IValue(1 + random_.below(2)));  // j
    }
  }

  // ---- shapes -----------------------------------------------------------------------------------

  Sizes same_numel() {
    int64_t left = self().numel();
    if (left == 0) return self().sizes().vec();
    Sizes sizes;
    for (int64_t divisor : {2, 3, 4})
      if (left % divisor == 0 && random_.chance(0.5)) {
        sizes.push_back(divisor);
        left /= divisor;
      }
    if (left != 1 || random_.chance(0.2)) sizes.push_back(left);
    random_.shuffle(sizes);
    return sizes;
  }
  Sizes expanded() {
    Sizes sizes = self().sizes().vec();
    for (int64_t& size : sizes)
      if (size == 1 && random_.chance(0.7)) size = 2 + random_.below(2);
    if (sizes.size() < 4 && random_.chance(0.4)) sizes.insert(sizes.begin(), 1 + random_.below(3));
    return sizes;
  }
  Sizes any_sizes() {
    Sizes sizes;
    for (int64_t n = random_.below(4); n > 0; --n)
      sizes.push_back(random_.chance(0.05) ? 0 : 1 + random_.below(4));
    return sizes;
  }
  Sizes some_axes() {
    Sizes axes;
    for (int64_t i = 0; i < self().dim(); ++i)
      if (random_.chance(0.5)) axes.push_back(i);
    return axes;
  }
  Sizes permutation() {
    Sizes axes(static_cast<size_t>(self().dim()));
    std::iota(axes.begin(), axes.end(), 0);
    random_.shuffle(axes);
    return axes;
  }
  // Geometry within the storage; may overlap itself.
  void draw_geometry() {
    const int64_t room = static_cast<int64_t>(self().storage().nbytes() / self().itemsize());
    if (room == 0) throw Failed();
    const int64_t offset = random_.below(std::min<int64_t>(room, 4));
    int64_t left = room - offset - 1;
    Sizes sizes, strides;
    for (int64_t n = random_.below(3); n > 0; --n) {
      const int64_t stride = random_.below(4), size = 1 + random_.below(3);
      if (stride * (size - 1) > left) continue;
      left -= stride * (size - 1);
      sizes.push_back(size);
      strides.push_back(stride);
    }
    add(c10::IValue(sizes));
    add(c10::IValue(strides));
    add(c10::IValue(offset));
  }
  static int64_t code(at::ScalarType dtype) { return static_cast<int64_t>(dtype); }
  c10::IValue dtype_as_wide() {
    switch (self().itemsize()) {
      case 1:
        return random_.pick(Sizes{code(at::kByte), code(at::kChar), code(at::kShort)});
      case 2:
        return random_.pick(Sizes{code(at::kHalf), code(at::kShort), code(at::kByte)});
      case 4:
        return random_.pick(
            Sizes{code(at::kInt), code(at::kFloat), code(at::kShort), code(at::kDouble)});
      default:
        return random_.pick(Sizes{code(at::kLong), code(at::kDouble), code(at::kInt),
                                  code(at::kComplexFloat), code(at::kFloat)});
    }
  }

  void draw_shape(char letter) {
    switch (letter) {
      case 'z':
        return add(c10::IValue(same_numel()));
      case 'q':
        return add(c10::IValue(expanded()));
      case 'y':
        return add(c10::IValue(any_sizes()));
      case 'A':
        return add(c10::IValue(some_axes()));
      case 'P':
        return add(c10::IValue(permutation()));
      case 'G':
        return draw_geometry();
      case 'Y':
        return add(dtype_as_wide());
      default:  // Z
        return add(c10::IValue(
            random_.pick(Sizes{code(at::kFloat), code(at::kDouble), code(at::kLong),
                               code(at::kBool), code(at::kComplexFloat), code(at::kBFloat16)})));
    }
  }

  void draw(char letter) {
    static const std::string tensors = "TUFCRIB=12@LMNO", numbers = "savphkdDxbewj",
                             shapes = "zqyAPGYZ";
    if (tensors.find(letter) != std::string::npos) return draw_tensor(letter);
    if (numbers.find(letter) != std::string::npos) return draw_number(letter);
    if (shapes.find(letter) != std::string::npos) return draw_shape(letter);
    if (letter == 't' || letter == 'f') return add(c10::IValue(letter == 't'));
    add(c10::IValue());
  }

  Random& random_;
  const std::vector<at::Tensor>& tensors_;
  std::vector<Argument> arguments_;
  std::optional<Var> self_;
  size_t length_ = 0;
  int64_t axis_ = 0, begin_ = 0;
};

class Generator {
 public:
  Generator(uint64_t seed, const Options& options) : random_(seed), options_(options) {
    program_.grad = options.grad;
    program_.chains = options.chains;
  }

  Program operator()() {
    add_inputs();
    tensors_ = make_inputs(program_, 1);
    for (const at::Tensor& input : tensors_) originals_.push_back(input.data());
    const at::AutoGradMode mode(options_.grad);
    for (int tries = 0;
         static_cast<int>(program_.calls.size()) < options_.length && tries < 20 * options_.length;
         ++tries)
      add_call();
    return std::move(program_);
  }

 private:
  void add_inputs() {
    static const std::vector<Sizes> sizes = {{2, 3}, {3, 4}, {4},    {2, 3, 4}, {3},
                                             {1, 4}, {},     {3, 3}, {2, 1, 3}, {4, 4}};
    static const std::vector<at::ScalarType> others = {at::kDouble, at::kLong, at::kComplexFloat,
                                                       at::kBFloat16, at::kInt};
    const auto layout = [&] {
      return random_.chance(0.5) ? Layout::contiguous : static_cast<Layout>(random_.below(4));
    };
    program_.inputs.push_back({random_.pick(sizes), at::kFloat, layout(), options_.grad});
    program_.inputs.push_back({random_.pick(sizes), at::kFloat, layout(), false});
    program_.inputs.push_back({random_.pick(sizes), random_.pick(others), layout(), false});
    program_.inputs.push_back({random_.pick(sizes), at::kLong, Layout::contiguous, false});
    program_.inputs.push_back({random_.pick(sizes), at::kBool, Layout::contiguous, false});
    if (random_.chance(0.5))
      program_.inputs.push_back({random_.pick(sizes), at::kFloat, layout(), options_.grad});
    if (random_.chance(0.3)) {
      program_.inputs.push_back({random_.pick(sizes),
                                 random_.chance(0.5) ? at::kComplexFloat : at::kFloat, layout(),
                                 false});
      program_.inputs.push_back({{}, program_.inputs.back().dtype, Layout::alias, false});
    }
  }

  const Row& pick_row() {
    static const int total = [] {
      int sum = 0;
      for (const Row& row : rows()) sum += row.weight;
      return sum;
    }();
    int64_t left = random_.below(total);
    for (const Row& row : rows())
      if ((left -= row.weight) < 0) return row;
    return rows().front();
  }

  std::optional<Call> draw_call() {
    const Row& row = pick_row();
    try {
      Call call{row.op, {}, static_cast<int>(tensors_.size()), 0};
      call.arguments =
          call.op == "cpp::grad" ? gradient_arguments() : Drawer(random_, tensors_).draw(row);
      return call;
    } catch (Failed) {
      return std::nullopt;
    }
  }
  std::vector<Argument> gradient_arguments() {
    Vars sources, results;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (!tensors_[i].defined() || !tensors_[i].requires_grad()) continue;
      (tensors_[i].is_leaf() ? sources : results).push_back({static_cast<int>(i)});
    }
    if (sources.empty() || results.empty()) throw Failed();
    return {random_.pick(results), sources};
  }

  void add_call() {
    std::optional<Call> call = draw_call();
    if (!call) return;
    const size_t before = tensors_.size();
    const int64_t negative = negative_elements(before);
    const bool ran = execute(*call, tensors_);
    // LibTorch gives zeros another sign in `out=` with the negative bit when it has to resize it.
    if (negative_elements(before) != negative && call->op.find("out") != std::string::npos) return;
    if (undo_changed_inputs() && !random_.chance(0.02)) return;
    if (!ran && !random_.chance(0.1)) return;
    call->count = static_cast<int>(tensors_.size()) - call->first;
    // Growing shows memory nobody wrote: not comparable.
    const bool grown = ran && call->op.find("resize_") != std::string::npos;
    const Var resized = grown ? std::get<Var>(call->arguments[0]) : Var{};
    program_.calls.push_back(std::move(*call));
    if (grown) add_fill(resized);
  }
  // In those of the first `size` tensors that have the negative bit.
  int64_t negative_elements(size_t size) const {
    int64_t count = 0;
    for (size_t i = 0; i < size; ++i)
      if (tensors_[i].defined() && tensors_[i].is_neg()) count += tensors_[i].numel();
    return count;
  }
  // A capture refuses to change the sizes or the dtype of an input.
  bool undo_changed_inputs() {
    bool changed = false;
    for (size_t i = 0; i < originals_.size(); ++i) {
      at::Tensor& input = tensors_[i];
      if (!input.defined() ||
          (input.sizes() == originals_[i].sizes() && input.dtype() == originals_[i].dtype()))
        continue;
      if (input.requires_grad())
        input = originals_[i];  // LibTorch allows no data of another kind here
      else
        input.set_data(originals_[i]);
      changed = true;
    }
    return changed;
  }
  void add_fill(Var var) {
    Call fill{"aten::fill_.Scalar",
              {var, c10::IValue(1 + random_.below(3))},
              static_cast<int>(tensors_.size()),
              0};
    execute(fill, tensors_);
    fill.count = static_cast<int>(tensors_.size()) - fill.first;
    program_.calls.push_back(std::move(fill));
  }

  Random random_;
  const Options options_;
  Program program_;
  std::vector<at::Tensor> tensors_;
  std::vector<at::Tensor> originals_;  // the inputs as they came
};

}  // namespace

Program generate(uint64_t seed, const Options& options) { return Generator(seed, options)(); }

}  // namespace flashlight::fuzz
