#include "benchmarks/cpp/subjects.h"

#include <memory>
#include <utility>

#include "benchmarks/cpp/handwritten.h"
#include "examples/objectives/activations.h"

namespace benchmarks {
namespace {

using composit::Array;
using composit::DType;
using objectives::Problem;

constexpr objectives::Wishart kWishart = {.gamma = 1.5, .m = 2};

using In = std::vector<const void*>;
using Out = std::vector<void*>;

template <class T>
const T* in(const In& inputs, size_t i) {
  return static_cast<const T*>(inputs[i]);
}
template <class T>
T* out(const Out& outputs, size_t i) {
  return static_cast<T*>(outputs[i]);
}

// make(T()) for the T that `dtype` is.
template <class Make>
Subject with_element(DType dtype, const Make& make) {
  return dtype == DType::float32 ? make(float()) : make(double());
}

template <class T>
Subject gmm_subject(const objectives::GmmSizes& sizes, Problem problem) {
  const auto parameters = [](const In& i) {
    return handwritten::GmmParameters<const T>{in<T>(i, 0), in<T>(i, 1), in<T>(i, 2)};
  };
  return {std::move(problem),
          [=](const In& i, const Out& o) {
            *out<T>(o, 0) = handwritten::gmm(sizes, parameters(i), in<T>(i, 3), kWishart);
          },
          [=](const In& i, const Out& o) {
            *out<T>(o, 0) =
                handwritten::gmm_gradient<T>(sizes, parameters(i), in<T>(i, 3), kWishart,
                                             {out<T>(o, 1), out<T>(o, 2), out<T>(o, 3)});
          }};
}

template <class T>
Subject lstm_subject(const objectives::LstmSizes& sizes, Problem problem) {
  const auto parameters = [](const In& i) {
    return handwritten::LstmParameters<const T>{in<T>(i, 0), in<T>(i, 1)};
  };
  return {std::move(problem),
          [=](const In& i, const Out& o) {
            *out<T>(o, 0) = handwritten::lstm(sizes, parameters(i), in<T>(i, 2), in<T>(i, 3));
          },
          [=](const In& i, const Out& o) {
            *out<T>(o, 0) = handwritten::lstm_gradient<T>(
                sizes, parameters(i), in<T>(i, 2), in<T>(i, 3), {out<T>(o, 1), out<T>(o, 2)});
          }};
}

template <class T>
Subject bundle_subject(const objectives::BundleSizes& sizes, Problem problem) {
  const auto bundle = [](const In& i) {
    return handwritten::Bundle<T>{in<T>(i, 0),       in<T>(i, 1),       in<T>(i, 2),
                                  in<int64_t>(i, 3), in<int64_t>(i, 4), in<T>(i, 5)};
  };
  return {std::move(problem),
          [=](const In& i, const Out& o) {
            handwritten::bundle_adjustment<T>(sizes.observations, bundle(i),
                                              {out<T>(o, 0), out<T>(o, 1)});
          },
          [=](const In& i, const Out& o) {
            handwritten::bundle_adjustment_jacobian<T>(sizes.observations, bundle(i),
                                                       {out<T>(o, 0), out<T>(o, 1)},
                                                       {out<T>(o, 2), out<T>(o, 3)});
          }};
}

template <class T>
Subject hand_subject(const objectives::HandSizes& sizes, Problem problem) {
  const auto hand = [](const In& i) {
    return handwritten::Hand<T>{in<T>(i, 1), in<T>(i, 2),       in<T>(i, 3),
                                in<T>(i, 4), in<int64_t>(i, 5), in<T>(i, 6)};
  };
  return {std::move(problem),
          [=](const In& i, const Out& o) {
            *out<T>(o, 0) = handwritten::hand_tracking(sizes.points, in<T>(i, 0), hand(i));
          },
          [=](const In& i, const Out& o) {
            *out<T>(o, 0) = handwritten::hand_tracking_gradient(sizes.points, in<T>(i, 0), hand(i),
                                                                out<T>(o, 1));
          }};
}

template <class T>
Subject sqrl_subject(const objectives::SqrlSizes& sizes, Problem problem) {
  return {std::move(problem),
          [=](const In& i, const Out& o) { handwritten::sqrl(sizes, in<T>(i, 0), out<T>(o, 0)); },
          [=](const In& i, const Out& o) {
            handwritten::sqrl_vjp(sizes, in<T>(i, 0), in<T>(i, 1), out<T>(o, 0));
          }};
}

template <class T>
Subject activation_subject(int64_t n, Problem problem, void (*function)(int64_t, const T*, T*),
                           void (*vjp)(int64_t, const T*, const T*, T*)) {
  return {std::move(problem),
          [=](const In& i, const Out& o) { function(n, in<T>(i, 0), out<T>(o, 0)); },
          [=](const In& i, const Out& o) { vjp(n, in<T>(i, 0), in<T>(i, 1), out<T>(o, 0)); }};
}

}  // namespace

Sizes measured_sizes() {
  return {.gmm = {{64, 200, 1000}, {64, 200, 10000}},
          .lstm = {{2, 1024, 14}},
          .bundle_adjustment = {{49, 7776, 31843}},
          .hand_tracking = {{544, 192}},
          .sqrl = {{0, 16, 16}, {1000, 16, 16}},
          .activations = {1 << 20}};
}

Sizes small_sizes() {
  return {.gmm = {{5, 3, 67}, {1, 1, 2}, {2, 3, 1030}, {66, 2, 70}},
          .lstm = {{2, 5, 3}, {1, 2, 1}},
          .bundle_adjustment = {{3, 5, 17}},
          .hand_tracking = {{9, 5}},
          .sqrl = {{0, 3, 4}, {20, 5, 7}},
          .activations = {133}};
}

std::vector<Subject> subjects(const Sizes& sizes, std::optional<DType> dtype) {
  const DType wide = dtype.value_or(DType::float64), narrow = dtype.value_or(DType::float32);
  std::vector<Subject> list;
  for (const auto& s : sizes.gmm)
    list.push_back(with_element(wide, [&]<class T>(T) {
      return gmm_subject<T>(s, objectives::gmm_problem(s, wide, kWishart));
    }));
  for (const auto& s : sizes.lstm)
    list.push_back(with_element(
        wide, [&]<class T>(T) { return lstm_subject<T>(s, objectives::lstm_problem(s, wide)); }));
  for (const auto& s : sizes.bundle_adjustment)
    list.push_back(with_element(wide, [&]<class T>(T) {
      return bundle_subject<T>(s, objectives::bundle_adjustment_problem(s, wide));
    }));
  for (const auto& s : sizes.hand_tracking)
    list.push_back(with_element(wide, [&]<class T>(T) {
      return hand_subject<T>(s, objectives::hand_tracking_problem(s, wide));
    }));
  for (const auto& s : sizes.sqrl)
    list.push_back(with_element(narrow, [&]<class T>(T) {
      return sqrl_subject<T>(s, objectives::sqrl_problem(s, narrow));
    }));
  for (const int64_t n : sizes.activations) {
    list.push_back(with_element(narrow, [&]<class T>(T) {
      return activation_subject<T>(n, objectives::relu3_problem(n, narrow), handwritten::relu3<T>,
                                   handwritten::relu3_vjp<T>);
    }));
    list.push_back(with_element(narrow, [&]<class T>(T) {
      return activation_subject<T>(n, objectives::gelu_problem(n, narrow), handwritten::gelu<T>,
                                   handwritten::gelu_vjp<T>);
    }));
    if (narrow != DType::float32) continue;
    list.push_back(activation_subject<float>(n, objectives::gelu_problem(n),
                                             handwritten::gelu_in_vectors,
                                             handwritten::gelu_vjp_in_vectors));
    list.back().problem.name += "_in_vectors";
  }
  return list;
}

std::vector<Array> call(const Kernel& kernel, const composit::Graph& graph,
                        const std::vector<Array>& inputs) {
  In in;
  for (const Array& input : inputs) in.push_back(input.data());
  Out out;
  std::vector<Array> results;
  for (const composit::LazyTensor& output : graph.outputs()) {
    const composit::Type type = composit::tensor_type(output.type().dtype, output.type().sizes);
    const std::shared_ptr<std::byte[]> memory(new std::byte[static_cast<size_t>(type.nbytes())]);
    out.push_back(memory.get());
    results.emplace_back(type, memory, memory.get());
  }
  kernel(in, out);
  return results;
}

}  // namespace benchmarks
