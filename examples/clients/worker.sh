#!/usr/bin/env bash
# RECOUP_TOKEN=... ./worker.sh http://HOST:8765/v1/studies/NAME 40 ./rollout    (bash, curl, jq)
# ./rollout is any program: parameters as JSON on its standard input, the return on its last line. If
# it fails, what it wrote to standard error is the reason.
set -euo pipefail
study=${1%/} rollouts=$2 rollout=$3
command -v "$rollout" >/dev/null || { echo "$rollout cannot be run" >&2 && exit 2; }
answer=$(mktemp) why=$(mktemp) && trap 'rm -f "$answer" "$why"' EXIT
post() { # PATH BODY: asks again, with the same key, until there is an answer
  local key code
  key=$(cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen)
  while :; do
    code=$(curl -s --max-time 60 -o "$answer" -w '%{http_code}' -H "Idempotency-Key: $key" \
      -H @<(printf 'Authorization: Bearer %s' "$RECOUP_TOKEN") \
      -H 'Content-Type: application/json' --data-binary "$2" "$study/$1") || code=000
    case $code in
      2*) cat "$answer" && return ;;
      000 | 408 | 429 | 502 | 503 | 504 | 507) sleep 1 ;;
      *) jq -e .paused_since "$answer" >/dev/null && sleep 2 || { jq -r .detail "$answer" >&2 && return 1; } ;;
    esac
  done
}
for ((told = 0; told < rollouts; told++)); do
  trial=$(post ask '{"n": 1, "lease": 3600, "worker": "worker.sh"}' | jq -c '.trials[0]')
  if value=$("$rollout" <<<"$(jq .params <<<"$trial")" 2>"$why" | tail -n 1 |
    jq -se 'select(length == 1)[0] | numbers | select(isnormal or . == 0)' 2>>"$why"); then
    result=$(jq -n --argjson value "$value" '{return: $value}')
  else result=$(jq -n --rawfile why "$why" '{failed: (if $why == "" then "no number" else $why[-300:] end)}'); fi
  post "trials/$(jq .id <<<"$trial")/tell" "$result" >/dev/null
done
