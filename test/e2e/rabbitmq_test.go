package e2e

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// rabbitmq is an Instance of the package, with a client that publishes to it through its Service.
type rabbitmq struct{ database }

// rabbitmqScript is what the client runs. The images of the suites have the module that it needs.
//
//go:embed testdata/rabbitmq.py
var rabbitmqScript string

// rabbitmqClient is the client. Each of its writes is a message in a connection of its own, which the cluster confirms.
var rabbitmqClient = clientPod("rabbitmq:3.10.8-1", `sleep 0.3; timeout 10 python3 -c "$CLIENT" publish acks "$writer:$number"`, `
        - {name: CLIENT, value: `+strconv.Quote(rabbitmqScript)+`}
        - {name: HOST, valueFrom: {secretKeyRef: {name: db-auth, key: host}}}
        - {name: MANAGEMENT, valueFrom: {secretKeyRef: {name: db-auth, key: management}}}
        - {name: USERNAME, valueFrom: {secretKeyRef: {name: db-auth, key: username}}}
        - {name: PASSWORD, valueFrom: {secretKeyRef: {name: db-auth, key: password}}}`)

// ask runs a script of the shell in the client. A member that has just started, or that stops, may close a connection: then it is repeated.
func (r *rabbitmq) ask(script string) (out string) {
	GinkgoHelper()
	Eventually(func() (err error) {
		out, err = start("kubectl", "exec", "client", "-n", r.ns, "--", "timeout", "60", "bash", "-euo", "pipefail", "-c", `rabbit() { python3 -c "$CLIENT" "$@" 2>/tmp/error; }; `+script)
		return err
	}).Should(Succeed(), script)
	return strings.TrimSpace(out)
}

// api calls the management API, and returns what a filter of jq makes of the answer, or nothing if there is none.
func (r *rabbitmq) api(filter string, args ...string) string {
	return strings.TrimSpace(try("kubectl", append([]string{"exec", "client", "-n", r.ns, "--", "bash", "-c",
		`curl -fs -m 20 --cacert /ca/ca.crt -u "$USERNAME:$PASSWORD" "${@:2}" "$MANAGEMENT/api/$1" | jq -r "$0"`, filter}, args...)...))
}

// leader returns the name of the pod that leads the queue of the messages that were published first.
func (r *rabbitmq) leader() string {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.api(".leader", "queues/%2F/data"), "rabbit@"), ".")
	return name
}

// content is the number of the messages that were published first, and their digest.
func (r *rabbitmq) content() string {
	GinkgoHelper()
	return r.ask(`rabbit read data | sort >/tmp/content; echo "$(wc -l </tmp/content) $(md5sum </tmp/content)"`)
}

// definitions are the users, virtual hosts and policies.
func (r *rabbitmq) definitions() string {
	return r.api(`[[.users[].name], [.vhosts[].name], [.policies[].name]] | map(sort | join(" ")) | join("; ")`, "definitions")
}

// check checks the messages that were published first, that so many members run and have them, the definitions, and that one can publish.
func (r *rabbitmq) check(members int) {
	GinkgoHelper()
	Eventually(r.api).WithArguments("map(select(.running)) | length", "nodes").Should(Equal(strconv.Itoa(members)), "members that run")
	Eventually(r.api).WithArguments(".online | length", "queues/%2F/data").Should(Equal(strconv.Itoa(members)), "members that have the messages")
	Expect(r.content()).To(Equal(r.digest))
	Eventually(r.definitions).Should(Equal("admin app; / other; limits"))
	r.ask("rabbit purge written; rabbit publish written now")
}

