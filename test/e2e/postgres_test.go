package e2e

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// postgres is an Instance of the package, with a client that writes to it through its Service.
type postgres struct {
	database
	// digest is that of the rows that were written first.
	digest string
}

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
	return strings.TrimSpace(kubectl(p.psql(sql)...))
}

// try runs statements as the client, and returns what is printed, with the error if there is one.
func (p *postgres) try(sql string) string { return strings.TrimSpace(try("kubectl", p.psql(sql)...)) }

// psql are the arguments of kubectl that run statements as the client.
func (p *postgres) psql(sql string) []string {
	return []string{"exec", "client", "-n", p.ns, "--", "psql", "-qAtv", "ON_ERROR_STOP=1", "-c", sql}
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

// holds checks that the rows are as they were, that so many members have them, and that one can write.
func (p *postgres) holds(members int) {
	GinkgoHelper()
	Expect(p.content()).To(Equal(p.digest))
	Eventually(func() string {
		return try("kubectl", "exec", p.leader(), "-n", p.ns, "--", "psql", "-U", "postgres", "-Atc", "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")
	}).Should(Equal(strconv.Itoa(members-1)+"\n"), "replicas that stream")
	p.query("INSERT INTO acks VALUES (0, 0); DELETE FROM acks WHERE writer = 0")
}

// plan runs a plan while the client writes: no write that was acknowledged is lost.
func (p *postgres) plan(what string, members int, run func()) {
	GinkgoHelper()
	p.keeps(what, "the rows; every acknowledged write; "+strconv.Itoa(members-1)+" replicas stream", func() { p.holds(members) }, run)
}

// newPostgres installs the package with three members, and writes 10,000 rows.
func newPostgres() *postgres {
	GinkgoHelper()
	p := &postgres{database: database{ns: namespace(), client: postgresClient}}
	p.empty = func() { p.query("TRUNCATE acks") }
	p.stored = func() []string { return strings.Fields(p.query("SELECT writer || ':' || number FROM acks")) }
	install(p.ns, "db", filepath.Join(catalog, "postgres", "operator"), postgresFlags...)
	p.connect()
	p.query("CREATE TABLE acks (writer int, number int)")
	p.query("CREATE TABLE data AS SELECT id, md5(id::text) AS text FROM generate_series(1, 10000) AS id")
	p.digest = p.content()
	Expect(p.digest).To(HavePrefix("10000|"))
	p.holds(3)
	p.row("`deploy`, three members", "the rows; 2 replicas stream")
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

// restore restores the data to moments between numbered transactions, and takes each restore back.
func (p *postgres) restore() {
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
	before := strings.TrimSpace(kubectl("get", "pods", "-n", p.ns, "-l", "app.kubernetes.io/component=server", "-o", "jsonpath={.items[*].metadata.uid}"))
	p.change("RESTORE_TARGET=2099-01-01 00:00:00+00", "RESTORE_TARGET_TYPE=time")
	out, err := start("kubectl", "kudo", "plan", "trigger", "--name", "restore", "--instance", "db", "-n", p.ns, "--wait")
	Expect(err).To(HaveOccurred())
	Expect(out).To(ContainSubstring("Nothing was changed"))
	Expect(kubectl("get", "pods", "-n", p.ns, "-l", "app.kubernetes.io/component=server", "-o", "jsonpath={.items[*].metadata.uid}")).To(Equal(before))
	p.holds(3)
	p.row("`restore` to a moment that never was", "it fails; the pods are the same; the rows")

	kubectl("kudo", "update", "--instance", "db", "-n", p.ns, "--wait", "--unset", "RESTORE_TARGET", "-p", "RESTORE_NAME=missing")
	out, err = start("kubectl", "kudo", "plan", "trigger", "--name", "restore", "--instance", "db", "-n", p.ns, "--wait")
	Expect(err).To(HaveOccurred())
	Expect(out).To(ContainSubstring("there is no backup named missing: good"))
	p.change("RESTORE_NAME=good")
	p.trigger("restore")
	Expect(p.query("SELECT to_regclass('numbered') IS NULL")).To(Equal("t"), "what is younger than the backup")
	p.holds(3)
	p.row("`restore` of a backup by its name", "no younger table; the rows; 2 replicas stream")
}

// upgrade upgrades the package; one whose image does not exist is rolled back.
func (p *postgres) upgrade() {
	GinkgoHelper()
	next := nextVersion("postgres")
	if wholeCatalog {
		p.plan("`upgrade` to an image that does not exist, and `rollback`", 3, func() {
			kubectl("kudo", "upgrade", next, "--instance", "db", "-n", p.ns, "-p", "IMAGE_TAG=missing")
			Eventually(func() string { return try("kubectl", "get", "pods", "-n", p.ns) }).Should(MatchRegexp("ErrImagePull|ImagePullBackOff"))
			kubectl("kudo", "rollback", "--instance", "db", "-n", p.ns, "--wait")
		})
	}
	p.plan("`upgrade`", 3, func() { kubectl("kudo", "upgrade", next, "--instance", "db", "-n", p.ns, "--wait") })
}

// keep removes the Instance, and makes it anew.
func (p *postgres) keep() {
	GinkgoHelper()
	out := kubectl("kudo", "uninstall", "--instance", "db", "-n", p.ns, "--wait")
	for _, name := range []string{"data-db-0", "data-db-1", "data-db-2", "db-repository", "db-auth", "db-passwords", "db-backup-key", "db-sync"} {
		Expect(out).To(MatchRegexp(`(?m)` + name + " stays"))
	}
	install(p.ns, "db", filepath.Join(catalog, "postgres", "operator"), postgresFlags...)
	p.holds(3)
	p.row("uninstall, and `deploy` of the same name", "what stays is printed; the rows; 2 replicas stream")
}

var _ = Describe("Package postgres", Label("catalog", "postgres"), func() {
	It("K24, K26, K28, K29: keeps every acknowledged write through its plans", func() {
		p := newPostgres()
		lost, gap := p.during(func() {
			const address = "SELECT 'server ' || inet_server_addr()"
			former := p.query(address)
			kubectl("delete", "pod", p.leader(), "-n", p.ns, "--force", "--grace-period=0")
			// The former server answers until it is killed, and labels the pod that has its name now.
			Eventually(func() string { return p.try(address) }).Should(And(HavePrefix("server "), Not(Equal(former))))
		})
		Expect(lost).To(BeEmpty(), "acknowledged writes that a failover has lost, although a second member had them")
		p.holds(3)
		p.row("the leader's pod is deleted by force", "the rows; every acknowledged write; 2 replicas stream")
		GinkgoWriter.Printf("failover: no write was acknowledged for %s\n", gap.Round(time.Millisecond))

		p.plan("`backup`", 3, func() { p.change("BACKUP_NAME=good") })
		if wholeCatalog {
			p.plan("`switchover`", 3, func() { p.trigger("switchover") })
			p.plan("`configure`, limits raised", 3, func() { p.change("SETTINGS={max_connections: 150, shared_buffers: 32MB}") })
			Expect(p.query("SHOW max_connections")).To(Equal("150"))
			p.plan("`configure`, limits lowered", 3, func() { p.change("SETTINGS={max_connections: 50, shared_buffers: 32MB}") })
			Expect(p.query("SHOW max_connections")).To(Equal("50"))
			p.plan("`scale` to one", 1, func() { p.change("REPLICAS=1") })
			p.plan("`scale` to three", 3, func() { p.change("REPLICAS=3") })
			p.plan("`init`", 3, func() { p.change("EXTENSIONS=[hstore]") })
			p.plan("`backup-full`", 3, func() { p.trigger("backup-full") })
			p.change(`PASSWORD=n'ew "1\`)
			p.connect()
			p.holds(3)
			p.row("`password`", "the rows, by the new one; 2 replicas stream")
			p.change("PASSWORD=s'ecret")
			p.connect()
		}
		p.restore()
		p.upgrade()
		p.keep()
		p.compareReadme("postgres")
	})
})
