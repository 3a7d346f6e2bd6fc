package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// fault is what happens amid a plan.
type fault struct {
	what string
	// cause causes the fault, and ends it.
	cause func(d *database)
	// keepsClient is set if the client writes on, and keepsLeader if the pod that takes writes does.
	keepsClient, keepsLeader bool
	// repeats is how often failOver causes the fault in the whole form.
	repeats int
}

// leaderDeleted is the fault that the short form of each package is tried with.
var leaderDeleted = fault{what: "the leader's pod is deleted by force", keepsClient: true, repeats: 20, cause: func(d *database) {
	kubectl("delete", "pod", d.awaitLeader(), "-n", d.ns, "--force", "--grace-period=0")
}}

// leaderFrozen is the fault after which two members may believe that they lead: the former leader has not seen that another one has taken over.
var leaderFrozen = fault{what: "the leader's pod is frozen for a minute", keepsClient: true, repeats: 5, cause: func(d *database) {
	uid := d.uid(d.awaitLeader())
	DeferCleanup(func() { signal(uid, syscall.SIGCONT) })
	Consistently(func() int { return signal(uid, syscall.SIGSTOP) }).WithTimeout(time.Minute).WithPolling(5*time.Second).ShouldNot(BeZero(), "processes of the leader's pod")
	signal(uid, syscall.SIGCONT)
}}

// signal sends a signal to all processes of a pod, and returns how many there are.
func signal(uid string, number syscall.Signal) int {
	GinkgoHelper()
	Expect(uid).NotTo(BeEmpty(), "the uid of a pod")
	pids := processesOf("", uid)
	for _, pid := range pids {
		_ = syscall.Kill(pid, number) // it may have ended
	}
	return len(pids)
}

// faults are those that plans are tried with.
var faults = []fault{
	leaderDeleted,
	{what: "the managers are killed", keepsClient: true, keepsLeader: true, cause: func(*database) {
		kubectl("delete", "pods", "--all", "-n", "kudo-system", "--force", "--grace-period=0")
	}},
	{what: "the API server is away for 20 seconds", keepsClient: true, keepsLeader: true, cause: func(*database) {
		local("kill", "kube-apiserver")
		Consistently(func() error {
			_, err := start("kubectl", "get", "namespaces")
			return err
		}).WithTimeout(20*time.Second).Should(HaveOccurred(), "the API server is away")
		local("start", "kube-apiserver")
	}},
	{what: "the node is killed", cause: func(*database) {
		local("kill", "node")
		local("start", "node")
	}},
}

// awaitLeader waits for a leader, and returns the name of its pod.
func (d *database) awaitLeader() (leader string) {
	GinkgoHelper()
	Eventually(func() string {
		leader = d.findLeader()
		return leader
	}).Should(MatchRegexp(`^db-\d$`), "a member leads")
	return leader
}

// disturb starts a plan, has a fault happen while the plan runs, and waits for the end of the plan. A plan that fails is repeated. It returns the
// writes that were acknowledged before the fault.
func (d *database) disturb(f fault, plan string, begin func()) []write {
	GinkgoHelper()
	begin()
	Eventually(d.lastRun).WithArguments(plan).Should(HaveSuffix(" IN_PROGRESS"), "plan %s runs", plan)
	Consistently(d.lastRun).WithTimeout(2*time.Second).WithArguments(plan).Should(HaveSuffix(" IN_PROGRESS"), "plan %s runs when the fault comes", plan)
	acknowledged := d.acknowledged()
	f.cause(d)
	Eventually(d.lastRun).WithTimeout(10*time.Minute).WithArguments(plan).Should(Or(HaveSuffix(" COMPLETE"), HaveSuffix(" FATAL_ERROR")), "plan %s ends", plan)
	outcome := "the plan was completed"
	if !strings.HasSuffix(d.lastRun(plan), " COMPLETE") {
		kubectl("kudo", "plan", "retry", "--instance", "db", "-n", d.ns, "--wait")
		outcome = "the plan failed, and was completed when it was repeated"
	}
	kubectl("rollout", "status", "statefulset/db", "-n", d.ns, "--timeout=300s")
	GinkgoWriter.Printf("%s amid %s: %s\n", f.what, plan, outcome)
	return acknowledged
}

