package upgrade

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"regexp"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/lifecycle"
)

// tarballs serves CRD tarballs.
var tarballs *httptest.Server

// scenario is a piece of the life of a package.
type scenario struct {
	name string
	// prepare brings a testbed to where the scenario begins.
	prepare func(b *testbed) error
	// act is what the user does, and ended waits for what comes of it.
	act, ended func(b *testbed) error
	// plan and runs are the last plan of Instance i, and the number of its run; none if it does not exist in the end.
	plan string
	runs int64
}

// testbed is the namespace of a scenario.
type testbed struct {
	scenario
	ns string
	// stop is where the manager is stopped in the scenario, or nil if it is not.
	stop *stop
	// foreign are the objects of others as they were.
	foreign map[string]string
}

// limit bounds how long a plan may take.
const limit = 3 * time.Minute

func (b *testbed) String() string {
	if b.stop == nil || !b.stop.reached {
		return b.name
	}
	when := "before"
	if b.stop.after {
		when = "after"
	}
	return fmt.Sprintf("%s, stopped %s write %d, %s", b.name, when, b.stop.at, b.stop.writes[len(b.stop.writes)-1])
}

func (b *testbed) create(objs ...client.Object) error {
	for _, obj := range objs {
		if err := suite.Create(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

func (b *testbed) edit(change func(*v1beta1.Instance)) error {
	i := &v1beta1.Instance{}
	if err := suite.Get(ctx, types.NamespacedName{Namespace: b.ns, Name: "i"}, i); err != nil {
		return err
	}
	patch := client.MergeFrom(i.DeepCopy())
	change(i)
	return suite.Patch(ctx, i, patch)
}

// awaitRun waits for the success of the n-th run of Instance i, which is of a plan.
func (b *testbed) awaitRun(plan string, n int64) error {
	i, err := suite.Await(ctx, b.ns, "i", limit, func(i *v1beta1.Instance) bool {
		return env.PlanEnded(plan, n)(i) && i.Status.ObservedGeneration == i.Generation && i.Status.AggregatedStatus.ActivePlanName == ""
	})
	if err != nil {
		return err
	}
	if st := i.Status.PlanStatus[plan]; st.Status != v1beta1.Complete {
		return fmt.Errorf("plan %s is %s: %s", plan, st.Status, st.Message)
	}
	return nil
}

// awaitInstall waits for the success of an install plan.
func (b *testbed) awaitInstall(name string) error {
	return poll(func() error {
		ov := &v1beta1.OperatorVersion{}
		if err := suite.Get(ctx, types.NamespacedName{Namespace: b.ns, Name: name}, ov); err != nil {
			return err
		}
		if !ov.Installed() || ov.Status.ObservedGeneration != ov.Generation {
			return fmt.Errorf("the install plan of %s: %+v", name, ov.Status.AggregatedStatus)
		}
		return nil
	})
}

// poll waits until a check has no error any more.
func poll(check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("after %s: %w", limit, err)
		case <-time.After(500 * time.Millisecond): // a state is read by many requests
		}
	}
}

func deployed(version func(ns string) *v1beta1.OperatorVersion) func(*testbed) error {
	return func(b *testbed) error {
		ov := version(b.ns)
		if err := b.create(ov, gen.Instance("i", ov, nil)); err != nil {
			return err
		}
		return b.awaitRun("deploy", 1)
	}
}

func installed(name string) func(*testbed) error {
	return func(b *testbed) error {
		if err := b.create(lifecycle.Fleet(b.ns, name)); err != nil {
			return err
		}
		return b.awaitInstall(name)
	}
}

func creates(objects func(b *testbed) []client.Object) func(*testbed) error {
	return func(b *testbed) error { return b.create(objects(b)...) }
}

func runs(plan string, n int64) func(*testbed) error {
	return func(b *testbed) error { return b.awaitRun(plan, n) }
}

func harbored(b *testbed) *v1beta1.OperatorVersion { return lifecycle.Harbored(b.ns, tarballs.URL) }

// scenarios are those of R21.
var scenarios = []scenario{
	{
		name:    "deploy",
		prepare: creates(func(b *testbed) []client.Object { return []client.Object{lifecycle.First(b.ns)} }),
		act: creates(func(b *testbed) []client.Object {
			return []client.Object{gen.Instance("i", lifecycle.First(b.ns), nil)}
		}),
		ended: runs("deploy", 1), plan: "deploy", runs: 1,
	},
	{
		name: "update", prepare: deployed(lifecycle.First),
		act: func(b *testbed) error {
			return b.edit(func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"VALUE": "b", "EXTRA": "false"} })
		},
		ended: runs("update", 2), plan: "update", runs: 2,
	},
	{
		name: "upgrade",
		prepare: func(b *testbed) error {
			return errors.Join(deployed(lifecycle.First)(b), b.create(lifecycle.Second(b.ns)))
		},
		act: func(b *testbed) error {
			return b.edit(func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "app-2" })
		},
		ended: runs("upgrade", 2), plan: "upgrade", runs: 2,
	},
	{
		name: "cleanup", prepare: deployed(lifecycle.Cleaning),
		act: func(b *testbed) error {
			return suite.Delete(ctx, &v1beta1.Instance{ObjectMeta: gen.Meta(b.ns, "i")})
		},
		ended: func(b *testbed) error {
			_, err := suite.Await(ctx, b.ns, "i", limit, func(i *v1beta1.Instance) bool { return i == nil })
			return err
		},
	},
	{
		name: "parent with child",
		prepare: creates(func(b *testbed) []client.Object {
			return []client.Object{lifecycle.Child(b.ns), lifecycle.Parent(b.ns)}
		}),
		act: creates(func(b *testbed) []client.Object {
			return []client.Object{gen.Instance("i", lifecycle.Parent(b.ns), nil)}
		}),
		ended: runs("deploy", 1), plan: "deploy", runs: 1,
	},
	{
		name: "install plan", prepare: func(*testbed) error { return nil },
		act: creates(func(b *testbed) []client.Object {
			ov := lifecycle.Fleet(b.ns, "fleet")
			return []client.Object{ov, gen.Instance("i", ov, nil)}
		}),
		ended: runs("deploy", 1), plan: "deploy", runs: 1,
	},
	{
		name: "sharing", prepare: installed("fleet"),
		act: creates(func(b *testbed) []client.Object {
			return []client.Object{lifecycle.Fleet(b.ns, "other")}
		}),
		ended: func(b *testbed) error { return b.awaitInstall("other") },
	},
	{
		name:    "CRD tarball",
		prepare: creates(func(b *testbed) []client.Object { return []client.Object{harbored(b)} }),
		act: creates(func(b *testbed) []client.Object {
			return []client.Object{gen.Instance("i", harbored(b), nil)}
		}),
		ended: runs("deploy", 1), plan: "deploy", runs: 1,
	},
}

