// Forwards once, keeping the gates of each step, then backwards through what was kept.
#include <algorithm>
#include <cmath>
#include <vector>

#include "benchmarks/cpp/handwritten.h"

// The next loop does not write what it reads by another name.
#ifdef __clang__
#define HANDWRITTEN_NO_ALIASES _Pragma("clang loop vectorize(assume_safety)")
#else
#define HANDWRITTEN_NO_ALIASES _Pragma("GCC ivdep")
#endif

namespace handwritten {
namespace {

template <class T>
T sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}

// The [8, h] of a layer.
template <class T>
struct Gates {
  Gates(T* layer, int64_t h)
      : forget(layer), in(layer + h), out(layer + 2 * h), change(layer + 3 * h) {}
  T *forget, *in, *out, *change;
};
template <class T>
struct Layer {
  Layer(T* layer, int64_t h) : weights(layer, h), biases(layer + 4 * h, h) {}
  Gates<T> weights, biases;
};

// The values of one layer in one step that are kept: its four gates, and these.
template <class T>
struct Step {
  static constexpr int64_t kArrays = 7;
  Step(T* memory, int64_t h)
      : gates(memory, h), cell(memory + 4 * h), tanh_cell(cell + h), hidden(tanh_cell + h) {}
  Gates<T> gates;
  T *cell, *tanh_cell, *hidden;
};

template <class T>
struct State {
  const T *hidden, *cell;
};

template <class T>
void forward(int64_t h, const Layer<const T>& layer, const State<T>& before, const T* x,
             const Step<T>& step) {
  const auto& [weights, biases] = layer;
  for (int64_t i = 0; i < h; ++i) {
    const T forget = sigmoid(x[i] * weights.forget[i] + biases.forget[i]);
    const T in = sigmoid(before.hidden[i] * weights.in[i] + biases.in[i]);
    const T out = sigmoid(x[i] * weights.out[i] + biases.out[i]);
    const T change = std::tanh(before.hidden[i] * weights.change[i] + biases.change[i]);
    step.gates.forget[i] = forget;
    step.gates.in[i] = in;
    step.gates.out[i] = out;
    step.gates.change[i] = change;
    step.cell[i] = before.cell[i] * forget + in * change;
    step.tanh_cell[i] = std::tanh(step.cell[i]);
    step.hidden[i] = out * step.tanh_cell[i];
  }
}

// by_x: the cotangent of step.hidden on entry, of x on return. by_hidden and by_cell: from the step
// behind on entry, for the step before on return.
template <class T>
void backward(int64_t h, const Layer<const T>& layer, const State<T>& before, const T* x,
              const Step<T>& step, const Layer<T>& gradient, T* by_x, T* by_hidden, T* by_cell) {
  const auto& weights = layer.weights;
  HANDWRITTEN_NO_ALIASES
  for (int64_t i = 0; i < h; ++i) {
    const T forget = step.gates.forget[i], in = step.gates.in[i], out = step.gates.out[i];
    const T change = step.gates.change[i], tanh_cell = step.tanh_cell[i];
    const T hidden = by_hidden[i] + by_x[i];
    const T cell = by_cell[i] + hidden * out * (1 - tanh_cell * tanh_cell);
    const T by_forget = cell * before.cell[i] * forget * (1 - forget);
    const T by_in = cell * change * in * (1 - in);
    const T by_out = hidden * tanh_cell * out * (1 - out);
    const T by_change = cell * in * (1 - change * change);
    by_cell[i] = cell * forget;
    by_hidden[i] = by_in * weights.in[i] + by_change * weights.change[i];
    by_x[i] = by_forget * weights.forget[i] + by_out * weights.out[i];
    gradient.weights.forget[i] += by_forget * x[i];
    gradient.weights.in[i] += by_in * before.hidden[i];
    gradient.weights.out[i] += by_out * x[i];
    gradient.weights.change[i] += by_change * before.hidden[i];
    gradient.biases.forget[i] += by_forget;
    gradient.biases.in[i] += by_in;
    gradient.biases.out[i] += by_out;
    gradient.biases.change[i] += by_change;
  }
}

template <class T>
class Lstm {
 public:
  // `kept` steps are held at a time: all of them for `gradient`, two for `loss`.
  Lstm(const LstmSizes& sizes, const LstmParameters<const T>& parameters, const T* state,
       const T* sequence, int64_t kept)
      : sizes_(sizes),
        parameters_(parameters),
        state_(state),
        sequence_(sequence),
        kept_(kept),
        steps_(static_cast<size_t>(kept * sizes.layers * Step<T>::kArrays * h_)),
        predictions_(static_cast<size_t>(kept * h_)),
        first_(static_cast<size_t>(h_)) {}

  T loss() {
    T total = 0;
    for (int64_t t = 0; t < count_; ++t) total += forward_step(t);
    return -total * scale_;
  }

