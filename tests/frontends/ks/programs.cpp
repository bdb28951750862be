#include "tests/frontends/ks/programs.h"

#include <cmath>

namespace flashlight::ks::test {
namespace {

// An LSTM of one cell: sigmoid gates of input and forget, tanh of the candidate; state (c, h).
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
Numbers lstm_by_hand(const Numbers& w, const Numbers& xs) {
  double c = 0, h = 0;
  for (const double x : xs) {
    const auto gate = [&](int k) { return w[3 * k] * x + w[3 * k + 1] * h + w[3 * k + 2]; };
    c = sigmoid(gate(1)) * c + sigmoid(gate(0)) * std::tanh(gate(3));
    h = sigmoid(gate(2)) * std::tanh(c);
  }
  return {c, h};
}

constexpr const char* kLstm = R"(
(def sigmoid Float (x : Float) (div 1.0 (add 1.0 (exp (neg x)))))
(def gate Float ((w : Tensor 2 Float) (k : Integer) (x : Float) (h : Float))
  (add (index (tuple k 2) w) (add (mul (index (tuple k 0) w) x) (mul (index (tuple k 1) w) h))))
(def lstm (Tuple Float Float) ((w : Tensor 2 Float) (xs : Vec Float))
  (fold (lam (t : Tuple (Tuple Float Float) Float)
          (let ((state x) t)
          (let ((c h) state)
          (let (next (add (mul (sigmoid (gate w 1 x h)) c)
                          (mul (sigmoid (gate w 0 x h)) (tanh (gate w 3 x h)))))
            (tuple next (mul (sigmoid (gate w 2 x h)) (tanh next)))))))
        (tuple 0.0 0.0) xs)))";

// The log likelihood of points x under a mixture: weights alpha, means mu, inverse widths exp(q).
double gmm_by_hand(const Numbers& x, const Numbers& alpha, const Numbers& mu, const Numbers& q) {
  double total = 0;
  for (size_t n = 0; n < x.size() / 2; ++n) {
    double sum = 0;
    for (size_t k = 0; k < alpha.size(); ++k) {
      double square = 0;
      for (size_t d = 0; d < 2; ++d) {
        const double z = std::exp(q[2 * k + d]) * (x[2 * n + d] - mu[2 * k + d]);
        square += z * z;
      }
      sum += std::exp(alpha[k] + q[2 * k] + q[2 * k + 1] - square / 2);
    }
    total += std::log(sum);
  }
  double weights = 0;
  for (const double a : alpha) weights += std::exp(a);
  return total - static_cast<double>(x.size() / 2) * std::log(weights);
}

constexpr const char* kGmm = R"(
(def logsumexp Float (v : Vec Float)
  (let (m (max v)) (add m (log (sum (map (lam (x : Float) (exp (sub x m))) v))))))
(def square Float (x : Float) (mul x x))
(def gmm Float ((x : Tensor 2 Float) (alpha : Vec Float) (mu : Tensor 2 Float) (q : Tensor 2 Float))
  (let ((n d) (size x))
  (let (k (size alpha))
    (sub (sumbuild n (lam (i : Integer)
           (logsumexp (build k (lam (j : Integer)
             (add (index j alpha)
               (sub (sumbuild d (lam (l : Integer) (index (tuple j l) q)))
                 (mul 0.5 (sumbuild d (lam (l : Integer)
                   (square (mul (exp (index (tuple j l) q))
                                (sub (index (tuple i l) x) (index (tuple j l) mu))))))))))))))
         (mul (to_float n) (logsumexp alpha)))))))";

}  // namespace

