package e2e

import (
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// etcd is an Instance of the package, with a client that writes to it through its Service.
type etcd struct{ database }

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

// check checks the keys that were written first, the number of members that vote and answer, and that the cluster takes a write.
func (e *etcd) check(members int) {
	GinkgoHelper()
	Expect(e.content()).To(Equal(e.digest))
	Expect(strings.Count(e.exec("etcdctl member list"), ", false\n")).To(Equal(members), "members that vote")
	Eventually(func() int { return strings.Count(e.status(), "\n") }).Should(Equal(members), "members that answer") // names of new pods come late
	e.exec("etcdctl put written now; etcdctl del written")
	Expect(e.exec("etcdctl user list")).To(Equal("members\nroot\n"))
}

// newEtcd installs the package with three members and further flags, and writes 10,000 keys.
func newEtcd(flags ...string) *etcd {
	GinkgoHelper()
	e := &etcd{database{pack: "etcd", ns: namespace(), client: etcdClient, data: "the keys"}}
	e.count = func(members int) string { return strconv.Itoa(members) + " vote" }
	e.holds, e.findLeader = e.check, e.leader
	e.empty = func() { e.exec("etcdctl del --prefix acks/") }
	e.stored = func() []string {
		return strings.Fields(strings.ReplaceAll(e.exec("etcdctl get --prefix acks/ --keys-only"), "acks/", ""))
	}
	e.addYounger = func() { e.exec("etcdctl put younger yes") }
	e.hasYounger = func() bool { return e.exec("etcdctl get younger --print-value-only") == "yes\n" }
	e.flags = slices.Concat(useStore(e.ns, "etcd", e.ns), []string{"-p", "PASSWORD=s'ecret", "-p", "IMAGE_REGISTRY=localhost/catalog", "-p", "STORAGE_SIZE=1Gi", "-p", "QUOTA=256Mi"}, flags)
	e.install()
	e.exec(`for i in {001..100}; do
		{ echo; for j in {01..100}; do echo "put data/$i-$j value-$((10#$i * 7919 + 10#$j * 104729))"; done; echo; echo; } >/tmp/txn
		until etcdctl txn --command-timeout=10s </tmp/txn >/dev/null; do sleep 1; done
	done`)
	e.digest = e.content()
	Expect(e.digest).To(HavePrefix("10000 "))
	e.holds(3)
	e.row("`deploy`, three members", e.compared(3))
	return e
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
	e.row("two of three volumes are lost, and `recover` from the third", e.compared(3))
}

// runPlans runs the plans that change the members, while the client writes.
func (e *etcd) runPlans() {
	GinkgoHelper()
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
	for _, name := range []string{"defrag", "certificates", "expire"} {
		e.plan("`"+name+"`", 3, func() { e.trigger(name) })
	}
	e.changePassword(3)
}

var _ = Describe("Package etcd", Label("catalog", "etcd"), func() {
	It("K24, K28, K29: keeps every acknowledged write through its plans", func() {
		e := newEtcd()
		e.disturbWriting(leaderDeleted, "backup", 3, e.update("BACKUP_NAME=good"))
		if wholeCatalog {
			e.runPlans()
		}
		e.restore(3, func() { e.exec("etcdctl del --prefix data/001") }, func() { Expect(e.content()).To(HavePrefix("9900 ")) })
		if wholeCatalog {
			e.lose()
			e.keep(3, "db-auth", "db-passwords", "db-backup", "db-formed")
			e.upgrade(3)
			e.failOver(leaderDeleted, 3)
		}
		e.compareReadme()
	})
})
