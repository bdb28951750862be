// Runs each program twice, eager and captured, and compares bit for bit.
//
//   sweep_tests [--eager] [PART OF A NAME...]      # a table; fails where one is wrong in silence
//
// A verdict is `right`, `refused` (by a UserError; at which call), `silent` (the first call with
// other bits) or `crash`. Each program runs in a process of its own. `--eager` compares the program
// with itself: whether it can be judged at all.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <regex>
#include <typeinfo>

#include "composit/ir/error.h"
#include "tests/sweep/cpp/registry.h"

namespace sweep {

std::vector<Registered>& registry() {
  static std::vector<Registered> cases;
  return cases;
}

Values rows(int64_t calls, std::vector<int64_t> shape) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(7);
  Values all;
  for (int64_t i = 0; i < calls; ++i) all.push_back(at::randn(shape, generator));
  return all;
}

torch::nn::Sequential network() {
  return torch::nn::Sequential(torch::nn::Linear(4, 6), torch::nn::Tanh(), torch::nn::Linear(6, 2));
}

namespace {

struct Verdict {
  std::string kind;
  int call = -1;
  std::string detail;
};

// The values after one call. Nobody sees the result of call 0: that one is the trace.
struct Seen {
  Values results, arguments, state;
  std::string exception;  // its type
  std::string message;
  bool refused = false;
};

Values copies(const Values& tensors) {
  Values all;
  for (const at::Tensor& tensor : tensors)
    all.push_back(tensor.defined() ? tensor.detach().clone() : tensor);
  return all;
}

Seen call(const Case& program, size_t number, const std::function<Values(size_t)>& run) {
  Seen seen;
  try {
    program.before(number);
    Values results = run(number);
    if (number > 0) {
      program.after(results);
      seen.results = copies(results);
    }
  } catch (const composit::UserError& error) {
    seen.refused = true;
    seen.message = error.what();
    seen.exception = "composit::UserError";
  } catch (const std::exception& error) {
    seen.exception = typeid(error).name();
    seen.message = error.what();
  }
  seen.arguments = copies(program.arguments(number));
  seen.state = copies(program.state());
  return seen;
}

bool same(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  const at::Tensor left = a.contiguous(), right = b.contiguous();
  return left.nbytes() == 0 ||
         std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
}

bool same(const Values& a, const Values& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(),
                    [](const at::Tensor& x, const at::Tensor& y) { return same(x, y); });
}

std::string difference(const Seen& expected, const Seen& received) {
  if (expected.exception != received.exception)
    return "exception expected: '" + expected.exception + "', received: '" + received.exception +
           "'";
  if (!same(expected.results, received.results)) return "another result";
  if (!same(expected.arguments, received.arguments)) return "another argument";
  if (!same(expected.state, received.state)) return "another state";
  return "";
}

Case build(const Registered& entry) {
  torch::manual_seed(0);
  return entry.build();
}

Verdict judge(const Registered& entry, bool eager) {
  std::vector<Seen> reference;
  {
    const Case program = build(entry);
    for (size_t number = 0; number < program.calls; ++number)
      reference.push_back(call(program, number, program.eager));
  }
  const Case program = build(entry);
  std::function<Values(size_t)> captured;
  const auto run = [&](size_t number) {
    if (eager) return program.eager(number);
    if (captured) return captured(number);
    captured = program.trace();
    return Values();
  };
  for (size_t number = 0; number < program.calls; ++number) {
    const size_t runs = program.runs ? *program.runs : 0;
    const Seen seen = call(program, number, run);
    const int at = static_cast<int>(number);
    if (seen.refused) return {"refused", at, seen.message};
    if (!seen.exception.empty() && seen.exception != reference[number].exception)
      return {"crash", at, seen.exception + ": " + seen.message};
    if (program.runs) {
      if (*program.runs == runs) return {"silent", at, "the program did not run"};
    } else if (std::string wrong = difference(reference[number], seen); !wrong.empty()) {
      return {"silent", at, wrong};
    }
  }
  return {"right", -1, ""};
}

// The verdict comes back through a pipe: its call and kind in the first line, then the detail.
Verdict in_process_of_its_own(const Registered& entry, bool eager) {
  int ends[2];
  if (pipe(ends) != 0) return {"crash", -1, "no pipe"};
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const int nowhere = open("/dev/null", O_WRONLY);  // Some programs print, and LibTorch warns.
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    Verdict verdict;
    try {
      verdict = judge(entry, eager);
    } catch (const std::exception& error) {
      verdict = {"crash", -1, error.what()};
    }
    const std::string text =
        std::to_string(verdict.call) + " " + verdict.kind + "\n" + verdict.detail;
    const auto written = write(ends[1], text.data(), text.size());
    _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, got);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (text.empty()) return {"crash", -1, "ended with status " + std::to_string(status)};
  const size_t space = text.find(' '), line = text.find('\n');
  return {text.substr(space + 1, line - space - 1), std::stoi(text), text.substr(line + 1)};
}

// Differences that are documented (docs/promise.md).
bool is_unseen(const Registered& entry) {
  return entry.expect == Expect::cannot_see || entry.expect == Expect::copies;
}

// The fault of a verdict; empty if it is as expected.
std::string complaint(const Registered& entry, const Verdict& verdict, bool eager) {
  if (eager) return verdict.kind == "right" ? "" : verdict.kind;
  if (is_unseen(entry) && verdict.kind != "crash") return "";
  if (verdict.kind == "silent") return "SILENT";
  if (verdict.kind == "crash") return "CRASH";
  if (entry.expect == Expect::right && verdict.kind != "right") return "expected right";
  const std::regex pattern(entry.error, std::regex::icase | std::regex::ECMAScript);
  if (verdict.kind == "refused" && !std::regex_search(verdict.detail, pattern))
    return "expected a message with /" + entry.error + "/";
  return "";
}

bool chosen(const Registered& entry, const std::vector<std::string>& parts) {
  return parts.empty() || std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
           return entry.name.find(part) != std::string::npos;
         });
}

int main_of(const std::vector<std::string>& arguments) {
  bool eager = false;
  std::vector<std::string> parts;
  for (const std::string& argument : arguments) {
    if (argument == "--eager")
      eager = true;
    else
      parts.push_back(argument);
  }
  at::set_num_threads(1);
  std::map<std::string, int> counts;
  std::vector<std::string> failures;
  int judged = 0;
  for (const Registered& entry : registry()) {
    if (!chosen(entry, parts)) continue;
    ++judged;
    const Verdict verdict = in_process_of_its_own(entry, eager);
    const std::string wrong = complaint(entry, verdict, eager);
    const bool unseen = is_unseen(entry);
    ++counts[verdict.kind + (unseen ? " (cannot see)" : "")];
    const std::string at = verdict.call < 0 ? "" : " at " + std::to_string(verdict.call);
    std::printf("%-44s %-14s %-12s %s\n", entry.name.c_str(), (verdict.kind + at).c_str(),
                wrong.c_str(), verdict.detail.substr(0, 200).c_str());
    if (!wrong.empty()) failures.push_back(entry.name);
  }
  std::printf("\n%d programs:", judged);
  for (const auto& [kind, count] : counts) std::printf(" %d %s;", count, kind.c_str());
  std::printf("\n");
  if (!failures.empty()) std::printf("%zu not as they should be:\n", failures.size());
  for (const std::string& name : failures) std::printf("  %s\n", name.c_str());
  return judged > 0 && failures.empty() ? 0 : 1;
}

}  // namespace
}  // namespace sweep

int main(int count, char** arguments) {
  return sweep::main_of(std::vector<std::string>(arguments + 1, arguments + count));
}
