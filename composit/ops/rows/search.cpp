// Places in sorted boundaries.
#include "composit/ops/functions.h"

namespace composit {

// The side may be said in two ways.
static bool is_right(bool right, const std::optional<std::string>& side) {
  if (!side) return right;
  if (*side != "left" && *side != "right")
    throw UserError("expected side 'left' or 'right', received '" + *side + "'");
  if (right && *side == "left")
    throw UserError("expected one side, received 'left' and right=True");
  return *side == "right";
}

// The number of boundaries below x (right: not above), which is where x belongs; NaN goes last.
static Loops places(Nest& nest, const Expr& x, const Expr& boundary, bool right, bool narrow) {
  const Expr below = right ? !(boundary > x) : !(boundary >= x);
  return nest.store(nest.sum(cast(below, narrow ? DType::int32 : DType::int64))).loops();
}

void add_search_rows(OperationTable& rows) {
  rows.add({.schema = "aten::bucketize.Tensor(Tensor self, Tensor boundaries, *, bool "
                      "out_int32=False, bool right=False) -> Tensor",
            .loops =
                [](In x, In boundaries, bool narrow, bool right) {
                  if (boundaries.rank() != 1)
                    throw UserError("expected boundaries of one axis, received sizes " +
                                    str(boundaries.sizes()));
                  Nest nest;
                  const Expr value = x(nest.parallel(x.sizes()));
                  return places(nest, value, boundaries(nest.reduction(boundaries.size(0))), right,
                                narrow);
                },
            .samples = "f32[2,3] f32[3]=[-1,0,1] | i64[4]=[0,1,2,3] i64[3]=[1,2,2] False True | "
                       "f32[3]=[nan,0,1] f32[2]=[0,1] True | f32[2] f32[0]",
            .bad = "f32[2] f32[2,2]: of one axis"});
  rows.add({.schema = "aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool "
                      "out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> "
                      "Tensor",
            .loops =
                [](In sorted, In x, bool narrow, bool right, std::optional<std::string> side,
                   std::optional<In> sorter) {
                  Ints lead = sorted.sizes(), own = x.sizes();
                  if (!lead.empty()) lead.pop_back();
                  if (!own.empty()) own.pop_back();
                  if (sorted.rank() == 0 || (sorted.rank() > 1 && lead != own))
                    throw UserError("expected sequences for all of " + str(x.sizes()) +
                                    ", received sizes " + str(sorted.sizes()));
                  Nest nest;
                  Index at = nest.parallel(x.sizes());
                  const Expr value = x(at);
                  if (sorted.rank() == 1) at.assign(1, Expr());
                  at.back() = nest.reduction(sorted.size(-1));
                  if (sorter) at.back() = cast((*sorter)(at), DType::int64);
                  return places(nest, value, sorted(at), is_right(right, side), narrow);
                },
            .samples = "f32[3]=[-1,0,1] f32[2,3] | f32[2,3]=[-1,0,1,0,1,2] f32[2,4] | "
                       "i64[3]=[1,2,2] i64[4]=[0,1,2,3] False True | f32[3]=[1,-1,0] f32[2] False "
                       "False 'right' i64[3]=[1,2,0]",
            .bad = "f32[3,2] f32[2,2]: sequences for | f32[2] f32[2] False False 'up': expected "
                   "side"});
}

}  // namespace composit
