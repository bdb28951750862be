// torch's operator database as oracle of the rows: types, values and gradients of the calls that
// dump.py has recorded. Prints how many of its operators are covered, and the holes.
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <set>

#include "composit/ad/chain_rule.h"
#include "composit/ad/expr_derivative.h"
#include "composit/eval/evaluate.h"
#include "tests/ops/known_differences.h"
#include "tests/ops/opdb/recorded.h"

namespace composit::opdb {
namespace {

using test::difference;
using test::type_text;
using test::Verdict;
using test::What;

const Recorded& recorded() {
  static const Recorded all = read_recorded(FLASHLIGHT_OP_DUMP);
  return all;
}

// The fault of one call in one respect; empty if there is none.
using Check = std::string (*)(const RecordedCall&);

std::string differing_types(const std::vector<Type>& ours, const std::vector<std::string>& torch) {
  if (ours.size() < torch.size())
    return "ours has " + std::to_string(ours.size()) + " results, torch " +
           std::to_string(torch.size());
  for (size_t i = 0; i < torch.size(); ++i) {  // ours may end with what torch writes to arguments
    const std::string mine = is_defined(ours[i]) ? type_text(ours[i]) : "";
    if (mine != torch[i])
      return "result " + std::to_string(i) + ": ours is " + mine + ", torch's " + torch[i];
  }
  return "";
}

std::string wrong_types(const RecordedCall& call) {
  std::vector<std::string> torch;
  for (const Array& result : call.results)
    torch.push_back(result.defined() ? type_text(result.type()) : "");
  const std::vector<Type> ours = infer(*call.operation, call.call);
  if (std::string wrong = differing_types(ours, torch); !wrong.empty()) return wrong;
  if (!call.meta) return "";
  const std::string wrong = differing_types(ours, *call.meta);
  return wrong.empty() ? "" : "on Meta, " + wrong;
}

std::string differing_values(const RecordedCall& call, What what, const Array& ours,
                             const Array& torch) {
  return difference(ours, torch, test::torch_tolerance(call.name, what, torch.type().dtype));
}

std::string wrong_values(const RecordedCall& call) {
  const auto ours = evaluate(*call.operation, call.call, call.values);
  for (size_t i = 0; i < call.results.size(); ++i) {
    if (!call.results[i].defined()) continue;
    const std::string wrong = differing_values(call, What::value, ours.at(i), call.results[i]);
    if (!wrong.empty()) return "result " + std::to_string(i) + ", " + wrong;
  }
  return "";
}

struct Differentiated {
  LazyTensors gradients;
  std::vector<size_t> places;
  Values values;
};

Differentiated differentiate(const RecordedCall& call) {
  Differentiated found;
  const LazyTensors& tensors = call.call.tensors();
  LazyTensors inputs;
  for (size_t place = 0; place < tensors.size(); ++place) {
    if (tensors[place].defined() && is_input(*tensors[place].node))
      found.values.set(tensors[place], call.values[place]);
    if (!call.gradients[place].defined()) continue;
    inputs.push_back(tensors[place]);
    found.places.push_back(place);
  }
  const NodePtr node = call.call.node(infer(*call.operation, call.call));
  std::vector<Seed> seeds;
  for (uint32_t i = 0; i < call.cotangents.size(); ++i) {
    if (!call.cotangents[i].defined()) continue;
    const LazyTensor output{node, i};
    seeds.push_back({output, input("cotangent" + std::to_string(i), output.type())});
    found.values.set(seeds.back().cotangent, call.cotangents[i]);
  }
  found.gradients = chain_rule(seeds, inputs);
  return found;
}

std::string wrong_gradients(const RecordedCall& call) {
  if (call.gradients.empty()) return "";
  const Differentiated ours = differentiate(call);
  const auto values = evaluate(ours.gradients, ours.values);
  for (size_t i = 0; i < values.size(); ++i) {
    const Array& torch = call.gradients[ours.places[i]];
    const std::string wrong = differing_values(call, What::derivative, values[i], torch);
    if (!wrong.empty()) return "tensor " + std::to_string(ours.places[i]) + ", " + wrong;
  }
  return "";
}

// ---- the walk -----------------------------------------------------------------------------------

// Numbers of the calls that agree; those that do not, and are not known to, are failures.
std::set<size_t> agreeing(What what, Check check) {
  std::set<size_t> agree;
  for (size_t i = 0; i < recorded().calls.size(); ++i) {
    const RecordedCall& call = recorded().calls[i];
    std::string wrong;
    try {
      wrong = check(call);
    } catch (const std::exception& error) {
      wrong = error.what();
    }
    const Verdict meaning = wrong.empty() ? Verdict::right : test::verdict(call.name, what, wrong);
    if (meaning == Verdict::right) agree.insert(i);
    if (meaning == Verdict::fails) ADD_FAILURE() << call.code << '\n' << wrong;
  }
  return agree;
}

class OpDatabase : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(FLASHLIGHT_OP_DUMP "/calls.json"))
      GTEST_SKIP() << "no recording: torch's operator database needs requirements-test.txt";
  }
};

TEST_F(OpDatabase, types_are_torchs_and_of_its_meta_backend) { agreeing(What::type, wrong_types); }

// An operator of the database counts as covered where every call that its samples make agrees.
struct Coverage {
  size_t with_tensors = 0, covered = 0;
  std::map<std::string, std::vector<std::string>> holes;  // what is missing -> operators it bars

  size_t percent() const { return 100 * covered / with_tensors; }
};
constexpr size_t kCoveredAtLeast = 85;  // percent

// True if it makes any call that a row could stand for.
bool is_about_tensors(const Entry& entry) { return !entry.calls.empty() || !entry.holes.empty(); }

Coverage coverage(const std::set<size_t>& agree, bool (*counts)(const Entry&)) {
  Coverage result;
  for (const Entry& entry : recorded().entries) {
    if (!counts(entry)) continue;
    ++result.with_tensors;
    std::set<std::string> missing(entry.holes.begin(), entry.holes.end());
    for (size_t call : entry.calls)
      if (!agree.contains(call)) missing.insert(recorded().calls[call].name + " (differs)");
    if (missing.empty()) ++result.covered;
    for (const std::string& hole : missing) result.holes[hole].push_back(entry.name);
  }
  return result;
}

void print(const char* what, const Coverage& coverage) {
  std::cout << what << ": " << coverage.covered << " of " << coverage.with_tensors << " operators, "
            << coverage.percent() << " %; missing:\n";
  std::vector<std::pair<std::string, std::vector<std::string>>> holes(coverage.holes.begin(),
                                                                      coverage.holes.end());
  std::stable_sort(holes.begin(), holes.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  for (const auto& [hole, operators] : holes)
    std::cout << "  " << hole << " bars " << operators.size() << ": " << operators[0]
              << (operators.size() > 1 ? ", ..." : "") << '\n';
}

TEST_F(OpDatabase, values_are_torchs) {
  const Coverage evaluated = coverage(agreeing(What::value, wrong_values), is_about_tensors);
  print("evaluated", evaluated);
  EXPECT_GE(evaluated.percent(), kCoveredAtLeast);
}

TEST_F(OpDatabase, gradients_are_autograds) {
  const Coverage differentiated =
      coverage(agreeing(What::derivative, wrong_gradients),
               [](const Entry& entry) { return entry.differentiable && is_about_tensors(entry); });
  print("differentiated", differentiated);
  EXPECT_GE(differentiated.percent(), kCoveredAtLeast);
}

}  // namespace
}  // namespace composit::opdb