const std::vector<TestProgram>& test_programs() {
  static const Numbers x = {.5, -1, 1.5, .25, -.75, 2}, alpha = {.3, -.2}, mu = {0, .5, 1, -1},
                       q = {.1, -.3, .2, .4};
  static const Numbers w = {.5, -.3, .1, .2, .4, -.1, .7, .1, .3, -.6, .2, .05}, xs = {1, -.5, .25};
  static const std::vector<TestProgram> programs = {
      {"relu3",
       R"(
(def relu3 Float (x : Float)
  (if (lt x 0.0) 0.0 (if (lt x 1.0) (div (mul x (mul x x)) 3.0) (sub x (div 2.0 3.0)))))
(def f (Vec Float) (v : Vec Float) (map (lam (x : Float) (relu3 x)) v)))",
       "f",
       {vec({-1, .5, 2})},
       {0, .125 / 3, 4. / 3}},
      {"dot",
       R"(
(def dot Float ((a : Vec Float) (b : Vec Float))
  (sumbuild (size a) (lam (i : Integer) (mul (index i a) (index i b))))))",
       "dot",
       {vec({1, 2, 3}), vec({4, 5, 6})},
       {32}},
      {"product",
       R"(
(def prod Float (v : Vec Float)
  (fold (lam (t : Tuple Float Float) (let ((acc x) t) (mul acc x))) 1.0 v)))",
       "prod",
       {vec({2, 3, -4})},
       {-24}},
      {"matrix_times_vector",
       R"(
(def f (Vec Float) ((m : Tensor 2 Float) (v : Vec Float))
  (let ((r c) (size m))
    (build r (lam (i : Integer)
      (sumbuild c (lam (j : Integer) (mul (index (tuple i j) m) (index j v)))))))))",
       "f",
       {matrix(2, {1, 2, 3, 4, 5, 6}), vec({1, -1, 2})},
       {5, 11}},
      {"differences",
       R"(
(def f (Vec Float) (v : Vec Float)
  (build (size v) (lam (i : Integer)
    (if (eq i 0) 0.0 (sub (index i v) (index (sub i 1) v)))))))",
       "f",
       {vec({1, 3, 6, 10})},
       {0, 2, 3, 4}},
      {"recursion_that_ends",
       R"(
(def power Float ((x : Float) (n : Integer)) (if (eq n 0) 1.0 (mul x (power x (sub n 1))))))",
       "power",
       {number(2), integer(5)},
       {32}},
      {"a_fold_for_each_row",
       R"(
(def f (Vec Float) (m : Tensor 2 Float)
  (let ((r c) (size m))
    (build r (lam (i : Integer)
      (fold (lam (t : Tuple Float Float) (mul (get$1$2 t) (get$2$2 t))) 1.0
            (build c (lam (j : Integer) (index (tuple i j) m)))))))))",
       "f",
       {matrix(2, {1, 2, 3, 4, 5, 6})},
       {6, 120}},
      {"tuples",
       R"(
(def f (Tuple Float (Vec (Tuple Float Float))) ((t : Tuple Float (Vec Float)) (b : Float))
  (let ((a v) t) (tuple (mul a b) (map (lam (x : Float) (tuple (mul a x) (exp x))) v)))))",
       "f",
       {number(3), vec({1, 2}), number(.5)},
       {1.5, 3, 6, std::exp(1.), std::exp(2.)}},
      {"overloads",
       R"(
(def twice Float (x : Float) (mul 2.0 x))
(def twice (Vec Float) (v : Vec Float) (map (lam (x : Float) (twice x)) v))
(def f Float ((x : Float) (v : Vec Float)) (add ([twice Float] x) (sum (twice v)))))",
       "f",
       {number(1), vec({1, 2})},
       {8}},
      {"functions_of_tensors",
       R"(
(def f Float ((x : Float) (v : Vec Float))
  (let (d (diag 2 2 v))
  (let (w (add (deltaVec 2 1 x) (constVec 2 x)))
    (add (index (tuple 1 1) d) (ts_dot (ts_scale x w) (Vec_init 1.0 x)))))))",
       "f",
       {number(3), vec({5, 7})},
       {7 + 3 * 3 + 3 * 6 * 3}},
      {"functions_of_numbers",
       R"(
(def f (Vec Float) (x : Float)
  (Vec_init (exp x) (log x) (sqrt x) (sin x) (cos x) (tanh x) (erf x) (cosh x) (lgamma x) (abs x)
            (pow x 3) (max x 1.0) (min x 1.0) (atan2 x 2.0) (neg x) (mul x (pi)))))",
       "f",
       {number(1.5)},
       {std::exp(1.5), std::log(1.5), std::sqrt(1.5), std::sin(1.5), std::cos(1.5), std::tanh(1.5),
        std::erf(1.5), std::cosh(1.5), std::lgamma(1.5), 1.5, 3.375, 1.5, 1, std::atan2(1.5, 2),
        -1.5, 1.5 * 3.14159265358979323846}},
      {"bools",
       R"(
(def f Float ((x : Float) (y : Float))
  (if (and (gt x 0.0) (or (lte y 1.0) (not (eq x y)))) (mul x y) (bool_to_float (gte x y)))))",
       "f",
       {number(2), number(.5)},
       {1}},
      {"asserts_and_prints_none",
       R"(
(def f Float (v : Vec Float) (assert (eq (size v) 3) (index 2 v))))",
       "f",
       {vec({1, 2, 3})},
       {3}},
      {"derivatives_in_programs",
       R"(
(def g Float (t : Tuple Float Float) (let ((x y) t) (mul x (sin y))))
(def f Float ((x : Float) (v : Vec Float))
  (sumbuild (size v) (lam (i : Integer)
    (let ((dx dy) ([rev g] (tuple x (index i v)) 1.0)) (add dx dy))))))",
       "f",
       {number(2), vec({.5, 1})},
       {std::sin(.5) + 2 * std::cos(.5) + std::sin(1.) + 2 * std::cos(1.)}},
      {"rules",
       R"(
(rule "mul2" (v : Float) (mul v 2.0) (add v (add v 1.0)))
(rule "sum of squares" (v : Vec Float)
  (sumbuild (size v) (lam (k : Integer) (mul (index k v) (index k v)))) (ts_dot v (ts_scale 10.0 v)))
(def f Float ((x : Float) (y : Float))
  (add (mul (mul x y) 2.0) (mul 2.0 x)))
(def g Float ((n : Integer) (w : Vec Float))
  (add (sumbuild (size w) (lam (i : Integer) (mul (index i w) (index i w))))
       (sumbuild n (lam (i : Integer) (mul (index i w) (index i w))))))
(def h Float ((x : Float) (w : Vec Float)) (add (f x 3.0) (g 1 w))))",
       "h",
       {number(2), vec({1, 2})},
       {6 + 7 + 4 + 50 + 1}},
      {"built_from_sparse",
       R"(
(def f (Tuple (Vec Float) (Tensor 2 Float)) (v : Vec Float)
  (buildFromSparseTupled (tuple (constVec 4 (tuple)) (constVec (tuple 2 3) (tuple))) (size v)
    (lam (i : Integer)
      (tuple (tuple (div i 2) (index i v))
             (tuple (tuple 1 (if (eq i 0) 2 1)) (mul (index i v) (index i v))))))))",
       "f",
       {vec({1, 2, 4})},
       {3, 4, 0, 0, 0, 0, 0, 0, 20, 1}},
      {"built_from_sparse_for_each_row",
       R"(
(def f (Vec (Vec (Tuple Float (Vec Float)))) (m : Tensor 2 Float)
  (let ((r c) (size m))
    (build r (lam (i : Integer)
      (buildFromSparse (constVec 2 (tuple (tuple) (constVec 2 (tuple)))) c
        (lam (j : Integer)
          (let (x (index (tuple i j) m))
            (tuple (if (lt j i) 0 1) (tuple x (Vec_init x (mul 2.0 x))))))))))))",
       "f",
       {matrix(2, {1, 2, 3, 4})},
       {0, 3, 3, 4, 0, 0, 3, 6, 3, 6, 4, 8}},
      {"unzip_and_shape",
       R"(
(def pairs (Vec (Tuple Float Float)) (v : Vec Float)
  (map (lam (x : Float) (tuple x (mul x x))) v))
(def f Float (v : Vec Float)
  (let ((x squares) (unzip (pairs v)))
    (add (mul (sum x) (sum squares)) (to_float (add (shape v) ([shape pairs] v)))))))",
       "f",
       {vec({1, 2})},
       {3 * 5 + 2 + 2}},
      {"where_the_largest_is",
       R"(
(def f (Vec Float) (m : Tensor 2 Float)
  (let ((r c) (size m))
    (build r (lam (i : Integer)
      (let (row (build c (lam (j : Integer) (index (tuple i j) m))))
        (add (mul (max row) (max row)) (to_float (imax row)))))))))",
       "f",
       {matrix(2, {1, 5, 3, 4, 2, 1})},
       {26, 16}},
      {"a_fold_that_grows",
       R"(
(def f (Vec Float) (v : Vec Float)
  (get$1$2
    (fold (lam (t : Tuple (Tuple (Vec Float) Float) Float)
            (let (((so_far x) t)
                  ((sums total) so_far)
                  (n (size sums))
                  (next (add total x)))
              (tuple (build (add n 1) (lam (i : Integer) (if (eq i n) next (index i sums)))) next)))
          (tuple (build 0 (lam (i : Integer) 0.0)) 0.0)
          v))))",
       "f",
       {vec({1, 2, 4, 8})},
       {1, 3, 7, 15}},
      {"a_derivative_of_a_derivative",
       R"(
(def f Float (x : Float) (mul x (exp (sin x))))
(def df Float (x : Float) ([rev f] x 1.0))
(def g (Vec Float) (v : Vec Float) (map (lam (x : Float) ([fwd df] x 1.0)) v)))",
       "g",
       {vec({.5, 0})},
       {std::exp(std::sin(.5)) *
            (2 * std::cos(.5) + .5 * (std::cos(.5) * std::cos(.5) - std::sin(.5))),
        2}},
      {"a_convolution",
       R"(
(def convolve (Vec Float) ((k : Vec Float) (x : Vec Float))
  (build (size x) (lam (i : Integer)
    (sumbuild (size k) (lam (j : Integer)
      (if (lt (sub i j) 0) 0.0 (mul (index j k) (index (sub i j) x)))))))))",
       "convolve",
       {vec({1, -2}), vec({1, 2, 4})},
       {1, 0, 0}},
      {"functions_of_two_tensors",
       R"(
(def f (Vec Float) ((a : Vec Float) (b : Vec Float))
  (ts_neg (map2 (lam (t : Tuple Float Float) (let ((x y) t) (mul x (mul y y)))) a b))))",
       "f",
       {vec({1, 2, -3}), vec({4, .5, 2})},
       {-16, -.5, 12}},
      {"hints_that_change_nothing",
       R"(
(def g (Vec Float) (v : Vec Float) (map (lam (x : Float) (mul x x)) v))
(def f (Tuple (Vec Float) (Vec Float)) (v : Vec Float)
  (let (unused (elim (g v)))
    (tuple ($copydown (ts_scale 2.0 ($inline (g v)))) ($trace (g ($inline (g v))))))))",
       "f",
       {vec({1, -2})},
       {2, 8, 1, 16}},
      {"passes_in_programs",
       R"(
(def g Float ((x : Float) (v : Vec Float)) (mul x (sum (map (lam (y : Float) (mul y y)) v))))
(def f (Tuple Float Float (Vec Float)) ((x : Float) (v : Vec Float))
  (let (((y forward) ([suffwdpass g] x v))
        ((dx dv) ([sufrevpass g] (tuple 3.0 forward))))
    (tuple y dx dv))))",
       "f",
       {number(2), vec({1, 3})},
       {20, 30, 12, 36}},
      {"a_derivative_by_hand",
       R"(
(edef g Float (Float))
(def [rev g] Float ((x : Float) (dy : Float)) (mul dy (mul 3.0 (mul x x))))
(def f (Vec Float) (v : Vec Float) (map (lam (x : Float) ([rev g] x 2.0)) v)))",
       "f",
       {vec({1, -2})},
       {6, 24}},
      {"what_indices_in_a_tuple_reach",
       R"(
(def f Float ((v : Vec Float) (n : Integer))
  (get$1$2
    (fold (lam (t : Tuple (Tuple Float Integer) Float)
            (let (((now i) (get$1$2 t)))
              (tuple (mul now (sub (index (add i 1) v) (mul 2.0 (index 0 v)))) (add i 1))))
          (tuple 1.0 0)
          (constVec n 0.0)))))",
       "f",
       {vec({1, 5, 3, -2, 7, 8, 9, 10}), integer(3)},
       {-12}},
      {"gmm",
       kGmm,
       "gmm",
       {matrix(3, x), vec(alpha), matrix(2, mu), matrix(2, q)},
       {gmm_by_hand(x, alpha, mu, q)}},
      {"lstm", kLstm, "lstm", {matrix(4, w), vec(xs)}, lstm_by_hand(w, xs)}};
  return programs;
}

}  // namespace flashlight::ks::test
