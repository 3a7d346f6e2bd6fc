#!/bin/bash
# Stands in for the entrypoint of PostgreSQL's image: PGDATA, POSTGRES_PASSWORD or POSTGRES_PASSWORD_FILE.
set -eu
if [ $# -gt 0 ] && [ "${1:0:1}" != - ] && [ "$1" != postgres ]; then exec "$@"; fi
[ "${1:-}" != postgres ] || shift
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  rm -rf "$PGDATA.new"
  initdb --pgdata="$PGDATA.new" --username=postgres --auth-local=trust --auth-host=scram-sha-256 \
    --pwfile="${POSTGRES_PASSWORD_FILE:-<(echo "$POSTGRES_PASSWORD")}" >/dev/null
  echo "host all all all scram-sha-256" >> "$PGDATA.new/pg_hba.conf"
  mv "$PGDATA.new" "$PGDATA"
fi
chmod 0700 "$PGDATA" # a volume with an fsGroup is group-writable, which the server refuses
exec postgres -D "$PGDATA" -c listen_addresses='*' "$@"
