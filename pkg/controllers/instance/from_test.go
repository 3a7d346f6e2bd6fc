package instance

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/gen"
)

// printingVersion is a version whose task app prints the version before.
func printingVersion(name, version string, mods ...gen.VersionMod) *v1beta1.OperatorVersion {
	all := []gen.VersionMod{
		gen.Template("app-0.yaml", `{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {from: "{{ .From.AppVersion }}/{{ .From.OperatorVersion }} {{ .PlanName }} {{ .OperatorVersion }} {{ .Params.VALUE }}"}}`),
		gen.Serial("backup", "app"), gen.Serial("update", "app"),
	}
	ov := webVersion(name, append(all, mods...)...)
	ov.Spec.Version, ov.Spec.AppVersion = version, "app-"+version
	return ov
}

// use is a change to another version.
func use(name string) func(*v1beta1.Instance) {
	return func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = name }
}

// printed is what task app has printed.
func (f *fixture) printed() string {
	app := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "app")}
	f.Read(app)
	return app.Data["from"]
}

// TestFrom shows G5: a run sees the version that the last complete run of deploy, update or upgrade had, and other plans, runs that fail and
// changes of the status amid a run leave it.
func TestFrom(t *testing.T) {
	f := newFixture(t)
	f.Put(printingVersion("web-2.0", "2.0.0"))
	f.Put(printingVersion("web-3.0", "3.0.0", gen.Template("bad.yaml", failing), gen.Apply("bad", "bad.yaml"), gen.Serial("upgrade", "app", "bad")))
	f.settle(t)
	for _, step := range []struct {
		reason string
		change func(*v1beta1.Instance)
		want   string
	}{
		{"the first version has no number of the application", use("web-2.0"), "/0.1.0 update 2.0.0 1"},
		{"another plan sees the version that is there", request("backup", "1"), "app-2.0.0/2.0.0 backup 2.0.0 1"},
		{"and does not change it", parameter("VALUE", "2"), "app-2.0.0/2.0.0 update 2.0.0 2"},
		{"an upgrade sees the version before", use("web-3.0"), "app-2.0.0/2.0.0 upgrade 3.0.0 2"},
		{"after one that has failed, an update does not make the version complete", parameter("VALUE", "3"), "app-2.0.0/2.0.0 update 3.0.0 3"},
		{"so that the next try sees the version before, too", request("upgrade", "2"), "app-2.0.0/2.0.0 upgrade 3.0.0 3"},
		{"and the way back, too", use("web-2.0"), "app-2.0.0/2.0.0 update 2.0.0 3"},
		{"what is no version is not seen", func(i *v1beta1.Instance) {
			i.Status.Baseline.Completed.AppVersion = "1\nkind: Secret"
			i.Spec.Parameters["VALUE"] = "4"
		}, "/2.0.0 update 2.0.0 4"},
	} {
		f.change(step.change)
		f.settle(t)
		if got := f.printed(); got != step.want {
			t.Errorf("%s: .From is %q, want %q", step.reason, got, step.want)
		}
	}
}

// TestFromAfterRestart shows G5: a manager that continues a run renders what the manager before would have, whatever the status says now.
func TestFromAfterRestart(t *testing.T) {
	f := newFixture(t)
	f.Put(printingVersion("web-2.0", "2.0.0", gen.Template("held.yaml", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: held}, spec: {replicas: 1, template: {}}}"),
		gen.Apply("held", "held.yaml"), gen.Serial("upgrade", "held", "app")))
	f.settle(t)
	f.change(use("web-2.0"))
	f.settle(t)
	if st := f.instance().Status.PlanStatus["upgrade"]; st.Status != v1beta1.InProgress {
		t.Fatalf("the upgrade is %s: %s", st.Status, st.Message)
	}
	f.restart()
	f.change(func(i *v1beta1.Instance) {
		i.Status.Baseline.Completed = &v1beta1.PackageVersion{AppVersion: "16", OperatorVersion: "9.0.0"}
	})
	held := &appsv1.Deployment{ObjectMeta: gen.Meta("ns", "held")}
	f.Read(held)
	held.Status = appsv1.DeploymentStatus{ObservedGeneration: held.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	f.Put(held)
	f.await(t, func() bool { // until the mirror has the Deployment
		f.settle(t)
		return f.instance().Status.PlanStatus["upgrade"].Status == v1beta1.Complete
	})
	if got, want := f.printed(), "/0.1.0 upgrade 2.0.0 1"; got != want {
		t.Errorf(".From is %q, want %q", got, want)
	}
	if got := f.instance().CompletedVersion(); got.AppVersion != "app-2.0.0" || got.OperatorVersion != "2.0.0" {
		t.Errorf("after the upgrade, the version is %v", got)
	}
}

// TestFromRestored shows G5: objects that a later run has written are taken over after a restore, although the status that knew the version
// before is not there.
func TestFromRestored(t *testing.T) {
	for _, from := range []string{"/ deploy 2.0.0 1", "app-2.0.0/2.0.0 deploy 2.0.0 1", "app-1.0.0/1.0.0 deploy 2.0.0 1"} {
		f := newFixture(t)
		f.Put(printingVersion("web-2.0", "2.0.0"))
		app := restoredConfigMap(func(cm *corev1.ConfigMap) {
			cm.Name, cm.Data = "app", map[string]string{"from": from}
		})
		f.Put(app)
		f.change(func(i *v1beta1.Instance) {
			annotateRestored(i)
			i.Spec.OperatorVersion.Name = "web-2.0"
		})
		f.settle(t)
		if taken, want := f.instance().CompletedVersion().OperatorVersion != "", !strings.Contains(from, "1.0.0"); taken != want {
			t.Errorf("%s: taken over %v, want %v: %s", from, taken, want, f.ready())
		}
	}
}

// TestFromOfEarlier shows G5: the version that was complete under an earlier version of kudo, or under KUDO, is the version before.
func TestFromOfEarlier(t *testing.T) {
	for name, forget := range map[string]func(*v1beta1.Instance){
		"an earlier version of kudo": func(i *v1beta1.Instance) { i.Status.Baseline.Completed = nil },
		"KUDO": func(i *v1beta1.Instance) {
			i.Status.Baseline = nil
			st := i.Status.PlanStatus["update"]
			st.Revision = 0
			i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"update": st}
		},
	} {
		f := newFixture(t)
		f.Put(printingVersion("web-2.0", "2.0.0"))
		f.Put(printingVersion("web-3.0", "3.0.0"))
		f.settle(t)
		f.change(use("web-2.0"))
		f.settle(t)
		f.change(forget)
		if name == "KUDO" { // it has no records
			f.dropRecord(1)
			f.dropRecord(2)
		}
		f.restart()
		f.settle(t)
		f.change(use("web-3.0"))
		f.settle(t)
		if got, want := f.printed(), "app-2.0.0/2.0.0 update 3.0.0 1"; got != want {
			t.Errorf("%s: .From is %q, want %q: %s", name, got, want, f.ready())
		}
	}
}