  T gradient(const LstmParameters<T>& gradient) {
    std::fill_n(gradient.layers, sizes_.layers * 8 * h_, T(0));
    std::fill_n(gradient.ends, 3 * h_, T(0));
    const T value = loss();
    std::vector<T> by_hidden(static_cast<size_t>(sizes_.layers * h_)), by_cell = by_hidden;
    std::vector<T> flow(static_cast<size_t>(h_));
    for (int64_t t = count_ - 1; t >= 0; --t) {
      backward_ends(t, gradient.ends, flow.data());
      for (int64_t layer = sizes_.layers - 1; layer >= 0; --layer)
        backward(h_, layer_at(layer), before(t, layer), input(t, layer), step(t, layer),
                 Layer<T>(gradient.layers + layer * 8 * h_, h_), flow.data(),
                 &by_hidden[static_cast<size_t>(layer * h_)],
                 &by_cell[static_cast<size_t>(layer * h_)]);
      for (int64_t i = 0; i < h_; ++i) gradient.ends[i] += flow[static_cast<size_t>(i)] * x(t)[i];
    }
    return value;
  }

 private:
  const T* x(int64_t t) const { return sequence_ + t * h_; }
  Layer<const T> layer_at(int64_t layer) const { return {parameters_.layers + layer * 8 * h_, h_}; }
  Step<T> step(int64_t t, int64_t layer) {
    const int64_t place = (t % kept_) * sizes_.layers + layer;
    return {&steps_[static_cast<size_t>(place * Step<T>::kArrays * h_)], h_};
  }
  State<T> before(int64_t t, int64_t layer) {
    if (t == 0) return {state_ + 2 * layer * h_, state_ + (2 * layer + 1) * h_};
    const Step<T> last = step(t - 1, layer);
    return {last.hidden, last.cell};
  }
  const T* input(int64_t t, int64_t layer) {
    if (layer > 0) return step(t, layer - 1).hidden;
    for (int64_t i = 0; i < h_; ++i) first_[static_cast<size_t>(i)] = x(t)[i] * parameters_.ends[i];
    return first_.data();
  }
  T* prediction(int64_t t) { return &predictions_[static_cast<size_t>((t % kept_) * h_)]; }

  // The log-likelihood of character t + 1; `prediction` becomes its derivative by the prediction.
  T forward_step(int64_t t) {
    for (int64_t layer = 0; layer < sizes_.layers; ++layer)
      forward(h_, layer_at(layer), before(t, layer), input(t, layer), step(t, layer));
    const T* hidden = step(t, sizes_.layers - 1).hidden;
    const T *weight = parameters_.ends + h_, *bias = weight + h_, *gold = x(t + 1);
    T* prediction = this->prediction(t);
    T gold_sum = 0, chosen = 0, sum = 2;
    for (int64_t i = 0; i < h_; ++i) {
      const T y = hidden[i] * weight[i] + bias[i];
      prediction[i] = std::exp(y);
      gold_sum += gold[i];
      chosen += gold[i] * y;
      sum += prediction[i];
    }
    for (int64_t i = 0; i < h_; ++i) prediction[i] = gold[i] - gold_sum / sum * prediction[i];
    return chosen - gold_sum * std::log(sum);
  }

  // flow: the cotangent of the topmost layer's hidden.
  void backward_ends(int64_t t, T* gradient, T* flow) {
    const T *hidden = step(t, sizes_.layers - 1).hidden, *prediction = this->prediction(t);
    const T* weight = parameters_.ends + h_;
    HANDWRITTEN_NO_ALIASES
    for (int64_t i = 0; i < h_; ++i) {
      const T by_prediction = -scale_ * prediction[i];
      gradient[h_ + i] += by_prediction * hidden[i];
      gradient[2 * h_ + i] += by_prediction;
      flow[i] = by_prediction * weight[i];
    }
  }

  LstmSizes sizes_;
  LstmParameters<const T> parameters_;
  const T *state_, *sequence_;
  int64_t kept_, h_ = sizes_.hidden, count_ = sizes_.characters - 1;
  T scale_ = 1 / static_cast<T>(count_ * h_);
  std::vector<T> steps_;        // [kept, layers, Step::kArrays, h]
  std::vector<T> predictions_;  // [kept, h]
  std::vector<T> first_;        // [h]: what the lowest layer gets
};

}  // namespace

template <class T>
T lstm(const LstmSizes& sizes, const LstmParameters<const T>& parameters, const T* state,
       const T* sequence) {
  return Lstm<T>(sizes, parameters, state, sequence, 2).loss();
}

template <class T>
T lstm_gradient(const LstmSizes& sizes, const LstmParameters<const T>& parameters, const T* state,
                const T* sequence, const LstmParameters<T>& gradient) {
  return Lstm<T>(sizes, parameters, state, sequence, sizes.characters).gradient(gradient);
}

template float lstm(const LstmSizes&, const LstmParameters<const float>&, const float*,
                    const float*);
template double lstm(const LstmSizes&, const LstmParameters<const double>&, const double*,
                     const double*);
template float lstm_gradient(const LstmSizes&, const LstmParameters<const float>&, const float*,
                             const float*, const LstmParameters<float>&);
template double lstm_gradient(const LstmSizes&, const LstmParameters<const double>&, const double*,
                              const double*, const LstmParameters<double>&);

}  // namespace handwritten
