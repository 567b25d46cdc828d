#!/bin/sh
# Makes the passwords and tokens that compose.yaml mounts:
#
#   ./make-secrets.sh [FOLDER]     (default: the folder of this script)
#
# writes FOLDER/secrets/* and FOLDER/.env. It never overwrites: to replace the
# secrets, delete both first, and the database volume with them.
set -eu

folder=${1:-$(dirname "$0")}
secrets=$folder/secrets

if [ -e "$secrets" ] || [ -e "$folder/.env" ]; then
  echo "make-secrets: $secrets or $folder/.env exists already; delete both to make new ones" >&2
  exit 1
fi

# hex N prints N random bytes.
hex() {
  od -An -v -tx1 -N "$1" /dev/urandom | tr -d ' \n'
}

# token KIND prints a service token: hf_<kind>_<id>_<secret>.
token() {
  printf 'hf_%s_%s_%s' "$1" "$(hex 8)" "$(hex 32)"
}

# The folder protects the files. They must be readable by the containers' own
# users, who are not the owner.
umask 077
mkdir "$secrets"

password=$(hex 24)
hook=$(token hook)
gw1=$(token gateway)
gw2=$(token gateway)
ci=$(token ci)

printf '%s' "$password" >"$secrets/postgres-password"
printf '%s' "$hook" >"$secrets/hook-token"
printf '%s' "$gw1" >"$secrets/gw1-token"
printf '%s' "$gw2" >"$secrets/gw2-token"
printf '%s' "$ci" >"$secrets/ci-token"
cat >"$secrets/bootstrap-tokens.yaml" <<END
- {kind: hook, name: alertmanager, token: $hook}
- {kind: gateway, name: gw1, token: $gw1}
- {kind: gateway, name: gw2, token: $gw2}
- {kind: ci, name: pipelines, token: $ci}
END
chmod 0444 "$secrets"/*

cat >"$folder/.env" <<END
# Read by docker compose.
POSTGRES_PASSWORD=$password
# Fill in both to use a real Slack workspace (see deploy/slack/manifest.yaml).
SLACK_BOT_TOKEN=
SLACK_SIGNING_SECRET=
# The address under which people and Slack reach the server.
HOLDFAST_PUBLIC_URL=http://127.0.0.1:8080
END
echo "made $secrets and $folder/.env"
