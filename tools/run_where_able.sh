#!/usr/bin/env bash
# run_where_able.sh FLAGS PROGRAM ARGUMENTS: runs a GoogleTest program that is compiled for
# instructions which /proc/cpuinfo calls FLAGS ("avx512f fma"). On a processor that lacks one the
# program is not even started, since what the compiler writes before main may use them (a copy of a
# long name of a file does): it is one skipped test there.
set -euo pipefail

read -ra flags <<<"$1"
shift
has=" $(sed -n 's/^flags[[:space:]]*: *//p' /proc/cpuinfo 2>/dev/null | head -n 1 || true) "
[[ $has =~ [a-z] ]] || exec "$@" # No Linux, no list.
for flag in "${flags[@]}"; do
  [[ $has == *" $flag "* ]] && continue
  if [[ " $* " == *" --gtest_list_tests"* ]]; then
    printf 'Processor.\n  lacks_%s\n' "$flag"
  else
    printf '[  SKIPPED ] Processor.lacks_%s\nthis processor lacks %s\n' "$flag" "$flag"
  fi
  exit 0
done
exec "$@"
