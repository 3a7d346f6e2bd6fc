package e2e

import (
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// mariadb is an Instance of the package, with a client that writes to it through its Service.
type mariadb struct {
	database
	// digest is that of the rows that were written first.
	digest string
	// flags are those of an installation.
	flags []string
}

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

// holds checks that the rows are as they were, and that one can write.
func (m *mariadb) holds() {
	GinkgoHelper()
	Expect(m.content()).To(Equal(m.digest))
	m.query("INSERT INTO acks VALUES (0, 0); DELETE FROM acks WHERE writer = 0")
}

// plan runs a plan while the client writes: no write that was acknowledged is lost.
func (m *mariadb) plan(what string, run func()) {
	GinkgoHelper()
	m.keeps(what, "the rows; every acknowledged write", m.holds, run)
}

// newMariadb installs the package in a namespace with the Pod Security level restricted, and writes 10,000 rows.
func newMariadb() *mariadb {
	GinkgoHelper()
	ns := namespace()
	kubectl("label", "namespace", ns, "pod-security.kubernetes.io/enforce=restricted")
	m := &mariadb{database: database{ns: ns, client: mariadbClient}}
	m.empty = func() { m.query("TRUNCATE acks") }
	m.stored = func() []string { return strings.Fields(m.query("SELECT concat(writer, ':', number) FROM acks")) }
	m.flags = append(useStore(ns, "mariadb", ns), "-p", "PASSWORD=s'ec\"re\\t", "-p", "IMAGE_REGISTRY=localhost/catalog", "-p", "STORAGE_SIZE=1Gi")
	m.install(m.flags...)
	m.query("CREATE TABLE acks (writer int, number int); CREATE TABLE data (id int PRIMARY KEY, text char(32)); " +
		"INSERT INTO data SELECT seq, md5(seq) FROM seq_1_to_10000")
	m.digest = m.content()
	Expect(m.digest).To(HavePrefix("10000\t"))
	m.holds()
	m.row("`deploy`", "the rows")
	return m
}

// install installs the Instance, and connects the client.
func (m *mariadb) install(flags ...string) {
	GinkgoHelper()
	install(m.ns, "db", filepath.Join(catalog, "mariadb", "operator"), flags...)
	m.connect()
}

// refused triggers a plan, which fails with a text and changes nothing.
func (m *mariadb) refused(plan, text string) {
	GinkgoHelper()
	const started = "jsonpath={.metadata.uid} {.status.startTime}"
	before := kubectl("get", "pod", "db-0", "-n", m.ns, "-o", started)
	out, err := start("kubectl", "kudo", "plan", "trigger", "--name", plan, "--instance", "db", "-n", m.ns, "--wait")
	Expect(err).To(HaveOccurred())
	Expect(out).To(ContainSubstring(text))
	Expect(kubectl("get", "pod", "db-0", "-n", m.ns, "-o", started)).To(Equal(before))
	m.holds()
}

// restore restores a backup after a loss, and takes the restore back.
func (m *mariadb) restore() {
	GinkgoHelper()
	m.query("DELETE FROM data WHERE id > 5000; CREATE TABLE younger (id int)")
	m.change("RESTORE_NAME=good")
	m.trigger("restore")
	m.holds()
	Expect(m.query("SHOW TABLES")).To(Equal("acks\ndata"), "tables that are younger than the backup")
	m.row("`restore` of a backup by its name, after a loss", "the rows; no younger table")
	m.trigger("restore-undo")
	Expect(m.query("SELECT count(*) FROM data; SELECT count(*) FROM younger")).To(Equal("5000\n0"))
	m.row("`restore-undo`", "what was there before the restore")
	m.trigger("restore")
	m.holds()
	m.trigger("restore-done")
	m.change("RESTORE_NAME=missing")
	m.refused("restore", "there is no backup named missing: good are there")
	m.row("`restore` of a backup that never was", "it fails; the pod is the same; the rows")
}

// apart has another Instance whose names read the same if a dash joins them: each has its own backups. Without the password of a user, there are none.
func (m *mariadb) apart() {
	GinkgoHelper()
	folder := filepath.Join(catalog, "mariadb", "operator")
	other := m.ns + "-a"
	kubectl("create", "namespace", other)
	DeferCleanup(func() { kubectl("delete", "namespace", other, "--wait=false") })
	out, err := start("kubectl", append([]string{"kudo", "install", folder, "--instance", "db", "-n", other, "--create-service-account", "-y", "--wait",
		"--install-parameter", "STORE_IMAGE_REGISTRY=localhost/catalog", "--install-parameter", "STORE_SIZE=1Gi"}, append(m.flags, "-p", "BACKUP_PASSWORD=guessed")...)...)
	DeferCleanup(func() {
		kubectl("delete", "instances", "--all", "-n", other)
		kubectl("kudo", "uninstall-version", "mariadb-10.11.19-2.0.0", "-n", other, "--force", "--wait")
	})
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
	m.holds()
	Expect(m.query("SELECT @@max_connections")).To(Equal("50"))
	m.row("`configure` with a setting that the server does not know", "it fails; the rows; the settings from before, also in a new pod")
	m.change("SETTINGS={max_connections: 60}")
}

// password changes the user's password, and deletes backups.
func (m *mariadb) password() {
	GinkgoHelper()
	m.change("PASSWORD=it's new")
	m.connect()
	m.holds()
	m.row("`password`", "the rows, by the new one")
	m.trigger("backup")
	m.change("BACKUP_KEEP_FULL=1")
	m.trigger("expire")
	m.change("RESTORE_NAME=good")
	m.trigger("restore")
	m.holds()
	m.row("`expire`, and `restore` of a backup by its name", "the rows, by the new password")
}

// upgrade upgrades the package; one whose image does not exist is rolled back.
func (m *mariadb) upgrade() {
	GinkgoHelper()
	next := nextVersion("mariadb")
	if wholeCatalog {
		m.plan("`upgrade` to an image that does not exist, and `rollback`", func() {
			kubectl("kudo", "upgrade", next, "--instance", "db", "-n", m.ns, "-p", "IMAGE_TAG=missing")
			Eventually(func() string { return try("kubectl", "get", "pods", "-n", m.ns) }).Should(MatchRegexp("ErrImagePull|ImagePullBackOff"))
			kubectl("kudo", "rollback", "--instance", "db", "-n", m.ns, "--wait")
		})
	}
	m.plan("`upgrade`", func() { kubectl("kudo", "upgrade", next, "--instance", "db", "-n", m.ns, "--wait") })
}

// keep removes the Instance, and makes it anew.
func (m *mariadb) keep() {
	GinkgoHelper()
	out := kubectl("kudo", "uninstall", "--instance", "db", "-n", m.ns, "--wait")
	for _, name := range []string{"data-db-0", "db-auth", "db-backup", "db-passwords"} {
		Expect(out).To(MatchRegexp(`(?m)` + name + " stays"))
	}
	m.install(m.flags...)
	m.holds()
	m.row("uninstall, and `deploy` of the same name", "what stays is printed; the rows")
}

var _ = Describe("Package mariadb", Label("catalog", "mariadb"), func() {
	It("D1, D2, D3, K24, K28, K29: keeps every acknowledged write through its plans", func() {
		m := newMariadb()
		m.plan("the pod is deleted by force", func() {
			kubectl("delete", "pod", "db-0", "-n", m.ns, "--force", "--grace-period=0")
			kubectl("wait", "--for=condition=Ready", "pod/db-0", "-n", m.ns, "--timeout=120s")
		})
		m.plan("`backup`", func() { m.change("BACKUP_NAME=good") })
		m.plan("`configure`", func() { m.change("SETTINGS={max_connections: 50}") })
		m.misconfigure()
		m.restore()
		if wholeCatalog {
			m.apart()
			m.password()
		}
		m.upgrade()
		m.keep()
		m.compareReadme("mariadb")
	})
})
