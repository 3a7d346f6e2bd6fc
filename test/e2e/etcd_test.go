package e2e

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// etcd is an Instance of the package, with a client that writes to it through its Service.
type etcd struct {
	database
	// digest is that of the keys that were written first.
	digest string
	// flags are those of an installation.
	flags []string
}

// etcdClient is the client. Each of its writes is a put in a connection of its own.
var etcdClient = clientPod("etcd:3.4.23-1", `etcdctl put "acks/$writer:$number" x >/dev/null`, `
        - {name: ETCDCTL_API, value: "3"}
        - {name: ETCDCTL_CACERT, value: /ca/ca.crt}
        - {name: ETCDCTL_DIAL_TIMEOUT, value: 3s}
        - {name: ETCDCTL_ENDPOINTS, valueFrom: {secretKeyRef: {name: db-auth, key: endpoint}}}
        - {name: ETCDCTL_USER, valueFrom: {secretKeyRef: {name: db-auth, key: username}}}
        - {name: ETCDCTL_PASSWORD, valueFrom: {secretKeyRef: {name: db-auth, key: password}}}`)

// status returns what the members say of themselves, a line each, with the address, the id, the version, the size, whether it leads and whether it
// only learns.
func (e *etcd) status() string {
	return try("kubectl", "exec", "client", "-n", e.ns, "--", "bash", "-c", "etcdctl endpoint status --cluster 2>/dev/null; true")
}

// leader returns the name of the pod that leads.
func (e *etcd) leader() string {
	for _, line := range strings.Split(e.status(), "\n") {
		if fields := strings.Split(line, ", "); len(fields) > 5 && fields[4] == "true" {
			return strings.TrimPrefix(strings.SplitN(fields[0], ".", 2)[0], "https://")
		}
	}
	return ""
}

