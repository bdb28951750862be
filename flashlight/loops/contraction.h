// Sums of products, which deserve better than three loops: matrix products and convolutions.
//
//   // out[m, n] = sum_k a[m, k] b[k, n]
//   if (const auto product = contraction_of(statement)) ...
//
// Recognised by axes alone: a reduction over a product of two factors, each of which has parallel
// axes of its own. Axes that both have are the batch.
#pragma once

#include <optional>
#include <vector>

#include "flashlight/loops/program.h"

namespace flashlight::loops {

// Elements of an array that does not stay in the caches.
constexpr int64_t kLargeElements = 1 << 20;

struct Contraction {
  AxisIds batch, rows, columns, terms;  // axes of the statement
  // Row or column axes that may become outer loops of a large product: each iteration is still a
  // product. The first ones that are stored.
  AxisIds outer = {};
  Expr left, right;                // over batch, rows and terms; over batch, columns and terms
  Expr left_domain, right_domain;  // where they are not 0; absent: everywhere
  // Those predicates of left_domain that bound the only axis of the terms by the row (a triangle);
  // and predicates that bound the only axis of the columns by the row: other sums are 0.
  std::vector<Expr> term_limits = {}, column_limits = {};
};

// Rows, columns and terms that a product has at least, for fl::product to be worth it.
constexpr int64_t kLeastSide = 4;

// Nothing for sums so small, or in such a dtype, that plain loops do as well; those of 16-bit
// floats are products where somebody has `halves` as tiles.
std::optional<Contraction> contraction_of(const Statement& statement,
                                          int64_t least_side = kLeastSide, bool halves = false);

// What a nest keeps of its statement, so that later stages need not look again. A stage that
// changes the statement recognises it anew, or drops this.
struct Recognised {
  Statement statement;  // which one
  std::optional<Contraction> contraction;
};

// All nests of the program's own function know whether their statements are products, by
// `recognise`, which is asked about those that changed since they were looked at.
Program with_products(Program program,
                      std::optional<Contraction> (*recognise)(const Statement& statement));
// Whether what the nest keeps is about the statement that it has.
bool is_recognised(const Nest& nest);

}  // namespace flashlight::loops
