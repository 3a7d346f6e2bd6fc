package e2e

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// mariadb is an Instance of the package, with a client that writes to it through its Service.
type mariadb struct{ database }

// mariadbClient is the client. Each of its writes is a transaction in a connection of its own.
var mariadbClient = clientPod("mariadb:10.11.19-1", `timeout 5 `+mariadbCommand+` -e "INSERT INTO acks VALUES ($writer, $number)"`, `
        - {name: HOST, valueFrom: {secretKeyRef: {name: db-auth, key: host}}}
        - {name: USERNAME, valueFrom: {secretKeyRef: {name: db-auth, key: username}}}
        - {name: MYSQL_PWD, valueFrom: {secretKeyRef: {name: db-auth, key: password}}}
        - {name: DATABASE, valueFrom: {secretKeyRef: {name: db-auth, key: database}}}`)

// mariadbCommand is the command of the client's shell that runs statements.
const mariadbCommand = `mariadb --no-defaults --host="$HOST" --user="$USERNAME" --connect-timeout=3 --ssl-ca=/ca/ca.crt --ssl-verify-server-cert "$DATABASE"`

// query runs statements as the client.
func (m *mariadb) query(sql string) string {
	GinkgoHelper()
	return strings.TrimSpace(kubectl("exec", "client", "-n", m.ns, "--", "bash", "-euc", mariadbCommand+` -BNe "$0"`, sql))
}

// content is the number of the rows that were written first, and their digest.
func (m *mariadb) content() string {
	GinkgoHelper()
	return m.query("SET group_concat_max_len = 1000000; SELECT count(*), md5(group_concat(text ORDER BY id)) FROM data")
}

// check checks that the rows are as they were, and that one can write.
func (m *mariadb) check(int) {
	GinkgoHelper()
	Expect(m.content()).To(Equal(m.digest))
	m.query("INSERT INTO acks VALUES (0, 0); DELETE FROM acks WHERE writer = 0")
}

// newMariadb installs the package with further flags in a namespace with the Pod Security level restricted, and writes 10,000 rows.
func newMariadb(flags ...string) *mariadb {
	GinkgoHelper()
	ns := namespace()
	kubectl("label", "namespace", ns, "pod-security.kubernetes.io/enforce=restricted")
	m := &mariadb{database{pack: "mariadb", ns: ns, client: mariadbClient, data: "the rows"}}
	m.holds, m.findLeader = m.check, func() string { return "db-0" }
	m.empty = func() { m.query("TRUNCATE acks") }
	m.stored = func() []string { return strings.Fields(m.query("SELECT concat(writer, ':', number) FROM acks")) }
	m.addYounger = func() { m.query("CREATE TABLE IF NOT EXISTS younger (id int)") }
	m.hasYounger = func() bool {
		tables := m.query("SHOW TABLES")
		Expect(tables).To(BeElementOf("acks\ndata", "acks\ndata\nyounger"))
		return strings.HasSuffix(tables, "younger")
	}
	m.flags = slices.Concat(useStore(ns, "mariadb", ns), []string{"-p", "PASSWORD=s'ec\"re\\t", "-p", "IMAGE_REGISTRY=localhost/catalog", "-p", "STORAGE_SIZE=1Gi"}, flags)
	m.install()
	m.query("CREATE TABLE acks (writer int, number int); CREATE TABLE data (id int PRIMARY KEY, text char(32)); " +
		"INSERT INTO data SELECT seq, md5(seq) FROM seq_1_to_10000")
	m.digest = m.content()
	Expect(m.digest).To(HavePrefix("10000\t"))
	m.holds(1)
	m.row("`deploy`", m.compared(1))
	return m
}

