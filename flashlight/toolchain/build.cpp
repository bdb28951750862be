#include "flashlight/toolchain/build.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "composit/ir/error.h"
#include "composit/ir/hash.h"
#include "flashlight/toolchain/cache.h"
#include "flashlight/toolchain/compiler.h"
#include "flashlight/toolchain/diagnostic.h"
#include "flashlight/toolchain/isa.h"
#include "flashlight/toolchain/process.h"

namespace flashlight::toolchain {
namespace {

namespace fs = std::filesystem;
using composit::Hash;
using composit::Hasher;
using composit::UserError;

constexpr std::string_view kRecipe = "2";  // change it whenever the commands below change

void add_all(Hasher& hasher, const std::vector<std::string>& words) {
  hasher.add(static_cast<uint64_t>(words.size()));
  for (const std::string& word : words) hasher.add(std::string_view(word));
}

void add_file(Hasher& hasher, const SourceFile& file) {
  hasher.add(std::string_view(file.name));
  hasher.add(std::string_view(file.text));
}

// The environment variables that compilers read.
void add_environment(Hasher& hasher) {
  for (const char* name : {"CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH"}) {
    const char* value = std::getenv(name);
    hasher.add(std::string_view(value == nullptr ? "" : value));
  }
}

// g++ shares static variables of inline functions and templates among all libraries of a process:
// the second library would use tables of the first, which may be for other vector lengths.
constexpr const char* kOwnStatics = "-fno-gnu-unique";

bool is_gnu(const Compiler& compiler) {
  return compiler.version.find("Free Software Foundation") != std::string::npos;
}

bool depends_on_processor(const std::vector<std::string>& flags) {
  return std::any_of(flags.begin(), flags.end(),
                     [](const std::string& flag) { return flag.ends_with("=native"); });
}

// The part of the hash that all units share.
Hasher common_hash(const Sources& sources, const Compiler& compiler,
                   const std::vector<std::string>& flags) {
  Hasher hasher;
  hasher.add(kRecipe);
  add_all(hasher, compiler.words);
  hasher.add(std::string_view(compiler.version));
  add_all(hasher, flags);
  add_environment(hasher);
  if (depends_on_processor(flags) || depends_on_processor(compiler.words))
    hasher.add(std::string_view(cpu_features()));
  for (const SourceFile& header : sources.headers) add_file(hasher, header);
  return hasher;
}

size_t thread_count(int jobs, size_t units) {
  const size_t wanted =
      jobs > 0 ? static_cast<size_t>(jobs) : std::max(1U, std::thread::hardware_concurrency());
  return std::min(wanted, units);
}

// Calls work(0), ..., work(count - 1) in this number of threads, the calling one included. After an
// exception it starts no other call, and throws the exception at the end.
void in_parallel(size_t count, size_t threads, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  std::exception_ptr error;
  std::mutex mutex;
  const auto run_some = [&] {
    try {
      for (size_t i; (i = next++) < count;) work(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others(threads - 1);
    for (std::jthread& other : others) other = std::jthread(run_some);
    run_some();
  }
  if (error) std::rethrow_exception(error);
}

class Build {
 public:
  Build(const Sources& sources, const CompileOptions& options)
      : sources_(sources), options_(options), compiler_(find_compiler()), cache_(Cache::of_user()) {
    const Hasher common = common_hash(sources, compiler_, options.flags);
    Hasher all = common;
    for (const SourceFile& unit : sources.units) {
      Hasher hasher = common;
      add_file(hasher, unit);
      object_keys_.push_back(hasher.finish());
      all.add(object_keys_.back());
    }
    add_all(all, options.link_flags);
    library_key_ = all.finish();
  }

  fs::path library() {
    if (const auto found = cache_.find(library_key_, ".so")) {
      for (const SourceFile& unit : sources_.units) report(unit, true, {});
      return *found;
    }
    cache_.trim_now_and_then();
    folder_.emplace(cache_);
    write_files(sources_.units, folder_->path());
    write_files(sources_.headers, folder_->path());
    in_parallel(sources_.units.size(), thread_count(options_.jobs, sources_.units.size()),
                [this](size_t unit) { make_object(unit); });
    return link();
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::string object(size_t unit) const { return sources_.units[unit].name + ".o"; }

  void report(const SourceFile& unit, bool cached, Clock::duration time) {
    const std::lock_guard lock(reporting_);
    ++done_;
    if (options_.progress)
      options_.progress({unit.name, done_, sources_.units.size(), cached,
                         std::chrono::duration<double>(time).count()});
  }

  void make_object(size_t unit) {
    const Clock::time_point start = Clock::now();
    const bool cached = fetch_object(unit);
    if (!cached) compile(unit);
    report(sources_.units[unit], cached, Clock::now() - start);
  }

  // Copies the object, because another process may trim the cache before we link.
  bool fetch_object(size_t unit) {
    const auto found = cache_.find(object_keys_[unit], ".o");
    std::error_code error;
    return found && fs::copy_file(*found, folder_->path() / object(unit), error);
  }

  void compile(size_t unit) {
    Command command{compiler_.words, folder_->path()};
    append(command, options_.flags);
    if (is_gnu(compiler_)) command.words.push_back(kOwnStatics);
    append(command, {"-fPIC", "-fno-diagnostics-color", "-I.", "-c", sources_.units[unit].name,
                     "-o", object(unit)});
    execute(command, object(unit));
    cache_.store(object_keys_[unit], ".o", folder_->path() / object(unit));
  }

  fs::path link() {
    const std::string library = "library.so";
    Command command{compiler_.words, folder_->path()};
    append(command, options_.flags);
    append(command, {"-fPIC", "-shared", "-o", library});
    for (size_t unit = 0; unit < sources_.units.size(); ++unit)
      command.words.push_back(object(unit));
    append(command, options_.link_flags);
    execute(command, library);
    return cache_.store(library_key_, ".so", folder_->path() / library);
  }

  static void append(Command& command, const std::vector<std::string>& words) {
    command.words.insert(command.words.end(), words.begin(), words.end());
  }

  // Throws UserError if the command fails or does not make `product`.
  void execute(const Command& command, const std::string& product) {
    const ProcessResult result = run(command);
    if (result.succeeded() && fs::exists(folder_->path() / product)) return;
    folder_->keep();
    write_files({{product + ".output.txt", result.output}}, folder_->path());
    throw UserError(explain_failure(sources_, command, result));
  }

  const Sources& sources_;
  const CompileOptions& options_;
  Compiler compiler_;
  Cache cache_;
  std::optional<BuildFolder> folder_;
  std::vector<Hash> object_keys_;
  Hash library_key_;
  std::mutex reporting_;
  size_t done_ = 0;
};

}  // namespace

fs::path build(const Sources& sources, const CompileOptions& options) {
  check_names(sources);
  if (sources.units.empty()) throw UserError("[compile] there is no unit to compile");
  return Build(sources, options).library();
}

}  // namespace flashlight::toolchain
