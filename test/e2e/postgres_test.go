package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// postgres is an Instance of the package, with a client that writes to it through its Service.
type postgres struct{ database }

// postgresFlags are the flags of an installation on the node of the suite.
var postgresFlags = []string{
	"-p", "PASSWORD=s'ecret", "-p", "BACKUP_KEY=battery-staple", "-p", "IMAGE_REGISTRY=localhost/catalog", "-p", "STORAGE_SIZE=1Gi", "-p", "BACKUP_SIZE=1Gi",
}

// postgresClient is the client. Each of its writes is a transaction in a connection of its own.
var postgresClient = clientPod("postgres:15.20.0-1", `timeout 5 psql -qAtc "INSERT INTO acks VALUES ($writer, $number)"`, `
        - {name: PGHOST, value: db}
        - {name: PGSSLMODE, value: verify-full}
        - {name: PGSSLROOTCERT, value: /ca/ca.crt}
        - {name: PGCONNECT_TIMEOUT, value: "3"}
        - {name: PGUSER, valueFrom: {secretKeyRef: {name: db-auth, key: username}}}
        - {name: PGPASSWORD, valueFrom: {secretKeyRef: {name: db-auth, key: password}}}
        - {name: PGDATABASE, valueFrom: {secretKeyRef: {name: db-auth, key: database}}}`)

// query runs statements as the client, each in a transaction of its own.
func (p *postgres) query(sql string) string {
	GinkgoHelper()
	return strings.TrimSpace(kubectl("exec", "client", "-n", p.ns, "--", "psql", "-qAtv", "ON_ERROR_STOP=1", "-c", sql))
}

// leader returns the name of the pod that Patroni has labeled as the leader.
func (p *postgres) leader() string {
	return strings.TrimSpace(try("kubectl", "get", "pods", "-n", p.ns, "-l", "app.kubernetes.io/instance=db,role=master", "-o",
		"jsonpath={.items[*].metadata.name}"))
}

// content is the number of the rows that were written first, and their digest.
func (p *postgres) content() string {
	GinkgoHelper()
	return p.query("SELECT count(*), md5(string_agg(text, '' ORDER BY id)) FROM data")
}

// check checks that the rows are as they were, that so many members have them, and that one can write.
func (p *postgres) check(members int) {
	GinkgoHelper()
	Expect(p.content()).To(Equal(p.digest))
	Eventually(func() string {
		return try("kubectl", "exec", p.leader(), "-n", p.ns, "--", "psql", "-U", "postgres", "-Atc", "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")
	}).Should(Equal(strconv.Itoa(members-1)+"\n"), "replicas that stream")
	p.query("INSERT INTO acks VALUES (0, 0); DELETE FROM acks WHERE writer = 0")
}

// newPostgres installs the package with three members and further flags, and writes 10,000 rows.
func newPostgres(flags ...string) *postgres {
	GinkgoHelper()
	p := installPostgres(namespace(), 3, slices.Concat(postgresFlags, flags))
	p.row("`deploy`, three members", p.compared(3))
	return p
}

// installPostgres installs the package with flags, and writes 10,000 rows.
func installPostgres(ns string, members int, flags []string) *postgres {
	GinkgoHelper()
	p := &postgres{database{pack: "postgres", ns: ns, flags: flags, client: postgresClient, data: "the rows"}}
	p.count = func(members int) string { return strconv.Itoa(members-1) + " replicas stream" }
	p.holds, p.findLeader = p.check, p.leader
	p.empty = func() { p.query("TRUNCATE acks") }
	p.stored = func() []string { return strings.Fields(p.query("SELECT writer || ':' || number FROM acks")) }
	p.addYounger = func() { p.query("CREATE TABLE IF NOT EXISTS younger (id int)") }
	p.hasYounger = func() bool { return p.query("SELECT to_regclass('younger') IS NOT NULL") == "t" }
	p.install()
	p.query("CREATE TABLE acks (writer int, number int)")
	p.query("CREATE TABLE data AS SELECT id, md5(id::text) AS text FROM generate_series(1, 10000) AS id")
	p.digest = p.content()
	Expect(p.digest).To(HavePrefix("10000|"))
	p.holds(members)
	return p
}

// target is a moment between two transactions.
type target struct{ kind, value string }

