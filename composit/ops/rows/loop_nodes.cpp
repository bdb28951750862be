// Loop forms as operations: what derivatives are made of where no named operation does.
#include "composit/ir/print.h"
#include "composit/op/loops.h"
#include "composit/ops/functions.h"

namespace composit {

static void expect_operands(const Loops& loops, const std::vector<In>& operands) {
  bool fit = loops.operands.size() == operands.size();
  for (size_t i = 0; fit && i < operands.size(); ++i)
    fit = loops.operands[i].dtype == operands[i].dtype() &&
          loops.operands[i].sizes == operands[i].type().sizes;
  if (fit) return;
  const auto list = [](const auto& types) {
    std::string text;
    for (const Type& type : types) text += (text.empty() ? "" : ", ") + print(type);
    return text;
  };
  std::vector<Type> received;
  for (const In& operand : operands) received.push_back(operand.type());
  throw UserError("expected operands " + list(loops.operands) + ", received " + list(received));
}

void add_loop_nodes_rows(OperationTable& rows) {
  rows.add({.schema = "composit::loops(Tensor[] operands, str loops) -> Tensor[]",
            .loops = [](std::vector<In> operands, std::string text) {
              Loops loops = parse_loops(text);
              expect_operands(loops, operands);
              return loops;
            }});
}

}  // namespace composit
