package tenancy

import (
	"os/exec"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// moment is what happens while plans run.
type moment struct {
	name string
	// flags are those of the managers; led is set if these ask for the lease.
	flags []string
	led   bool
	// begin takes the manager away, if it goes; end brings the next one.
	begin, end func(t *testing.T, all *managers)
	// change is done to each namespace after the attack, and once to the cluster.
	change func(t *testing.T, s *stage)
	once   func(t *testing.T)
	after  func(t *testing.T, all *managers)
	// steady is set if the manager runs through; strangers, if what kudo has kept of its runs is not its own any more;
	// recreated, if the owners are others, so that the records may be collected.
	steady, strangers, recreated bool
	first                        *exec.Cmd
}

// moments are those of the table.
//
//	                what the manager remembers   the records
//	steady          all                          hold
//	killed          nothing                      hold
//	taken over      the new one nothing          hold
//	upgraded        nothing                      have no seal
//	restored        nothing                      are of objects with other uids
//	key lost        nothing                      are sealed with a key that is lost
func moments() []*moment {
	alone := []string{"--leader-elect=false"}
	kill := func(_ *testing.T, all *managers) { all.kill() }
	start := func(t *testing.T, all *managers) { all.start(t, alone...) }
	nothing := func(*testing.T, *managers) {}
	return []*moment{
		{name: "steady", flags: alone, begin: nothing, end: nothing, steady: true},
		{name: "killed", flags: alone, begin: kill, end: start},
		takenOver(),
		{name: "upgraded", flags: alone, begin: kill, end: start, change: unseal, strangers: true,
			once: func(t *testing.T) { kudo(t, "init", "--upgrade", "--external-manager", "--wait-time=0s") }},
		{name: "restored", flags: alone, begin: kill, end: start, change: restore, strangers: true, recreated: true},
		{name: "key lost", flags: alone, begin: kill, end: start, strangers: true,
			once: func(t *testing.T) {
				env.Must(t, suite.Delete(ctx, &corev1.Secret{ObjectMeta: gen.Meta(home, keyring.SecretName)}))
				kudo(t, "init", "--rotate-history-key", "--drop-old")
			}},
	}
}

// takenOver is the moment in which the leader freezes, and a second manager takes over. The first one resumes afterwards: it has
// lost the lease, and must end without another write.
func takenOver() *moment {
	m := &moment{name: "taken over", flags: []string{"--leader-elect=true"}, led: true}
	var old string
	m.begin = func(t *testing.T, all *managers) {
		old = suite.Leader(t)
		signal(t, m.first, syscall.SIGSTOP)
	}
	m.end = func(t *testing.T, all *managers) {
		all.start(t, m.flags...)
		suite.AwaitLeader(t, old)
	}
	m.after = func(t *testing.T, all *managers) {
		signal(t, m.first, syscall.SIGCONT)
		if err := m.first.Wait(); err == nil {
			t.Error("who has lost the lease ends as if all were well")
		}
		all.kill()
		env.Must(t, client.IgnoreNotFound(suite.Delete(ctx, &coordinationv1.Lease{ObjectMeta: gen.Meta(home, "kudo-manager")})))
	}
	return m
}

// unseal takes the seals off all records of a namespace: those of a release without them.
func unseal(t *testing.T, s *stage) {
	t.Helper()
	records := &appsv1.ControllerRevisionList{}
	env.Must(t, suite.List(ctx, records, client.InNamespace(s.ns)))
	for _, r := range records.Items {
		if _, sealed := r.Annotations[v1beta1.SealAnnotation]; sealed {
			s.replace(t, r.Name, func(r *appsv1.ControllerRevision) { r.Annotations = nil })
		}
	}
}

// restore puts all Instances and records of a namespace back as a backup does that keeps the status: the objects have other
// uids, and refer to the old ones.
func restore(t *testing.T, s *stage) {
	t.Helper()
	instances, records := &v1beta1.InstanceList{}, &appsv1.ControllerRevisionList{}
	env.Must(t, suite.List(ctx, instances, client.InNamespace(s.ns)))
	env.Must(t, suite.List(ctx, records, client.InNamespace(s.ns)))
	for n := range instances.Items {
		i := &instances.Items[n]
		env.Must(t, suite.Delete(ctx, i.DeepCopy()))
		status := i.Status
		i.UID, i.ResourceVersion = "", ""
		env.Must(t, suite.Create(ctx, i))
		i.Status = status
		env.Must(t, suite.Status().Update(ctx, i))
	}
	for n := range records.Items {
		r := &records.Items[n]
		_ = suite.Delete(ctx, r.DeepCopy()) // the garbage collector may have been faster
		r.UID, r.ResourceVersion = "", ""
		env.Must(t, suite.Create(ctx, r))
	}
}