// disturbWriting is disturb while the client writes. No write may be lost that was acknowledged or, if the client does not survive the fault, that was
// acknowledged before the fault; unless the package says that it loses some with its leader.
func (d *database) disturbWriting(f fault, plan string, members int, begin func()) {
	GinkgoHelper()
	d.startWriting()
	acknowledged := d.disturb(f, plan, begin)
	if f.keepsClient {
		acknowledged = d.stopWriting()
	} else {
		d.connect()
	}
	lost, compared := d.lost(acknowledged), "every acknowledged write"
	if d.losesWithLeader && !f.keepsLeader {
		GinkgoWriter.Printf("%s amid %s: %d of %d acknowledged writes are lost\n", f.what, plan, len(lost), len(acknowledged))
		compared = "lost writes are measured"
	} else {
		Expect(lost).To(BeEmpty(), "acknowledged writes are lost: %s amid plan %s", f.what, plan)
	}
	d.holds(members)
	d.row("`"+plan+"`, and "+f.what, d.compared(members, compared))
}

// failOver has the leader fail while the client writes: once in the short form, else as often as the fault says. It reports what is lost, and for how
// long no write is acknowledged.
func (d *database) failOver(f fault, members int) {
	GinkgoHelper()
	times := 1
	if wholeCatalog {
		times = f.repeats
	}
	var losses []int
	var gaps []time.Duration
	for range times {
		lost, gap := d.during(func() {
			former := d.awaitLeader()
			f.cause(d)
			Eventually(d.uid).WithArguments(former).ShouldNot(BeEmpty())
			kubectl("wait", "--for=condition=Ready", "pod/"+former, "-n", d.ns, "--timeout=180s")
			d.awaitWrite()
			d.holds(members) // the former leader follows
		})
		d.holds(members)
		losses, gaps = append(losses, len(lost)), append(gaps, gap.Round(time.Millisecond))
	}
	slices.Sort(losses)
	slices.Sort(gaps)
	AddReportEntry("When "+f.what, fmt.Sprintf("%d times: acknowledged writes lost: at most %d, mostly at most %d; no write was acknowledged for: at most %v, mostly at most %v",
		times, losses[times-1], losses[times/2], gaps[times-1], gaps[times/2]))
	if d.losesWithLeader {
		d.row(f.what, d.compared(members, "lost writes are measured"))
		return
	}
	Expect(losses[times-1]).To(BeZero(), "acknowledged writes that are lost when %s", f.what)
	d.row(f.what, d.compared(members, "every acknowledged write"))
}

// uid returns the uid of a pod of the Instance, or none.
func (d *database) uid(pod string) string {
	return kubectl("get", "pod", pod, "-n", d.ns, "--ignore-not-found", "-o", "jsonpath={.metadata.uid}")
}

// lastRun returns the number and the status of the last run of a plan.
func (d *database) lastRun(plan string) string {
	return try("kubectl", "get", "instance", "db", "-n", d.ns, "-o", "jsonpath={.status.planStatus."+plan+".revision} {.status.planStatus."+plan+".status}")
}

// update returns a function that sets a parameter, and does not wait for the plan that this starts.
func (d *database) update(parameter string) func() {
	return func() { kubectl("kudo", "update", "--instance", "db", "-n", d.ns, "-p", parameter) }
}

// begin returns a function that triggers a plan, and does not wait for its end.
func (d *database) begin(plan string) func() {
	return func() { kubectl("kudo", "plan", "trigger", "--name", plan, "--instance", "db", "-n", d.ns) }
}

