# Handlers of the conformance kit for examples/bash/worker.sh.
# shellcheck shell=bash disable=SC2154
handle_echo() { printf '%s' "$INPUT"; }
handle_gather() { printf '{"input": %s, "dependencies": %s, "config": %s}' "$INPUT" "$DEPENDENCIES" "$CONFIG"; }
handle_facts() {
  if [ "$(field fail_first)" = true ] && [ "$ATTEMPT" = 1 ]; then fail error "token $TOKEN"; fi
  printf '{"attempt": %s, "token": "%s", "step": "%s", "correlation_id": %s, "config": %s}' "$ATTEMPT" "$TOKEN" "$STEP" "$CORRELATION_ID" "$CONFIG"
}
handle_sleep() {
  local ms
  ms=$(field ms)
  sleep "$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))"
  printf '{"slept": %s}' "$ms"
}
handle_fail_once() {
  if [ "$ATTEMPT" = 1 ]; then fail error "as told"; fi
  printf '{"attempt": %s}' "$ATTEMPT"
}
handle_fail() { fail "$(field type)" "$(field message)"; }
handle_fail_permanently() { permanent "$(field type)" "$(field message)"; }
handle_reject() { reject "$(field type)" "$(field message)"; }
handle_retry_later() { retry_after "$(field seconds)" error later; }
handle_blow_up() { cat /no/such/file; }
handle_bad_output() { printf '"a\\u0000b"'; }
handle_crash() {
  if [ "$DELIVERY" = 1 ]; then kill -KILL $$; fi # of the worker, not of this subshell
  printf '{"delivery": %s}' "$DELIVERY"
}
