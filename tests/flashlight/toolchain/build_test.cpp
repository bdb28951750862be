// Builds, hits of the cache, and messages about them.

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <algorithm>
#include <optional>

#include "flashlight/toolchain/isa.h"
#include "flashlight/toolchain/library.h"
#include "tests/flashlight/toolchain/workshop.h"

namespace flashlight::toolchain {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Names = std::vector<std::string>;

int call(const Library& library, const std::string& name) { return library.symbol<int()>(name)(); }

const Sources kTwo = sources_of({constant_function("one", "1"), constant_function("two", "2")});

TEST(build, compiles_loads_and_calls) {
  const Workshop workshop;
  const Library library = Library::load(sources_of(
      {{"half.cpp",
        "extern \"C\" { float half(float x) { return x / 2; }  extern const int size = 7; }"}}));
  EXPECT_EQ(library.symbol<float(float)>("half")(3.0F), 1.5F);
  EXPECT_EQ(*library.symbol<const int>("size"), 7);
}

TEST(build, units_see_headers_and_each_other) {
  const Workshop workshop;
  Sources sources = sources_of(
      {{"kernels/twice.cpp",
        "#include \"shared/scale.h\"\nint twice(int x) { return kScale * x; }"},
       {"model.cpp",
        "#include \"shared/scale.h\"\nextern \"C\" int model(int x) { return twice(x) + 1; }"}});
  sources.headers = {{"shared/scale.h", "constexpr int kScale = 2;\nint twice(int x);\n"}};
  EXPECT_EQ(Library::load(sources).symbol<int(int)>("model")(20), 41);
}

TEST(build, libraries_have_static_variables_of_their_own) {
  const Workshop workshop;
  const auto counting = [](const std::string& first) {
    return Library::load(sources_of(
        {{"count.cpp", "inline int& count() { static int number = " + first +
                           "; return number; }\nextern \"C\" int next() { return ++count(); }"}}));
  };
  const Library one = counting("1"), ten = counting("10");
  EXPECT_EQ(call(one, "next"), 2);
  EXPECT_EQ(call(ten, "next"), 11);
  EXPECT_EQ(call(one, "next"), 3);
}

TEST(build, compiles_only_once) {
  Workshop workshop;
  const std::filesystem::path first = Library::load(kTwo).path();
  EXPECT_THAT(workshop.compiled(), ElementsAre("one.cpp", "two.cpp"));
  const Library again = Library::load(kTwo);
  EXPECT_EQ(again.path(), first);
  EXPECT_EQ(call(again, "two"), 2);
  EXPECT_THAT(workshop.compiled(), IsEmpty());
}

TEST(build, compiles_a_changed_unit_alone) {
  Workshop workshop;
  build(kTwo);
  workshop.compiled();
  Sources changed = kTwo;
  changed.units[1] = constant_function("two", "22");
  const Library library = Library::load(changed);
  EXPECT_THAT(workshop.compiled(), ElementsAre("two.cpp"));
  EXPECT_EQ(call(library, "one"), 1);
  EXPECT_EQ(call(library, "two"), 22);
}

TEST(build, compiles_all_that_may_see_a_changed_header) {
  Workshop workshop;
  Sources sources =
      sources_of({{"one.cpp", "#include \"value.h\"\nextern \"C\" int one() { return kValue; }"}});
  sources.headers = {{"value.h", "constexpr int kValue = 1;"}};
  build(sources);
  sources.headers[0].text = "constexpr int kValue = 11;";
  EXPECT_EQ(call(Library::load(sources), "one"), 11);
}

TEST(build, flags_make_another_library) {
  Workshop workshop;
  const Sources sources = sources_of({constant_function("value", "VALUE")});
  EXPECT_EQ(call(Library::load(sources, {.flags = {"-DVALUE=3"}}), "value"), 3);
  EXPECT_EQ(call(Library::load(sources, {.flags = {"-DVALUE=4"}}), "value"), 4);
  workshop.compiled();
  build(sources, {.flags = {"-DVALUE=4"}, .link_flags = {"-lm"}});
  EXPECT_EQ(workshop.links(), 1);
  build(sources, {.flags = {"-DVALUE=4"}, .link_flags = {"-lm"}, .jobs = 1});
  EXPECT_EQ(workshop.links(), 0);
}

TEST(build, another_version_of_the_compiler_compiles_anew) {
  Workshop workshop("test \"$1\" = --version && cat \"$VERSION_FILE\" && exit");
  const std::string version = workshop.folder() / "version";
  const Variable variable("VERSION_FILE", version);
  const auto compile = [] { return !build(kTwo).empty(); };  // asks for the version in each process
  composit::test::write_file(version, "12.2");
  EXPECT_TRUE(all_in_forks(1, compile));
  EXPECT_EQ(workshop.compiled().size(), 2);
  EXPECT_TRUE(all_in_forks(1, compile));
  EXPECT_EQ(workshop.compiled().size(), 0);
  composit::test::write_file(version, "12.3");
  EXPECT_TRUE(all_in_forks(1, compile));
  EXPECT_EQ(workshop.compiled().size(), 2);
}

// For this process only; false where that is not permitted.
bool pretend_processor(const std::filesystem::path& cpuinfo) {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount(cpuinfo.c_str(), "/proc/cpuinfo", nullptr, MS_BIND, nullptr) == 0;
}

TEST(build, native_code_is_for_one_kind_of_processor) {
  Workshop workshop;
  const auto compiled_on = [&](const std::string& features, const Names& flags) {
    composit::test::write_file(workshop.folder() / "cpuinfo", "flags\t: " + features + "\n");
    EXPECT_TRUE(all_in_forks(1, [&] {
      return pretend_processor(workshop.folder() / "cpuinfo") &&
             !build(sources_of({constant_function("one", "1")}), {.flags = flags}).empty();
    }));
    return workshop.compiled().size();
  };
  if (!all_in_forks(1, [] { return pretend_processor("/proc/version"); }))
    GTEST_SKIP() << "mounting is not permitted";
  EXPECT_EQ(compiled_on("sse2 avx2", {"-march=native"}), 1);
  EXPECT_EQ(compiled_on("sse2 avx2 avx512f", {"-march=native"}), 1);
  EXPECT_EQ(compiled_on("sse2 avx2", {"-march=native"}), 0);
  EXPECT_EQ(compiled_on("sse2 avx2", {"-mavx2"}), 1);
  EXPECT_EQ(compiled_on("sse2 avx2 avx512f", {"-mavx2"}), 0);
}

TEST(build, reports_each_unit) {
  const Workshop workshop;
  std::vector<Progress> reports;
  const CompileOptions options{.progress = [&](const Progress& p) { reports.push_back(p); }};
  build(sources_of({constant_function("one", "1")}), options);
  build(kTwo, options);
  build(kTwo, options);
  ASSERT_EQ(reports.size(), 5);
  Names cached;
  for (const Progress& report : reports) {
    EXPECT_LE(report.done, report.total);
    if (report.cached) cached.push_back(report.unit);
  }
  std::sort(cached.begin(), cached.end());
  EXPECT_EQ(cached, (Names{"one.cpp", "one.cpp", "two.cpp"}));
  EXPECT_EQ(reports[0].unit, "one.cpp");
  EXPECT_EQ(reports[0].total, 1);
  EXPECT_GT(reports[0].seconds, 0);
  EXPECT_EQ(reports[1].done, 1);
  EXPECT_EQ(reports[2].done, 2);
  EXPECT_EQ(reports[2].total, 2);
}

TEST(build, what_progress_throws_arrives) {
  const Workshop workshop;
  const CompileOptions options{.progress = [](const Progress&) { throw std::string("stop"); }};
  EXPECT_THROW(build(kTwo, options), std::string);
}

TEST(library, leaves_the_process_with_its_last_copy) {
  const Workshop workshop;
  std::filesystem::path path;
  const auto is_loaded = [&] {
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (handle != nullptr) ::dlclose(handle);
    return handle != nullptr;
  };
  {
    std::optional<Library> library = Library::load(kTwo);
    path = library->path();
    const Library copy = *library;
    library.reset();
    EXPECT_TRUE(is_loaded());
    EXPECT_EQ(call(copy, "one"), 1);
  }
  EXPECT_FALSE(is_loaded());
}

TEST(library, is_built_again_where_another_process_trims_the_cache_meanwhile) {
  const Workshop workshop;
  const std::filesystem::path path = build(kTwo);
  const CompileOptions options{.progress = [&](const Progress&) { std::filesystem::remove(path); }};
  EXPECT_EQ(call(Library::load(kTwo, options), "one"), 1);
}

TEST(isa, is_among_the_features_of_the_processor) {
  const std::string features = cpu_features() + " ";
  const std::string isa = host_isa();
#if defined(__x86_64__)
  EXPECT_NE(features.find(isa == "sse4.2" ? " sse4_2 " : " " + isa + " "), std::string::npos)
      << isa << " in " << features;
  EXPECT_EQ(isa == "avx512f", features.find(" avx512vl ") != std::string::npos);
#else
  EXPECT_FALSE(isa.empty());
#endif
}

}  // namespace
}  // namespace flashlight::toolchain
