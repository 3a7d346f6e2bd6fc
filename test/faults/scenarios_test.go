package faults

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/lifecycle"
)

// scenario is a piece of the life of a package.
type scenario struct {
	name string
	// slow tells that it deletes definitions: the cluster's garbage collector then waits half a minute for them, and
	// collects nothing.
	slow bool
	// prepare brings a testbed to where the scenario begins.
	prepare func(w *testbed)
	// act is what the user does, and ended waits for what comes of it.
	act, ended func(w *testbed)
	// again does the same a second time, and waits; nil where that makes no sense.
	again func(w *testbed)
}

func deployed(ov func(ns string) *v1beta1.OperatorVersion) func(w *testbed) {
	return func(w *testbed) {
		w.Helper()
		v := ov(w.ns)
		w.create(v, gen.Instance("i", v, nil))
		w.await("i", complete("deploy", 1))
	}
}

func runs(plan string, n int64) func(w *testbed) { return runsOf("i", plan, n) }

// runsOf waits for the success of the n-th run of an Instance, which is of a plan.
func runsOf(name, plan string, n int64) func(w *testbed) {
	return func(w *testbed) {
		w.Helper()
		i := w.await(name, complete(plan, n))
		if st := i.Status.PlanStatus[plan]; st.Status != v1beta1.Complete {
			w.Fatalf("plan %s is %s: %s", plan, st.Status, st.Message)
		}
	}
}

func rerun(plan string, n int64) func(w *testbed) {
	return func(w *testbed) {
		w.Helper()
		w.trigger("i", plan, n)
		runs(plan, n)(w)
	}
}

// scenarios are those whose writes are enumerated.
var scenarios = []scenario{
	{
		name:    "deploy",
		prepare: func(w *testbed) { w.create(lifecycle.First(w.ns)) },
		act:     func(w *testbed) { w.create(gen.Instance("i", lifecycle.First(w.ns), nil)) },
		ended:   runs("deploy", 1), again: rerun("deploy", 2),
	},
	{
		name: "update", prepare: deployed(lifecycle.First),
		act: func(w *testbed) {
			w.edit("i", func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"VALUE": "b", "EXTRA": "false"} })
		},
		ended: runs("update", 2), again: rerun("update", 3),
	},
	{
		name:    "upgrade",
		prepare: func(w *testbed) { deployed(lifecycle.First)(w); w.create(lifecycle.Second(w.ns)) },
		act:     func(w *testbed) { w.edit("i", func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "app-2" }) },
		ended:   runs("upgrade", 2), again: rerun("upgrade", 3),
	},
	{
		name: "cleanup", prepare: deployed(lifecycle.Cleaning),
		act:   func(w *testbed) { env.Must(w, suite.Delete(ctx, w.instance("i"))) },
		ended: func(w *testbed) { w.await("i", gone) },
	},
	{
		name: "parent and child",
		prepare: func(w *testbed) {
			w.create(lifecycle.Child(w.ns), lifecycle.Parent(w.ns))
		},
		act:   func(w *testbed) { w.create(gen.Instance("i", lifecycle.Parent(w.ns), nil)) },
		ended: runs("deploy", 1), again: rerun("deploy", 2),
	},
	{
		name:    "tarball",
		prepare: func(w *testbed) { w.create(harbored(w.ns)) },
		act:     func(w *testbed) { w.create(gen.Instance("i", harbored(w.ns), nil)) },
		ended:   runs("deploy", 1), again: rerun("deploy", 2),
	},
	{
		name: "release of a tarball, but for what a user needs", slow: true,
		prepare: func(w *testbed) {
			deployed(harbored)(w)
			w.create(lifecycle.Raft(w.ns))
		},
		act: func(w *testbed) { env.Must(w, suite.Delete(ctx, w.instance("i"))) },
		ended: func(w *testbed) {
			w.await("i", gone)
			env.Read(w, suite, lifecycle.Raft(w.ns), w.ns, "theirs")
		},
	},
	{
		name:    "install plan",
		prepare: func(*testbed) {},
		act:     func(w *testbed) { v := lifecycle.Fleet(w.ns, "fleet"); w.create(v, gen.Instance("i", v, nil)) },
		ended:   runs("deploy", 1),
	},
	{
		name:    "install plan with tasks of all kinds",
		prepare: func(w *testbed) { w.create(lifecycle.Child(w.ns)) },
		act:     func(w *testbed) { v := outfitted(w.ns); w.create(v, gen.Instance("i", v, nil)) },
		ended:   runs("deploy", 1),
	},
	{
		name:    "restoring an Installation",
		prepare: func(w *testbed) { w.create(lifecycle.Fleet(w.ns, "fleet")); w.installed("fleet") },
		act:     func(w *testbed) { w.stripInstallation("fleet") },
		ended:   func(w *testbed) { w.ran("fleet", 2) },
	},
	{
		name:    "sharing",
		prepare: func(w *testbed) { w.create(lifecycle.Fleet(w.ns, "fleet")); w.installed("fleet") },
		act:     func(w *testbed) { w.create(lifecycle.Fleet(w.ns, "other")) },
		ended:   func(w *testbed) { w.installed("other") },
	},
	{
		name: "release of what is shared",
		prepare: func(w *testbed) {
			for _, name := range []string{"fleet", "other"} {
				w.create(lifecycle.Fleet(w.ns, name))
				w.installed(name)
			}
		},
		act:   func(w *testbed) { env.Must(w, suite.Delete(ctx, lifecycle.Fleet(w.ns, "fleet"))) },
		ended: func(w *testbed) { w.released("fleet") },
	},
	{
		name: "release", slow: true,
		prepare: func(w *testbed) { w.create(lifecycle.Fleet(w.ns, "fleet")); w.installed("fleet") },
		act:     func(w *testbed) { env.Must(w, suite.Delete(ctx, lifecycle.Fleet(w.ns, "fleet"))) },
		ended: func(w *testbed) {
			w.released("fleet")
			env.Within(w, max(w.timeout, termination), "the end of the namespace", func() string {
				err := suite.Get(ctx, client.ObjectKey{Name: lifecycle.FleetNamespace(w.ns)}, &corev1.Namespace{})
				if !apierrors.IsNotFound(err) {
					return fmt.Sprint(err)
				}
				return ""
			})
		},
	},
}