// ready returns whether a pod is ready.
func (e *etcd) ready(pod string) string {
	return try("kubectl", "get", "pod", pod, "-n", e.ns, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
}

// content is the number of the keys that were written first, and their digest.
func (e *etcd) content() string {
	GinkgoHelper()
	return strings.TrimSpace(e.exec(`etcdctl get --prefix data/ >/tmp/content; echo "$(grep -c ^data/ /tmp/content) $(md5sum </tmp/content)"`))
}

// holds checks the keys that were written first, the number of members that vote and answer, and that the cluster takes a write.
func (e *etcd) holds(members int) {
	GinkgoHelper()
	Expect(e.content()).To(Equal(e.digest))
	Expect(strings.Count(e.exec("etcdctl member list"), ", false\n")).To(Equal(members), "members that vote")
	Expect(strings.Count(e.status(), "\n")).To(Equal(members), "members that answer")
	e.exec("etcdctl put written now; etcdctl del written")
	Expect(e.exec("etcdctl user list")).To(Equal("members\nroot\n"))
}

// noteHeld notes what was tried, with what holds compares.
func (e *etcd) noteHeld(what, compared string, members int) {
	e.row(what, compared+"; "+strconv.Itoa(members)+" vote")
}

// plan has the client write while something is done: no write that was acknowledged is lost.
func (e *etcd) plan(what string, members int, run func()) {
	GinkgoHelper()
	e.keeps(what, "the keys; every acknowledged write; "+strconv.Itoa(members)+" vote", func() { e.holds(members) }, run)
}

// fails runs plan restore, which fails with a message and replaces no pod.
func (e *etcd) fails(message string) {
	GinkgoHelper()
	pods := func() string {
		return kubectl("get", "pods", "-n", e.ns, "-l", "app.kubernetes.io/component=server", "-o", "jsonpath={.items[*].metadata.uid}")
	}
	before := pods()
	out, err := start("kubectl", "kudo", "plan", "trigger", "--name", "restore", "--instance", "db", "-n", e.ns, "--wait")
	Expect(err).To(HaveOccurred())
	Expect(out).To(ContainSubstring(message))
	Expect(pods()).To(Equal(before))
}

// etcdFolder is the folder of the package.
var etcdFolder = filepath.Join(catalog, "etcd", "operator")

// newEtcd installs the package with three members, and writes 10,000 keys.
func newEtcd() *etcd {
	GinkgoHelper()
	e := &etcd{database: database{ns: namespace(), client: etcdClient}}
	e.empty = func() { e.exec("etcdctl del --prefix acks/") }
	e.stored = func() []string {
		return strings.Fields(strings.ReplaceAll(e.exec("etcdctl get --prefix acks/ --keys-only"), "acks/", ""))
	}
	e.flags = append(useStore(e.ns, "etcd", e.ns), "-p", "PASSWORD=s'ecret", "-p", "IMAGE_REGISTRY=localhost/catalog", "-p", "STORAGE_SIZE=1Gi", "-p", "QUOTA=256Mi")
	install(e.ns, "db", etcdFolder, e.flags...)
	e.connect()
	e.exec(`for i in {001..100}; do
		{ echo; for j in {01..100}; do echo "put data/$i-$j value-$((10#$i * 7919 + 10#$j * 104729))"; done; echo; echo; } >/tmp/txn
		until etcdctl txn --command-timeout=10s </tmp/txn >/dev/null; do sleep 1; done
	done`)
	e.digest = e.content()
	Expect(e.digest).To(HavePrefix("10000 "))
	e.holds(3)
	e.noteHeld("`deploy`, three members", "the keys", 3)
	return e
}

// restore restores a backup, takes that back, and refuses what does not exist.
func (e *etcd) restore() {
	GinkgoHelper()
	e.exec("etcdctl del --prefix data/001; etcdctl put younger yes")
	e.change("RESTORE_NAME=missing")
	e.fails("there is no backup named missing: good are there. Nothing was changed")
	e.row("`restore` of a backup that does not exist", "it fails; the pods are the same")
	e.change("RESTORE_NAME=good")
	e.trigger("restore")
	Expect(e.exec("etcdctl get younger")).To(BeEmpty(), "what is younger than the backup")
	e.holds(3)
	e.noteHeld("`restore` of a backup by its name", "the keys; no younger one", 3)
	if wholeCatalog {
		e.trigger("restore-undo")
		Expect(e.exec("etcdctl get younger --print-value-only")).To(Equal("yes\n"))
		Expect(e.content()).To(HavePrefix("9900 "))
		e.noteHeld("`restore-undo`", "what was there before the restore", 3)
		e.trigger("restore")
		e.holds(3)
		e.trigger("restore-done")
		e.holds(3)
		e.noteHeld("`restore-done`", "the keys", 3)
	}
}

// upgrade upgrades the package; one whose image does not exist is rolled back.
func (e *etcd) upgrade() {
	GinkgoHelper()
	next := nextVersion("etcd")
	e.plan("`upgrade` to an image that does not exist, and `rollback`", 3, func() {
		kubectl("kudo", "upgrade", next, "--instance", "db", "-n", e.ns, "-p", "IMAGE_TAG=missing")
		Eventually(func() string { return try("kubectl", "get", "pods", "-n", e.ns) }).Should(MatchRegexp("ErrImagePull|ImagePullBackOff"))
		kubectl("kudo", "rollback", "--instance", "db", "-n", e.ns, "--wait")
	})
	e.plan("`upgrade`", 3, func() {
		kubectl("kudo", "upgrade", next, "--instance", "db", "-n", e.ns, "--wait")
	})
}

// lose removes the volume of one member, which joins the cluster again. Then it removes the volumes of two members, and plan recover makes a cluster
// of the data of the third.
func (e *etcd) lose() {
	GinkgoHelper()
	lose := func(pod string) {
		kubectl("delete", "pvc", "data-"+pod, "-n", e.ns, "--wait=false")
		kubectl("delete", "pod", pod, "-n", e.ns, "--force", "--grace-period=0")
	}
	e.plan("the volume of the first member is lost", 3, func() {
		lose("db-0")
		Eventually(e.ready).WithArguments("db-0").WithTimeout(2 * time.Minute).Should(Equal("True"))
	})
	for _, pod := range []string{"db-0", "db-2"} {
		lose(pod)
	}
	Eventually(func() string { return try("kubectl", "logs", "db-0", "-n", e.ns) }).Should(ContainSubstring("no member of the cluster answers, and the volume is empty"))
	e.change("RECOVER_FROM=db-1")
	e.trigger("recover")
	e.holds(3)
	e.noteHeld("two of three volumes are lost, and `recover` from the third", "the keys", 3)
}

// keep removes the Instance, and makes it anew.
func (e *etcd) keep() {
	GinkgoHelper()
	out := kubectl("kudo", "uninstall", "--instance", "db", "-n", e.ns, "--wait")
	for _, name := range []string{"data-db-0", "data-db-1", "data-db-2", "db-auth", "db-passwords", "db-backup", "db-formed"} {
		Expect(out).To(MatchRegexp(`(?m)` + name + " stays"))
	}
	install(e.ns, "db", etcdFolder, e.flags...)
	e.holds(3)
	e.noteHeld("uninstall, and `deploy` of the same name", "what stays is printed; the keys", 3)
}

var _ = Describe("Package etcd", Label("catalog", "etcd"), func() {
	if !wholeCatalog {
		return
	}
	It("K24, K28, K29: keeps every acknowledged write through its plans", func() {
		e := newEtcd()
		e.plan("the leader's pod is deleted by force", 3, func() {
			former := e.leader()
			kubectl("delete", "pod", former, "-n", e.ns, "--force", "--grace-period=0")
			Eventually(e.leader).Should(And(Not(BeEmpty()), Not(Equal(former))))
			Eventually(e.ready).WithArguments(former).WithTimeout(2 * time.Minute).Should(Equal("True"))
		})
		e.plan("`backup`", 3, func() { e.change("BACKUP_NAME=good") })
		if wholeCatalog {
			e.plan("`switchover`", 3, func() {
				former := e.leader()
				e.trigger("switchover")
				Expect(e.leader()).NotTo(Equal(former))
			})
			e.plan("`configure`", 3, func() {
				e.change("SETTINGS={auto-compaction-mode: periodic, auto-compaction-retention: 2h, heartbeat-interval: 150}")
			})
			e.plan("`scale` to one", 1, func() { e.change("REPLICAS=1") })
			e.plan("`scale` to three", 3, func() { e.change("REPLICAS=3") })
			// The account may change the claims that there were.
			e.plan("`scale` to five", 5, func() {
				kubectl("kudo", "update", "--instance", "db", "-n", e.ns, "-p", "REPLICAS=5", "--create-service-account", "-y", "--wait")
			})
			e.plan("`scale` back to three", 3, func() { e.change("REPLICAS=3") })
			e.plan("`defrag`", 3, func() { e.trigger("defrag") })
			e.plan("`certificates`", 3, func() { e.trigger("certificates") })
			e.plan("`expire`", 3, func() { e.trigger("expire") })
			e.change(`PASSWORD=n'ew "1\ x`)
			e.connect()
			e.holds(3)
			e.noteHeld("`password`", "the keys, by the new one", 3)
			e.change("PASSWORD=s'ecret")
			e.connect()
		}
		e.restore()
		if wholeCatalog {
			e.lose()
			e.keep()
			e.upgrade()
		}
		e.compareReadme("etcd")
	})
})