// apart has another Instance whose names read the same if a dash joins them: each has its own backups. Without the password of a user, there are none.
func (m *mariadb) apart() {
	GinkgoHelper()
	other := m.ns + "-a"
	makeNamespace(other)
	out, err := start("kubectl", slices.Concat([]string{"kudo", "install", m.folder(), "--instance", "db", "-n", other, "--create-service-account", "-y",
		"--wait", "--wait-time", "600"}, // each of three tries takes 90 seconds
		storeFlags, m.flags, []string{"-p", "BACKUP_PASSWORD=guessed"})...)
	DeferCleanup(uninstallVersions, other)
	Expect(err).To(HaveOccurred())
	Expect(out).To(ContainSubstring("401 Unauthorized"))
	kubectl("kudo", "update", "--instance", "db", "-n", other, "-p", "BACKUP_PASSWORD=of-append", "-p", "RESTORE_NAME=good")
	kubectl("kudo", "plan", "trigger", "--name", "deploy", "--instance", "db", "-n", other, "--wait")
	out, err = start("kubectl", "kudo", "plan", "trigger", "--name", "restore", "--instance", "db", "-n", other, "--wait")
	Expect(err).To(HaveOccurred())
	Expect(out).To(ContainSubstring("there is no backup named good"))
	kubectl("kudo", "update", "--instance", "db", "-n", other, "-p", "RESTORE_FROM="+m.ns+".db", "--wait")
	kubectl("kudo", "plan", "trigger", "--name", "restore", "--instance", "db", "-n", other, "--wait")
	Expect(strings.TrimSpace(kubectl("exec", "db-0", "-n", other, "--", "mariadb", "--defaults-file=/config/server.cnf", "-BNe", "SELECT count(*) FROM data", "app"))).
		To(Equal("10000"))
	m.row("`restore` of another Instance's backup", "the rows; its own name finds nothing; a wrong password stores nothing")
}

// misconfigure sets a setting that the server does not know: it runs on, and starts again with those from before.
func (m *mariadb) misconfigure() {
	GinkgoHelper()
	out, err := start("kubectl", "kudo", "update", "--instance", "db", "-n", m.ns, "-p", "SETTINGS={max_conections: 60}", "--wait")
	Expect(err).To(HaveOccurred())
	Expect(out).To(ContainSubstring("unknown variable 'max_conections=60'"))
	kubectl("delete", "pod", "db-0", "-n", m.ns)
	kubectl("wait", "--for=condition=Ready", "pod/db-0", "-n", m.ns, "--timeout=120s")
	Eventually(func() string { // the Service routes to a new pod only a moment after the pod is ready
		return try("kubectl", "exec", "client", "-n", m.ns, "--", "bash", "-euc", mariadbCommand+` -BNe "SELECT 1"`)
	}).Should(HavePrefix("1"))
	m.holds(1)
	Expect(m.query("SELECT @@max_connections")).To(Equal("50"))
	m.row("`configure` with a setting that the server does not know", "it fails; the rows; the settings from before, also in a new pod")
	m.change("SETTINGS={max_connections: 60}")
}

// expire deletes backups without a name.
func (m *mariadb) expire() {
	GinkgoHelper()
	m.trigger("backup")
	m.change("BACKUP_KEEP_FULL=1")
	m.trigger("expire")
	m.change("RESTORE_NAME=good")
	m.trigger("restore")
	m.holds(1)
	m.row("`expire`, and `restore` of a backup by its name", m.compared(1))
}

var _ = Describe("Package mariadb", Label("catalog", "mariadb"), func() {
	It("D1, D2, D3, K24, K28, K29: keeps every acknowledged write through its plans", func() {
		m := newMariadb()
		m.disturbWriting(leaderDeleted, "backup", 1, m.update("BACKUP_NAME=good"))
		m.plan("`configure`", 1, func() { m.change("SETTINGS={max_connections: 50}") })
		m.misconfigure()
		m.restore(1, func() { m.query("DELETE FROM data WHERE id > 5000") }, func() { Expect(m.content()).To(HavePrefix("5000\t")) })
		if wholeCatalog {
			m.plan("`certificates`", 1, func() { m.trigger("certificates") })
			m.apart()
			m.changePassword(1)
			m.expire()
			m.failOver(leaderDeleted, 1)
		}
		m.upgrade(1)
		m.keep(1, "db-auth", "db-backup", "db-passwords")
		m.compareReadme()
	})
})
