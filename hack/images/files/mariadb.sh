#!/bin/bash
# Stands in for the entrypoint of MariaDB's and MySQL's images: MARIADB_ROOT_PASSWORD and MARIADB_DATABASE, or the same of MYSQL.
set -eu
if [ $# -gt 0 ] && [ "${1:0:1}" != - ]; then exec "$@"; fi
password=${MARIADB_ROOT_PASSWORD:-${MYSQL_ROOT_PASSWORD}} database=${MARIADB_DATABASE:-${MYSQL_DATABASE}}
data=/var/lib/mysql
mkdir -p /run/mysqld
# Whoever is not root is told nothing of users: it would try to change owners.
[ "$(id -u)" != 0 ] || set -- --user=root "$@"
if [ ! -d $data/mysql ]; then
  mariadb-install-db --no-defaults $([ "$(id -u)" != 0 ] || echo --user=root) --datadir=$data --skip-test-db --auth-root-authentication-method=normal >/dev/null
fi
quoted=${password//\\/\\\\} quoted=${quoted//\'/\\\'}
cat > /tmp/init.sql <<SQL
CREATE DATABASE IF NOT EXISTS \`$database\`;
CREATE USER IF NOT EXISTS root@'%';
ALTER USER root@'%' IDENTIFIED BY '$quoted', root@localhost IDENTIFIED BY '$quoted';
GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;
SQL
exec mariadbd --no-defaults --datadir=$data --socket=/run/mysqld/mysqld.sock --bind-address=0.0.0.0 --init-file=/tmp/init.sql "$@"
