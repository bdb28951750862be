// Files in the cache that are not what they should be, a cache that cannot be written, and
// trimming.

#include "flashlight/toolchain/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "flashlight/toolchain/library.h"
#include "tests/flashlight/toolchain/workshop.h"

namespace flashlight::toolchain {
namespace {

namespace fs = std::filesystem;
using composit::Hash;
using composit::test::message_of;
using composit::test::read_file;
using composit::test::write_file;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

const Sources kOne = sources_of({constant_function("one", "1")});

int call_one() { return Library::load(kOne).symbol<int()>("one")(); }

struct Damage {
  std::string name;
  void (*to)(const fs::path& file);
};

void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }

void cut_short(const fs::path& file) { fs::resize_file(file, fs::file_size(file) / 2); }
void empty(const fs::path& file) { fs::resize_file(file, 0); }
void fill_with_text(const fs::path& file) { write_file(file, std::string(5000, 'x')); }
void flip_a_bit(const fs::path& file) {
  std::string content = read_file(file);
  content[content.size() / 2] ^= 1;
  write_file(file, content);
}

class DamagedFile : public ::testing::TestWithParam<Damage> {};

TEST_P(DamagedFile, library_is_linked_again) {
  Workshop workshop;
  build(kOne);
  GetParam().to(workshop.cached(".so").at(0));
  workshop.links();
  EXPECT_EQ(call_one(), 1);
  EXPECT_EQ(workshop.links(), 1);
  EXPECT_EQ(call_one(), 1);
  EXPECT_EQ(workshop.links(), 0);
}

TEST_P(DamagedFile, object_is_compiled_again) {
  Workshop workshop;
  build(kOne);
  fs::remove(workshop.cached(".so").at(0));
  GetParam().to(workshop.cached(".o").at(0));
  workshop.compiled();
  EXPECT_EQ(call_one(), 1);
  EXPECT_THAT(workshop.compiled(), ElementsAre("one.cpp"));
}

INSTANTIATE_TEST_SUITE_P(cache, DamagedFile,
                         ::testing::Values(Damage{"cut_short", cut_short}, Damage{"empty", empty},
                                           Damage{"text", fill_with_text},
                                           Damage{"a_bit", flip_a_bit}),
                         [](const auto& test) { return test.param.name; });

TEST(cache, file_of_another_key_is_not_taken) {
  Workshop workshop;
  const fs::path one = build(kOne);
  const fs::path two = build(sources_of({constant_function("one", "2")}));
  fs::copy_file(two, one, fs::copy_options::overwrite_existing);
  EXPECT_EQ(call_one(), 1);
}

TEST(cache, that_cannot_be_written_gives_way_to_a_folder_of_the_process) {
  const Workshop workshop;
  const Variable nowhere("FLASHLIGHT_CACHE", "/dev/null/cache");
  ::testing::internal::CaptureStderr();
  const fs::path library = build(kOne);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("/dev/null/cache"));
  EXPECT_THAT(library.string(), StartsWith(fs::temp_directory_path().string()));
  if (const pid_t other = ::fork(); other == 0)
    std::exit(0);  // the folder is not its own
  else
    ::waitpid(other, nullptr, 0);
  EXPECT_TRUE(fs::exists(library));
  EXPECT_EQ(call_one(), 1);
}

TEST(cache, lies_where_the_variables_say) {
  const composit::test::TemporaryFolder folder;
  const Variable home("HOME", (folder / "home").string());
  const Variable ours("FLASHLIGHT_CACHE", std::nullopt);
  {
    const Variable caches("XDG_CACHE_HOME", (folder / "caches").string());
    EXPECT_EQ(Cache::of_user().folder(), folder / "caches/flashlight");
  }
  const Variable caches("XDG_CACHE_HOME", std::nullopt);
  EXPECT_EQ(Cache::of_user().folder(), folder / "home/.cache/flashlight");
}

TEST(cache, is_its_users_alone_unless_made_otherwise) {
  const composit::test::TemporaryFolder folder;
  const auto permissions_of = [](const Cache& cache) {
    return fs::status(cache.folder()).permissions();
  };
  EXPECT_EQ(permissions_of(Cache(folder / "new/cache")), fs::perms::owner_all);
  fs::create_directory(folder / "shared");
  fs::permissions(folder / "shared", fs::perms::all);
  EXPECT_EQ(permissions_of(Cache(folder / "shared")), fs::perms::all);
}

class Trimming : public ::testing::Test {
 protected:
  // A file of about 1000 bytes, used so many hours ago.
  void add(uint64_t number, int hours_ago) {
    const BuildFolder build(cache_);
    write_file(build.path() / "file", std::string(1000, 'x'));
    const fs::path file = cache_.store({number, 0}, ".o", build.path() / "file");
    set_age(file, hours_ago);
  }
  static void set_age(const fs::path& path, int hours) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }
  std::vector<uint64_t> left() const {
    std::vector<uint64_t> numbers;
    for (uint64_t number = 0; number < 10; ++number)
      if (fs::exists(folder_ / "cache/files" / (Hash{number, 0}.str() + ".o")))
        numbers.push_back(number);
    return numbers;
  }

  composit::test::TemporaryFolder folder_;
  Cache cache_{folder_ / "cache"};
};

TEST_F(Trimming, removes_what_was_used_longest_ago) {
  add(1, 3);
  add(2, 5);
  add(3, 4);
  EXPECT_TRUE(cache_.find({2, 0}, ".o"));  // used now
  cache_.trim(10000);
  EXPECT_THAT(left(), ElementsAre(1, 2, 3));
  cache_.trim(2500);
  EXPECT_THAT(left(), ElementsAre(1, 2));
  cache_.trim(0);
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(Trimming, removes_folders_of_builds_after_a_day) {
  const BuildFolder running(cache_);
  const fs::path old = folder_ / "cache/builds/old";
  fs::create_directories(old / "inside");
  set_age(old, 25);
  cache_.trim(0);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(running.path()));
}

TEST_F(Trimming, happens_now_and_then) {
  const Variable size("FLASHLIGHT_CACHE_SIZE", "1500");
  add(1, 1);
  add(2, 2);
  cache_.trim_now_and_then();
  EXPECT_THAT(left(), ElementsAre(1));
  add(3, 3);
  cache_.trim_now_and_then();
  EXPECT_THAT(left(), ElementsAre(1, 3));
  set_age(folder_ / "cache/last_trim", 2);
  cache_.trim_now_and_then();
  EXPECT_THAT(left(), ElementsAre(1));
}

TEST_F(Trimming, build_folders_vanish_unless_kept) {
  fs::path removed, kept;
  {
    const BuildFolder first(cache_);
    BuildFolder second(cache_);
    second.keep();
    removed = first.path();
    kept = second.path();
    EXPECT_TRUE(fs::exists(removed));
  }
  EXPECT_FALSE(fs::exists(removed));
  EXPECT_TRUE(fs::exists(kept));
}

TEST(cache, sizes) {
  EXPECT_EQ(parse_bytes("1500"), 1500);
  EXPECT_EQ(parse_bytes("0"), 0);
  EXPECT_EQ(parse_bytes("3K"), 3 * 1024);
  EXPECT_EQ(parse_bytes("2G"), uint64_t{2} << 30);
  for (const char* text : {"", "G", "-1", "2T", "2GB", "many", "99999999999999999999"})
    EXPECT_THAT(message_of([&] { parse_bytes(text); }),
                HasSubstr("received '" + std::string(text) + "'"));
}

}  // namespace
}  // namespace flashlight::toolchain