// newRabbitmq installs the package with three members and further flags, and publishes 10,000 messages.
func newRabbitmq(flags ...string) *rabbitmq {
	GinkgoHelper()
	r := &rabbitmq{database{pack: "rabbitmq", restoresInPlace: true, ns: namespace(), client: rabbitmqClient, data: "the messages"}}
	r.count = func(members int) string { return strconv.Itoa(members) + " run" }
	r.holds, r.findLeader = r.check, r.leader
	r.empty = func() { r.ask("rabbit purge acks") }
	r.stored = func() []string { return strings.Fields(r.ask("rabbit read acks")) }
	r.addYounger = func() { r.ask("rabbit purge younger") }
	r.hasYounger = func() bool { return r.ask("rabbit has younger") == "yes" }
	r.flags = slices.Concat(useStore(r.ns, "rabbitmq", r.ns), []string{"-p", "PASSWORD=s'ecret", "-p", "IMAGE_REGISTRY=localhost/catalog", "-p", "STORAGE_SIZE=1Gi", "-p", "MEMORY=768Mi"}, flags)
	r.install()
	for path, body := range map[string]string{
		"vhosts/other":        `{"default_queue_type": "quorum"}`,
		"users/app":           `{"password": "of-app", "tags": ""}`,
		"policies/%2F/limits": `{"pattern": "^limited", "definition": {"max-length": 10}, "apply-to": "queues"}`,
	} {
		r.api(".", path, "-X", "PUT", "-H", "content-type: application/json", "-d", body)
	}
	r.exec(`python3 -c "$CLIENT" fill data`)
	r.digest = r.content()
	Expect(r.digest).To(HavePrefix("10000 "))
	r.holds(3)
	r.row("`deploy`, three members", r.compared(3))
	return r
}

// lose removes the volume of one member, which joins the cluster again. Then it removes the volumes of two members, and plan recover begins a new
// cluster with the definitions of the backup.
func (r *rabbitmq) lose() {
	GinkgoHelper()
	lose := func(pod string) {
		kubectl("delete", "pvc", "data-"+pod, "-n", r.ns, "--wait=false")
		kubectl("delete", "pod", pod, "-n", r.ns, "--force", "--grace-period=0")
	}
	r.plan("the volume of the first member is lost", 3, func() {
		uid := r.uid("db-0")
		lose("db-0")
		Eventually(r.uid).WithArguments("db-0").Should(And(Not(BeEmpty()), Not(Equal(uid))))
		kubectl("wait", "--for=condition=Ready", "pod/db-0", "-n", r.ns, "--timeout=180s")
	})
	for _, pod := range []string{"db-0", "db-2"} {
		lose(pod)
	}
	Eventually(func() string { return try("kubectl", "logs", "db-0", "-n", r.ns) }).Should(ContainSubstring("no member of the cluster answers, and the volume is empty"))
	r.trigger("recover")
	r.exec(`python3 -c "$CLIENT" purge data; python3 -c "$CLIENT" fill data`)
	r.holds(3)
	r.row("two of three volumes are lost, and `recover`", "the definitions; 3 run")
}

// runPlans runs the plans that change the members, while the client publishes.
func (r *rabbitmq) runPlans() {
	GinkgoHelper()
	r.plan("`rebalance`", 3, func() { r.trigger("rebalance") })
	r.plan("`configure`, three times", 3, func() {
		for _, settings := range []string{"{heartbeat: 30}", "{heartbeat: 40}", "{disk_free_limit.absolute: 100MB}"} {
			r.change("SETTINGS=" + settings)
		}
	})
	for _, replicas := range []int{1, 3, 5, 3} {
		r.plan("`scale` to "+strconv.Itoa(replicas), replicas, func() {
			kubectl("kudo", "update", "--instance", "db", "-n", r.ns, "-p", "REPLICAS="+strconv.Itoa(replicas), "--create-service-account", "-y", "--wait")
		})
	}
	for _, name := range []string{"certificates", "expire"} {
		r.plan("`"+name+"`", 3, func() { r.trigger(name) })
	}
	r.changePassword(3)
}

var _ = Describe("Package rabbitmq", Label("catalog", "rabbitmq"), func() {
	It("K24, K28, K29: keeps every confirmed message through its plans", func() {
		r := newRabbitmq()
		r.disturbWriting(leaderDeleted, "backup", 3, r.update("BACKUP_NAME=good"))
		if wholeCatalog {
			r.runPlans()
		}
		r.restore(3, func() { r.api(".", "policies/%2F/limits", "-X", "DELETE") }, func() { Expect(r.definitions()).To(Equal("admin app; / other;"), "the policy is deleted") })
		if wholeCatalog {
			r.lose()
			r.keep(3, "db-auth", "db-passwords", "db-backup", "db-formed")
			r.upgrade(3)
			r.failOver(leaderDeleted, 3)
		}
		r.compareReadme()
	})
})
