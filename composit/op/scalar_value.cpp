#include "composit/op/scalar_value.h"

#include <cstring>
#include <string>

#include "composit/ir/error.h"
#include "composit/op/compute_type.h"
#include "composit/op/scalar_templates.h"

namespace composit {
namespace {

// result[i] = f(x[i]...). In groups of a fixed size, which compilers turn into vector instructions
// also where they do not for a count that is unknown.
template <class F, class R, class... X>
void map(size_t count, F f, R* __restrict result, const X* __restrict... x) {
  constexpr size_t kGroup = 16;
  size_t i = 0;
  for (; i + kGroup <= count; i += kGroup)
    for (size_t j = 0; j < kGroup; ++j) result[i + j] = f(x[i + j]...);
  for (; i < count; ++i) result[i] = f(x[i]...);
}

template <class T, class F>
void map_function(size_t count, const void* const* arguments, void* result, F f) {
  if constexpr (std::is_invocable_v<F, T>) {
    map(count, f, static_cast<std::invoke_result_t<F, T>*>(result),
        static_cast<const T*>(arguments[0]));
  } else if constexpr (std::is_invocable_v<F, T, T>) {
    map(count, f, static_cast<std::invoke_result_t<F, T, T>*>(result),
        static_cast<const T*>(arguments[0]), static_cast<const T*>(arguments[1]));
  } else {
    COMPOSIT_ASSERT(false, "a function of a dtype that has none");
  }
}

template <class T>
void apply_to(Function function, size_t count, const void* const* arguments, void* result) {
  // The lambda exists for those T only that the function has a template for.
#define COMPOSIT_CASE(name)       \
  case Function::name:            \
    return map_function<T>(       \
        count, arguments, result, \
        [](auto... x) requires requires { scalar::name(x...); } { return scalar::name(x...); });
  switch (function) {
    COMPOSIT_FOR_EACH_NAMED_FUNCTION(COMPOSIT_CASE, COMPOSIT_CASE)
    COMPOSIT_CASE(neg)
    COMPOSIT_CASE(add)
    COMPOSIT_CASE(sub)
    COMPOSIT_CASE(mul)
    COMPOSIT_CASE(div)
    COMPOSIT_CASE(lt)
    COMPOSIT_CASE(le)
    COMPOSIT_CASE(gt)
    COMPOSIT_CASE(ge)
    COMPOSIT_CASE(eq)
    COMPOSIT_CASE(ne)
    COMPOSIT_CASE(logical_and)
    COMPOSIT_CASE(logical_or)
    COMPOSIT_CASE(logical_not)
    default:
      COMPOSIT_ASSERT(false, "select and cast have functions of their own");
  }
#undef COMPOSIT_CASE
}

// Float functions of the 16-bit floats are those of float, rounded later; but their neighbours are
// their own.
template <class S>
void apply_next_after(size_t count, const void* const* arguments, void* result) {
  map_function<float>(count, arguments, result,
                      [](float x, float y) -> float { return fl::nextafter(S(x), S(y)); });
}

void wrap(DType dtype, size_t count, int64_t* x) {
  with_storage(dtype, [&]<class S>(std::type_identity<S>) {
    if constexpr (std::is_integral_v<S> && sizeof(S) < sizeof(int64_t))
      for (size_t i = 0; i < count; ++i) x[i] = static_cast<S>(x[i]);
  });
}

bool is_narrow_integer(DType dtype) {
  return with_storage(dtype, []<class S>(std::type_identity<S>) {
    return std::is_integral_v<S> && !std::is_same_v<S, Compute<S>>;
  });
}

bool gives_bool(Function function) {
  const FunctionDType kind = info_of(function).dtype;
  return kind == FunctionDType::comparison || kind == FunctionDType::order;
}

}  // namespace

void apply(Function function, DType operand, size_t count, const void* const* arguments,
           void* result) {
  if (function == Function::nextafter && operand == DType::float16)
    return apply_next_after<Half>(count, arguments, result);
  if (function == Function::nextafter && operand == DType::bfloat16)
    return apply_next_after<BFloat16>(count, arguments, result);
  with_compute(operand, [&]<class T>(std::type_identity<T>) {
    apply_to<T>(function, count, arguments, result);
  });
  if (is_narrow_integer(operand) && !gives_bool(function))
    wrap(operand, count, static_cast<int64_t*>(result));
}

void apply_cast(DType from, DType to, size_t count, const void* argument, void* result) {
  with_compute(from, [&]<class T>(std::type_identity<T>) {
    with_storage(to, [&]<class S>(std::type_identity<S>) {
      map(
          count, [](T x) { return to_compute(convert<S>(x)); }, static_cast<Compute<S>*>(result),
          static_cast<const T*>(argument));
    });
  });
}

void apply_select(DType dtype, size_t count, const bool* condition, const void* x, const void* y,
                  void* result) {
  with_compute(dtype, [&]<class T>(std::type_identity<T>) {
    map(
        count, [](bool taken, T yes, T no) { return taken ? yes : no; }, static_cast<T*>(result),
        condition, static_cast<const T*>(x), static_cast<const T*>(y));
  });
}

bool divides_integers(Function function, DType operand) {
  switch (function) {
    case Function::floor_divide:
    case Function::trunc_divide:
    case Function::remainder:
    case Function::fmod:
      return !is_floating_point(operand);
    default:
      return false;
  }
}

}  // namespace composit
