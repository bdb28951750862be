// Recognises sums of products (matrix products, convolutions), for which plain loops are slow.
//
//   // out[m, n] = sum_k a[m, k] b[k, n]
//   if (const auto product = contraction_of(statement)) ...
//
// Only axes count: a contraction is a reduction over a product of two factors, each of which has
// parallel axes that the other lacks. Parallel axes that both have are the batch.
#pragma once

#include <optional>
#include <vector>

#include "flashlight/loops/program.h"

namespace flashlight::loops {

// An array with this many elements does not stay in the caches.
constexpr int64_t kLargeElements = 1 << 20;

struct Contraction {
  AxisIds batch, rows, columns, terms;  // axes of the statement
  // Row or column axes that may become outer loops of a large product: each iteration is still a
  // product. They are the first axes of the store's index.
  AxisIds outer = {};
  Expr left, right;                // over batch, rows and terms; over batch, columns and terms
  Expr left_domain, right_domain;  // where they are not 0; absent: everywhere
  // Predicates of left_domain that bound the only term axis by the row (a triangle); and predicates
  // that bound the only column axis by the row: sums outside of the bounds are 0.
  std::vector<Expr> term_limits = {}, column_limits = {};
};

// fl::product is worth it only for at least this many rows, columns and terms.
constexpr int64_t kLeastSide = 4;

// Nothing if the sum is so small, or of such a dtype, that plain loops do as well. Recognises sums
// of 16-bit floats only with `halves`, which a backend sets if it has tiles for them.
std::optional<Contraction> contraction_of(const Statement& statement,
                                          int64_t least_side = kLeastSide, bool halves = false);

// The result of contraction_of, kept in the nest so that later stages need not compute it again. A
// stage that changes the statement computes it anew, or drops it.
struct Recognised {
  Statement statement;  // the one that was examined
  std::optional<Contraction> contraction;
};

// Sets Nest::recognised in all nests of the last function. Calls `recognise` only for statements
// that changed since they were examined last.
Program with_products(Program program,
                      std::optional<Contraction> (*recognise)(const Statement& statement));
// True if Nest::recognised is about the nest's current statement.
bool is_recognised(const Nest& nest);

}  // namespace flashlight::loops
