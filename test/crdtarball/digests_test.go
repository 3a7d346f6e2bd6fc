package crdtarball

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

var _ = It("A digest is required where anybody may change the content", Label("T34"), func() {
	t := GinkgoTB()
	ns, s := suite.NewNamespace(t), serve(t)
	parts := v1beta1.ConfigMapSource{ConfigMaps: []v1beta1.ConfigMapPart{{Name: "a"}}}
	pin := strings.Repeat("a", 64)
	plain := gen.Version(ns, "plain", gen.Param("V", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	env.Must(t, suite.Create(ctx, plain))
	for name, tc := range map[string]struct {
		reason  string
		tarball v1beta1.CRDTarball
		want    string
	}{
		"http":      {"an attacker between the hosts can change what http brings", v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: "http://example.org/x"}}, "spec.crdTarball.httpSource.sha256 is required"},
		"scheme":    {"a template may become http", v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: "{{ .Name }}://example.org/x"}}, "spec.crdTarball.httpSource.sha256 is required"},
		"configmap": {"whoever writes the ConfigMap changes it", v1beta1.CRDTarball{ConfigMapSource: &parts}, "spec.crdTarball.configMapSource.sha256 is required"},
		"pinned":    {"with a digest it does not matter", v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: "http://example.org/x", SHA256: pin}}, ""},
		"https":     {"https is remembered", v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: "https://example.org/x"}}, ""},
	} {
		ov := version(s, ns, name, "x.example.com", "Job", "unused")
		ov.Spec.CRDTarball = &tc.tarball
		instance := gen.Instance("i-"+name, plain, nil)
		instance.Spec.CRDTarball = &tc.tarball
		for kind, obj := range map[string]client.Object{"OperatorVersion": ov, "Instance": instance} {
			err := suite.Create(ctx, obj, client.DryRunAll)
			if (err == nil) != (tc.want == "") || err != nil && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s, %s: %v", kind, tc.reason, err)
			}
		}
	}
})

// It runs alone, as it takes the policy away for moments.
var _ = It("What was stored before the rule stays editable, but for the tarball", Serial, Label("disruptive", "T34"), func() {
	t := GinkgoTB()
	ns, s := suite.NewNamespace(t), serve(t)
	ov := version(s, ns, "old", "x.example.com", "Job", "http://example.org/x")
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "kudo-install"}}
	env.Must(t, suite.Get(ctx, client.ObjectKeyFromObject(binding), binding))
	env.Must(t, suite.Delete(ctx, binding.DeepCopy()))
	env.Eventually(t, "the OperatorVersion is stored", func() string {
		if err := suite.Create(ctx, ov); err != nil {
			return err.Error()
		}
		return ""
	})
	again := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: binding.Name, Labels: binding.Labels}, Spec: binding.Spec}
	env.Must(t, suite.Create(ctx, again))
	refused := version(s, ns, "new", "x.example.com", "Job", "http://example.org/x")
	env.Eventually(t, "the policy is back", func() string {
		if err := suite.Create(ctx, refused, client.DryRunAll); err == nil {
			return "it lets everything through"
		}
		return ""
	})
	edit := func(change func(*v1beta1.OperatorVersion)) error {
		live := env.Read(t, suite, &v1beta1.OperatorVersion{}, ns, ov.Name)
		patch := client.MergeFrom(live.DeepCopy())
		change(live)
		return suite.Patch(ctx, live, patch, client.DryRunAll)
	}
	for _, tc := range []struct {
		reason string
		change func(*v1beta1.OperatorVersion)
		want   string
	}{
		{"a parameter", func(ov *v1beta1.OperatorVersion) { ov.Spec.Parameters[0].Description = "other" }, ""},
		{"the digest, which mends it", func(ov *v1beta1.OperatorVersion) { ov.Spec.CRDTarball.HTTPSource.SHA256 = strings.Repeat("a", 64) }, ""},
		{"no tarball any more", func(ov *v1beta1.OperatorVersion) { ov.Spec.CRDTarball = nil }, ""},
		{"another URL", func(ov *v1beta1.OperatorVersion) { ov.Spec.CRDTarball.HTTPSource.URL = "http://example.org/y" }, "spec.crdTarball.httpSource.sha256 is required"},
	} {
		if err := edit(tc.change); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.reason, err)
		}
	}
})