// transactions writes 100 numbered transactions, and returns moments behind some of them.
func (p *postgres) transactions() map[int]target {
	GinkgoHelper()
	p.query("CREATE TABLE numbered (number int, at timestamptz DEFAULT clock_timestamp(), lsn pg_lsn, xid xid8)")
	p.exec(`for i in $(seq 100); do
		echo "INSERT INTO numbered (number, lsn, xid) VALUES ($i, pg_current_wal_insert_lsn(), pg_current_xact_id());"
		echo "SELECT pg_sleep(0.02);"
	done >/tmp/transactions; psql -qAtv ON_ERROR_STOP=1 -f /tmp/transactions >/dev/null`)
	at := func(number int, what string) string {
		return p.query("SELECT " + what + " FROM numbered WHERE number = " + strconv.Itoa(number))
	}
	out := map[int]target{50: {"time", at(50, "at + interval '10 ms'")}}
	if wholeCatalog {
		out[1], out[99] = target{"xid", at(1, "xid")}, target{"lsn", at(100, "lsn")}
	}
	return out
}

// restoreMoment restores the data to moments between numbered transactions, and takes each restore back.
func (p *postgres) restoreMoment() {
	GinkgoHelper()
	for number, moment := range p.transactions() {
		p.change("RESTORE_TARGET="+moment.value, "RESTORE_TARGET_TYPE="+moment.kind)
		p.trigger("restore")
		Expect(p.query("SELECT count(*), max(number) FROM numbered")).To(Equal(fmt.Sprintf("%d|%d", number, number)), "by %s", moment.kind)
		p.holds(3)
		p.trigger("restore-undo")
		Expect(p.query("SELECT count(*), max(number) FROM numbered")).To(Equal("100|100"))
		p.holds(3)
	}
	p.row("`restore` to a moment between two of 100 numbered transactions", "exactly those before; the rows; 2 replicas stream")
	p.row("`restore-undo`", "all 100; the rows; 2 replicas stream")
	p.change("RESTORE_TARGET=2099-01-01 00:00:00+00", "RESTORE_TARGET_TYPE=time")
	p.refuse("restore", "Nothing was changed")
	p.holds(3)
	p.row("`restore` to a moment that never was", "it fails; the pods are the same; the rows")
	kubectl("kudo", "update", "--instance", "db", "-n", p.ns, "--wait", "--unset", "RESTORE_TARGET")
}

var _ = Describe("Package postgres", Label("catalog", "postgres"), func() {
	It("K24, K26, K28, K29: keeps every acknowledged write through its plans", func() {
		p := newPostgres()
		p.failOver(leaderDeleted, 3)
		p.plan("`backup`", 3, func() { p.change("BACKUP_NAME=good") })
		if wholeCatalog {
			p.plan("`switchover`", 3, func() { p.trigger("switchover") })
			p.plan("`configure`, limits raised", 3, func() { p.change("SETTINGS={max_connections: 150, shared_buffers: 32MB}") })
			Expect(p.query("SHOW max_connections")).To(Equal("150"))
			p.plan("`configure`, limits lowered", 3, func() { p.change("SETTINGS={max_connections: 50, shared_buffers: 32MB}") })
			Expect(p.query("SHOW max_connections")).To(Equal("50"))
			p.plan("`scale` to one", 1, func() { p.change("REPLICAS=1") })
			p.plan("`scale` to three", 3, func() { p.change("REPLICAS=3") })
			p.plan("`certificates`", 3, func() { p.trigger("certificates") })
			p.plan("`init`", 3, func() { p.change("EXTENSIONS=[hstore]") })
			p.plan("`backup-full`", 3, func() { p.trigger("backup-full") })
			p.changePassword(3)
		}
		p.restoreMoment()
		p.restore(3, func() { p.query("DELETE FROM data WHERE id > 5000") }, func() { Expect(p.content()).To(HavePrefix("5000|")) })
		p.upgrade(3)
		p.keep(3, "db-repository", "db-auth", "db-passwords", "db-backup-key", "db-sync")
		p.compareReadme()
	})
	if !wholeCatalog {
		return
	}
	for _, durability := range []string{"strict", "local"} {
		It("K29: loses no more than DURABILITY "+durability+" allows when "+leaderDeleted.what, func() {
			p := newPostgres("-p", "DURABILITY="+durability)
			p.losesWithLeader = durability == "local"
			p.failOver(leaderDeleted, 3)
		})
	}
})