// disturbRestore restores the backup named good, and takes that back, with a fault amid both.
func (d *database) disturbRestore(f fault, members int) {
	GinkgoHelper()
	d.addYounger()
	d.change("RESTORE_NAME=good")
	for _, c := range []struct {
		plan    string
		younger bool
	}{{"restore", false}, {"restore-undo", true}} {
		d.disturb(f, c.plan, d.begin(c.plan))
		d.connect()
		Expect(d.hasYounger()).To(Equal(c.younger), "%s after plan %s", f.what, c.plan)
		d.holds(members)
	}
	d.row("`restore` and `restore-undo`, and "+f.what, d.compared(members, "what is younger"))
}

// disturbAll has each fault happen amid each of its plans. settings are two values of SETTINGS.
func (d *database) disturbAll(members int, settings [2]string) {
	GinkgoHelper()
	for n, f := range faults {
		d.disturbWriting(f, "backup", members, d.update("BACKUP_NAME=good"))
		d.disturbWriting(f, "configure", members, d.update("SETTINGS="+settings[n%2]))
		d.disturbRestore(f, members)
		d.trigger("restore-done")
		d.change("BACKUP_NAME=before-" + strconv.Itoa(n))
	}
	d.disturbWriting(leaderDeleted, "upgrade", members, func() { kubectl("kudo", "upgrade", nextVersion(d.pack), "--instance", "db", "-n", d.ns) })
	d.compareReadme()
}

var _ = Describe("A package under faults", Label("catalog"), Serial, func() {
	if !wholeCatalog {
		return
	}
	for _, f := range faults {
		It("K25: postgres keeps every acknowledged write when "+f.what+" amid a plan", Label("postgres"), func() {
			p := newPostgres()
			p.disturbWriting(f, "backup", 3, p.update("BACKUP_NAME=good"))
			p.disturbWriting(f, "backup-full", 3, p.begin("backup-full"))
			p.disturbWriting(f, "switchover", 3, p.begin("switchover"))
			p.disturbWriting(f, "configure", 3, p.update("SETTINGS={max_connections: 150, shared_buffers: 32MB}"))
			p.disturbWriting(f, "upgrade", 3, func() { kubectl("kudo", "upgrade", nextVersion("postgres"), "--instance", "db", "-n", p.ns) })
			p.disturbRestore(f, 3)
		})
	}
	It("K25: etcd keeps every acknowledged write", Label("etcd"), func() {
		e := newEtcd()
		e.disturbAll(3, [2]string{"{auto-compaction-mode: periodic, auto-compaction-retention: 2h}", "{heartbeat-interval: 150}"})
	})
	It("K25: mariadb keeps every acknowledged write", Label("mariadb"), func() {
		m := newMariadb()
		m.disturbAll(1, [2]string{"{max_connections: 50}", "{max_connections: 60}"})
	})
	It("K25: rabbitmq keeps every confirmed message", Label("rabbitmq"), func() {
		r := newRabbitmq()
		r.disturbAll(3, [2]string{"{heartbeat: 30}", "{heartbeat: 40}"})
	})
	It("K25: redis keeps every acknowledged write, but what its leader has not replicated when it dies", Label("redis"), func() {
		r := newRedis()
		r.disturbAll(3, [2]string{"{maxmemory: 200mb, save: '900 1'}", "{maxmemory: 220mb}"})
	})
	freeze := func(d *database) {
		GinkgoHelper()
		d.failOver(leaderFrozen, 3)
		d.compareReadme()
	}
	It("K29: postgres loses no acknowledged write when "+leaderFrozen.what, Label("postgres"), func() { freeze(&newPostgres().database) })
	It("K29: etcd loses no acknowledged write when "+leaderFrozen.what, Label("etcd"), func() { freeze(&newEtcd().database) })
	It("K29: rabbitmq loses no confirmed message when "+leaderFrozen.what, Label("rabbitmq"), func() { freeze(&newRabbitmq().database) })
	It("K29: measures what redis loses when "+leaderFrozen.what, Label("redis"), func() { freeze(&newRedis().database) })
})
