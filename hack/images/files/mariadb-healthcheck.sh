#!/bin/bash
# Stands in for that of MariaDB's image: the server answers, also without the password.
exec mariadb-admin --no-defaults --protocol=tcp --host=127.0.0.1 --user=healthcheck ping
