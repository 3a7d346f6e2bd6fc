package e2e

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// fault is what happens amid a plan.
type fault struct {
	what string
	// cause causes the fault, and ends it.
	cause func(p *postgres)
	// keepsClient is set if the client writes on.
	keepsClient bool
}

// faults are those that each plan is tried with.
var faults = []fault{
	{"the leader's pod is deleted by force", func(p *postgres) {
		Eventually(p.leader).Should(MatchRegexp(`^db-\d$`))
		kubectl("delete", "pod", p.leader(), "-n", p.ns, "--force", "--grace-period=0")
	}, true},
	{"the managers are killed", func(*postgres) {
		kubectl("delete", "pods", "--all", "-n", "kudo-system", "--force", "--grace-period=0")
	}, true},
	{"the API server is away for 20 seconds", func(*postgres) {
		local("kill", "kube-apiserver")
		Consistently(func() error {
			_, err := start("kubectl", "get", "namespaces")
			return err
		}).WithTimeout(20*time.Second).Should(HaveOccurred(), "the API server is away")
		local("start", "kube-apiserver")
	}, true},
	{"the node is killed", func(*postgres) {
		local("kill", "node")
		local("start", "node")
	}, false},
}

// run starts a plan, lets a fault happen while it runs, and waits for its end. A plan that fails by it is repeated. It returns the writes that
// were acknowledged before the fault.
func (f fault) run(p *postgres, plan string, begin func()) []write {
	GinkgoHelper()
	begin()
	Eventually(p.lastRun).WithArguments(plan).Should(HaveSuffix(" IN_PROGRESS"), "plan %s runs", plan)
	Consistently(p.lastRun).WithTimeout(2*time.Second).WithArguments(plan).Should(HaveSuffix(" IN_PROGRESS"), "plan %s runs when the fault comes", plan)
	acknowledged := p.acknowledged()
	f.cause(p)
	Eventually(p.lastRun).WithTimeout(10*time.Minute).WithArguments(plan).Should(Or(HaveSuffix(" COMPLETE"), HaveSuffix(" FATAL_ERROR")), "plan %s ends", plan)
	outcome := "the plan was completed"
	if !strings.HasSuffix(p.lastRun(plan), " COMPLETE") {
		kubectl("kudo", "plan", "retry", "--instance", "db", "-n", p.ns, "--wait")
		outcome = "the plan failed, and was completed when it was repeated"
	}
	GinkgoWriter.Printf("%s amid %s: %s\n", f.what, plan, outcome)
	return acknowledged
}

// runWriting is run while the client writes. No write may be lost that was acknowledged or, if the client does not survive the fault, that was
// acknowledged before the fault.
func (f fault) runWriting(p *postgres, plan string, begin func()) {
	GinkgoHelper()
	p.startWriting()
	acknowledged := f.run(p, plan, begin)
	if f.keepsClient {
		acknowledged = p.stopWriting()
	} else {
		p.connect()
	}
	Expect(p.lost(acknowledged)).To(BeEmpty(), "acknowledged writes are lost: %s amid plan %s", f.what, plan)
	p.holds(3)
}

// lastRun returns the number and the status of the last run of a plan.
func (p *postgres) lastRun(plan string) string {
	return try("kubectl", "get", "instance", "db", "-n", p.ns, "-o", "jsonpath={.status.planStatus."+plan+".revision} {.status.planStatus."+plan+".status}")
}

var _ = Describe("Package postgres under faults", Label("catalog", "postgres"), Serial, func() {
	if !wholeCatalog {
		return
	}
	for _, f := range faults {
		It("K25: keeps every acknowledged write when "+f.what+" amid a plan", func() {
			p := newPostgres()
			trigger := func(plan string) func() {
				return func() {
					kubectl("kudo", "plan", "trigger", "--name", plan, "--instance", "db", "-n", p.ns)
				}
			}
			update := func(parameter string) func() {
				return func() { kubectl("kudo", "update", "--instance", "db", "-n", p.ns, "-p", parameter) }
			}
			f.runWriting(p, "backup", update("BACKUP_NAME=good"))
			f.runWriting(p, "backup-full", trigger("backup-full"))
			f.runWriting(p, "switchover", trigger("switchover"))
			f.runWriting(p, "configure", update("SETTINGS={max_connections: 150, shared_buffers: 32MB}"))
			f.runWriting(p, "upgrade", func() { kubectl("kudo", "upgrade", nextVersion("postgres"), "--instance", "db", "-n", p.ns) })

			p.query("CREATE TABLE younger (id int)")
			isThere := func() string { return p.query("SELECT to_regclass('younger') IS NOT NULL") }
			p.change("RESTORE_NAME=good")
			f.run(p, "restore", trigger("restore"))
			p.connect()
			Expect(isThere()).To(Equal("f"), "a restore while %s", f.what)
			p.holds(3)
			f.run(p, "restore-undo", trigger("restore-undo"))
			p.connect()
			Expect(isThere()).To(Equal("t"), "the undo of a restore while %s", f.what)
			p.holds(3)
		})
	}
})