// parts are the scenarios that run side by side, and, if they are wanted, the slow ones, which would hold up the others.
func parts(slow bool) [][]scenario {
	out := [][]scenario{nil, nil}
	for _, s := range scenarios {
		n := 0
		if s.slow {
			n = 1
		}
		out[n] = append(out[n], s)
	}
	if !slow {
		return out[:1]
	}
	return out
}

// outfitted is a package whose install plan makes what it deletes again, and installs a dependency.
func outfitted(ns string) *v1beta1.OperatorVersion {
	return gen.Version(ns, "outfitted", gen.Param("VALUE", "a", ""), gen.Param("EXTRA", "true", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"),
		gen.Template("job.yaml", lifecycle.JobYAML), gen.Template("extra.yaml", lifecycle.ExtraYAML), gen.Apply("job", "job.yaml"),
		gen.Task("clean", v1beta1.DeleteTask, v1beta1.TaskSpec{Resources: []string{"job.yaml"}}),
		gen.Task("extra", v1beta1.ToggleTask, v1beta1.TaskSpec{Resources: []string{"extra.yaml"}, Parameter: "EXTRA"}),
		gen.Task("child", v1beta1.KudoOperatorTask, v1beta1.TaskSpec{Package: "child", OperatorVersion: "1.0.0", InstanceName: "kid"}),
		gen.Serial("install", "job", "clean", "extra", "child"), gen.InstallPlan("install"))
}

// harbored is the package with the CRD tarball of a testbed.
func harbored(ns string) *v1beta1.OperatorVersion { return lifecycle.Harbored(ns, tarballs.URL) }

// installed waits for the success of an install plan.
func (w *testbed) installed(name string) {
	w.Helper()
	ov := &v1beta1.OperatorVersion{}
	env.Within(w, w.timeout, "the success of the install plan of "+w.ns+"/"+name, func() string {
		if err := suite.Get(ctx, client.ObjectKey{Namespace: w.ns, Name: name}, ov); err != nil {
			return err.Error()
		}
		if !ov.Installed() || ov.Status.ObservedGeneration != ov.Generation {
			return fmt.Sprintf("%+v\n%s", ov.Status.AggregatedStatus, manager.tail())
		}
		return ""
	})
}

// released waits until an OperatorVersion no longer exists.
func (w *testbed) released(name string) {
	w.Helper()
	env.Within(w, max(w.timeout, termination), "the release of "+w.ns+"/"+name, func() string {
		ov := &v1beta1.OperatorVersion{}
		if err := suite.Get(ctx, client.ObjectKey{Namespace: w.ns, Name: name}, ov); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("%v %+v", err, ov.Status.Conditions)
		}
		return ""
	})
}

// stripInstallation removes an Installation past its finalizer, as an administrator can.
func (w *testbed) stripInstallation(name string) {
	w.Helper()
	w.collected = true
	ov := env.Read(w, suite, &v1beta1.OperatorVersion{}, w.ns, name)
	i := env.Read(w, suite, &v1beta1.Installation{}, "", ov.InstallationName())
	env.Must(w, suite.Delete(ctx, i))
	now := &v1beta1.Installation{}
	env.Within(w, w.timeout, "an Installation without finalizer", func() string {
		err := suite.Get(ctx, client.ObjectKeyFromObject(i), now)
		if apierrors.IsNotFound(err) || err == nil && now.UID != i.UID {
			return ""
		}
		env.Must(w, err)
		now.Finalizers = nil
		return fmt.Sprintf("it is there: %v", suite.Update(ctx, now))
	})
}

// ran waits for the n-th run of an install plan to succeed.
func (w *testbed) ran(name string, n int64) {
	w.Helper()
	ov := &v1beta1.OperatorVersion{}
	env.Within(w, w.timeout, fmt.Sprintf("run %d of the install plan of %s/%s", n, w.ns, name), func() string {
		if err := suite.Get(ctx, client.ObjectKey{Namespace: w.ns, Name: name}, ov); err != nil {
			return err.Error()
		}
		if ov.Status.Revision < n || ov.Status.AggregatedStatus.Status != v1beta1.Complete {
			return fmt.Sprintf("run %d, %+v", ov.Status.Revision, ov.Status.AggregatedStatus)
		}
		return ""
	})
}