var _ = It("The digest of what https brings is remembered at its first use, and other content is refused until the spec changes", Label("T34"), func() {
	t := GinkgoTB()
	group, s, ns := unique(), serve(t), suite.NewNamespace(t)
	first := gen.Tarball(definition(group, "jobs", "size: {type: integer}"))
	other := gen.Tarball(definition(group, "jobs", "size: {type: integer}, color: {type: string}"))
	s.put("/a.tgz", first)
	ov := version(s, ns, "1", group, "Job", s.URL+"/a.tgz", func(ov *v1beta1.OperatorVersion) {
		ov.Spec.CRDTarball.CRDDownloadPolicy, ov.Spec.CRDTarball.CRDUpdatePolicy = v1beta1.DownloadAlways, v1beta1.UpdateIfSafe
	})
	env.Must(t, suite.Create(ctx, ov))
	i := deploy(t, ov, "a")
	holder := &v1beta1.Installation{}
	name := client.ObjectKey{Name: v1beta1.InstallationName(ns, "a", i.UID)}
	env.Must(t, suite.Get(ctx, name, holder))
	if known := holder.Status.CRDTarball; known == nil || known.Digest != "sha256:"+digest(first) {
		t.Fatalf("the Installation remembers %+v", known)
	}
	s.put("/a.tgz", other)
	run := func(value string, revision int64) *v1beta1.Instance {
		t.Helper()
		i := env.Read(t, suite, &v1beta1.Instance{}, ns, "a")
		patch := client.MergeFrom(i.DeepCopy())
		i.Spec.Parameters = map[string]string{"VALUE": value}
		env.Must(t, suite.Patch(ctx, i, patch))
		i, err := suite.Await(ctx, ns, "a", env.DefaultTimeout, env.PlanEnded("deploy", revision))
		env.Must(t, err)
		return i
	}
	if c := run("b", 2).Status.CRDs; !c.Stale || c.Digest != "sha256:"+digest(first) ||
		!strings.Contains(c.StaleReason, "content has digest sha256:"+digest(other)+", not sha256:"+digest(first)) {
		t.Errorf("the copy that is right is used: %+v", c)
	}
	// An Instance that has not used it takes what is there now, and fills the cache with it: the first is not misled.
	deploy(t, ov, "b")
	change := env.Read(t, suite, &v1beta1.Instance{}, ns, "a")
	patch := client.MergeFrom(change.DeepCopy())
	change.Spec.Parameters = map[string]string{"VALUE": "c"}
	env.Must(t, suite.Patch(ctx, change, patch))
	_, err := suite.Await(ctx, ns, "a", env.DefaultTimeout, func(i *v1beta1.Instance) bool {
		return i != nil && strings.Contains(i.Status.AggregatedStatus.Message, "content has digest sha256:"+digest(other)+", not sha256:"+digest(first))
	})
	env.Must(t, err)
	live := env.Read(t, suite, &v1beta1.OperatorVersion{}, ns, ov.Name)
	versionPatch := client.MergeFrom(live.DeepCopy())
	live.Spec.CRDTarball.HTTPSource.SHA256 = digest(other)
	env.Must(t, suite.Patch(ctx, live, versionPatch))
	i, err = suite.Await(ctx, ns, "a", env.DefaultTimeout, env.PlanEnded("deploy", 3))
	env.Must(t, err)
	if c := i.Status.CRDs; c.Stale || c.Digest != "sha256:"+digest(other) {
		t.Errorf("the spec has changed, and the new digest counts: %+v", c)
	}
})