// testbeds makes a testbed for each scenario, with objects of others beside those of the plans, and brings it to where the scenario
// begins.
func testbeds(all ...scenario) []*testbed {
	GinkgoHelper()
	out := make([]*testbed, len(all))
	side(len(all), func(n int) error {
		ns, err := suite.Namespace(ctx)
		if err != nil {
			return err
		}
		out[n] = &testbed{scenario: all[n], ns: ns}
		if err := out[n].bystanders(); err != nil {
			return err
		}
		return all[n].prepare(out[n])
	}, func(n int) string { return all[n].name + " is prepared" })
	return out
}

// side does the same for n testbeds at a time, and fails the spec with each error.
func side(n int, do func(n int) error, name func(n int) string) {
	GinkgoHelper()
	failed := make([]error, n)
	done := make(chan int)
	for i := range n {
		go func() {
			defer func() { done <- i }()
			defer GinkgoRecover()
			failed[i] = do(i)
		}()
	}
	for range n {
		<-done
	}
	for i, err := range failed {
		if err != nil {
			GinkgoTB().Errorf("%s: %v", name(i), err)
		}
	}
	if GinkgoTB().Failed() {
		GinkgoTB().FailNow()
	}
}

// eachBed is side for testbeds.
func eachBed(beds []*testbed, what string, do func(b *testbed) error) {
	GinkgoHelper()
	side(len(beds), func(n int) error { return do(beds[n]) }, func(n int) string { return fmt.Sprintf("%s: %s", beds[n], what) })
}

// bystanders puts objects of others into the testbed: of the kinds of the plans, with names that look alike, a claim with data of a
// user among them.
func (b *testbed) bystanders() error {
	objs := b.others()
	if err := b.create(objs...); err != nil {
		return err
	}
	b.foreign = map[string]string{}
	for _, obj := range objs {
		b.foreign[fmt.Sprintf("%T", obj)] = fingerprint(obj)
	}
	return nil
}

func (b *testbed) others() []client.Object {
	return []client.Object{
		&corev1.ConfigMap{ObjectMeta: gen.Meta(b.ns, "i-one-9"), Data: map[string]string{"key": "theirs"}},
		&corev1.Secret{ObjectMeta: gen.Meta(b.ns, "i-theirs"), StringData: map[string]string{"key": "theirs"}},
		&corev1.PersistentVolumeClaim{ObjectMeta: gen.Meta(b.ns, "data-i-0"), Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}},
	}
}

// fingerprint is what of a foreign object must not change. Kubernetes writes the status of a claim.
func fingerprint(obj client.Object) string {
	text := fmt.Sprint(obj.GetUID(), obj.GetGeneration(), obj.GetLabels(), obj.GetOwnerReferences(), obj.GetDeletionTimestamp())
	if claim, is := obj.(*corev1.PersistentVolumeClaim); is {
		return text + fmt.Sprint(claim.Spec.Resources)
	}
	return text + obj.GetResourceVersion() + fmt.Sprint(obj.GetAnnotations())
}

// checkForeign checks that no object of another owner has changed.
func (b *testbed) checkForeign() error {
	var failed []error
	for _, obj := range b.others() {
		if err := suite.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			failed = append(failed, err)
		} else if now, was := fingerprint(obj), b.foreign[fmt.Sprintf("%T", obj)]; now != was {
			failed = append(failed, fmt.Errorf("%T of another owner was changed from %s to %s", obj, was, now))
		}
	}
	return errors.Join(failed...)
}

// recordFormat is the format of records, which the versions may write differently.
var recordFormat = regexp.MustCompile(`\n *"format": \d+,`)

// versionBefore is what records and baselines have of the version before, which an earlier version of kudo did not write.
var versionBefore = regexp.MustCompile(`\n *"(from|completed)": \{\n *"operatorVersion": "[0-9.]+"\n *\},`)

// state reads the testbed.
func (b *testbed) state() lifecycle.State {
	out := lifecycle.Read(GinkgoTB(), suite, b.ns, true)
	for key, text := range out {
		out[key] = versionBefore.ReplaceAllString(recordFormat.ReplaceAllString(text, ""), "")
	}
	return out
}

// checkState waits until the testbed has the state that an undisturbed run of its scenario leaves.
func (b *testbed) checkState(want map[string]lifecycle.State) error {
	return poll(func() error {
		if diff := cmp.Diff(want[b.name], b.state()); diff != "" {
			return fmt.Errorf("the end is not that of an undisturbed run (-undisturbed +after the change): %s", diff)
		}
		return nil
	})
}

// checkAgain runs the last plan again: nothing that it has written changes, and nothing is made anew.
func (b *testbed) checkAgain() error {
	if b.plan == "" {
		return nil
	}
	before := lifecycle.Versions(lifecycle.Objects(GinkgoTB(), suite, b.ns))
	b.runs++
	err := b.edit(func(i *v1beta1.Instance) {
		i.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: b.plan, UID: types.UID(fmt.Sprintf("again-%d", b.runs))}
	})
	if err != nil {
		return err
	}
	if err := b.awaitRun(b.plan, b.runs); err != nil {
		return err
	}
	if diff := cmp.Diff(before, lifecycle.Versions(lifecycle.Objects(GinkgoTB(), suite, b.ns))); diff != "" {
		return fmt.Errorf("a second run changed objects: %s", diff)
	}
	return nil
}

// undisturbed runs all scenarios with a manager, and returns the state that each leaves, and its writes.
func undisturbed(m *manager) (states map[string]lifecycle.State, writes map[string][]string) {
	GinkgoHelper()
	beds := testbeds(scenarios...)
	for _, b := range beds {
		b.stop = m.stopAt(b.ns, 0, false)
	}
	eachBed(beds, "the run", func(b *testbed) error { return errors.Join(b.act(b), b.ended(b)) })
	ends := make([]lifecycle.State, len(beds))
	side(len(beds), func(n int) (err error) {
		ends[n], err = beds[n].rest()
		return err
	}, func(n int) string { return beds[n].name + ": the end" })
	states, writes = map[string]lifecycle.State{}, map[string][]string{}
	for n, b := range beds {
		_, made := m.isReached(b.stop)
		states[b.name], writes[b.name] = ends[n], slices.Clone(made)
	}
	return states, writes
}

// rest waits until the testbed does not change for a second, and returns its state.
func (b *testbed) rest() (lifecycle.State, error) {
	last, since := b.state(), time.Now()
	err := poll(func() error {
		if now := b.state(); now.Collectable() || !maps.Equal(last, now) {
			last, since = now, time.Now()
		}
		if time.Since(since) < time.Second {
			return errors.New("it still changes")
		}
		return nil
	})
	return last, err
}
