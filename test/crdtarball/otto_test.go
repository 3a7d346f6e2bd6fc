package crdtarball

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// otto returns a client of a user who may write the OperatorVersions of a namespace, and nothing else.
func otto(t testing.TB, ns string) client.Client {
	t.Helper()
	name := "otto-" + ns
	env.Must(t, suite.Create(ctx, &rbacv1.Role{ObjectMeta: gen.Meta(ns, name), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"kudo.dev"}, Resources: []string{"operatorversions"}, Verbs: []string{"get", "list", "create", "update", "patch", "delete"}},
	}}))
	env.Must(t, suite.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: gen.Meta(ns, name), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}}))
	config := rest.CopyConfig(suite.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
	c, err := client.New(config, client.Options{Scheme: suite.Scheme(), Mapper: suite.RESTMapper()})
	env.Must(t, err)
	env.Eventually(t, "the rights of otto", func() string {
		if err := c.List(ctx, &v1beta1.OperatorVersionList{}, client.InNamespace(ns)); err != nil {
			return err.Error()
		}
		return ""
	})
	return c
}

var _ = Describe("What the tarball of an Instance holds is decided by those who may write its block, with the verb install", Label("version-author-chooses-no-content", "T34"), func() {
	edits := func(change func(*v1beta1.OperatorVersion)) func(testing.TB, client.Client, *v1beta1.OperatorVersion) {
		return func(t testing.TB, c client.Client, ov *v1beta1.OperatorVersion) {
			live := env.Read(t, c, &v1beta1.OperatorVersion{}, ov.Namespace, ov.Name)
			patch := client.MergeFrom(live.DeepCopy())
			change(live)
			env.Must(t, c.Patch(ctx, live, patch))
		}
	}
	for _, tc := range []struct {
		reason, url string
		attack      func(testing.TB, client.Client, *v1beta1.OperatorVersion)
	}{
		{"though another AppVersion makes another URL", "/{{ .AppVersion }}.tgz", edits(func(ov *v1beta1.OperatorVersion) { ov.Spec.AppVersion = "2" })},
		{"though another version makes another URL", "/{{ .OperatorVersion }}.tgz", edits(func(ov *v1beta1.OperatorVersion) { ov.Spec.Version = "2" })},
		{"though another operator makes another URL", "/{{ .OperatorName }}.tgz", edits(func(ov *v1beta1.OperatorVersion) { ov.Spec.Operator.Name = "2" })},
		{"though another version had the digest forgotten", "/moved.tgz", edits(func(ov *v1beta1.OperatorVersion) { ov.Spec.Version = "2" })},
		{"though another OperatorVersion takes the name", "/{{ .AppVersion }}.tgz", func(t testing.TB, c client.Client, ov *v1beta1.OperatorVersion) {
			env.Must(t, c.Delete(ctx, ov.DeepCopy()))
			again := ov.DeepCopy()
			again.ObjectMeta, again.Spec.AppVersion = gen.Meta(ov.Namespace, ov.Name), "2"
			env.Must(t, c.Create(ctx, again))
		}},
	} {
		It(tc.reason, func() {
			t := GinkgoTB()
			group, s, ns := unique(), serve(t), suite.NewNamespace(t)
			good := gen.Tarball(definition(group, "jobs", "size: {type: integer}"))
			evil := gen.Tarball(definition(group, "jobs", "size: {type: integer}, color: {type: string}"), definition(group, "pools", "size: {type: integer}"))
			ov := gen.Version(ns, "plain", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"), func(ov *v1beta1.OperatorVersion) {
				ov.Spec.AppVersion = "1"
			})
			for _, path := range []string{"1", ov.Spec.Version, ov.Spec.Operator.Name, "moved"} {
				s.put("/"+path+".tgz", good)
			}
			s.put("/2.tgz", evil)
			env.Must(t, suite.Create(ctx, ov))
			i := gen.Instance("i", ov, nil)
			i.Spec.CRDTarball = &v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: s.URL + tc.url, CABundle: authority(s.Server)},
				CRDUpdatePolicy: v1beta1.UpdateIfSafe, CRDDownloadPolicy: v1beta1.DownloadAlways}
			env.Must(t, suite.Create(ctx, i))
			_, err := suite.Await(ctx, ns, "i", env.DefaultTimeout, env.PlanEnded("deploy", 1))
			env.Must(t, err)

			tc.attack(t, otto(t, ns), ov)
			s.put("/moved.tgz", evil)
			i = env.Read(t, suite, &v1beta1.Instance{}, ns, "i")
			patch := client.MergeFrom(i.DeepCopy())
			i.Spec.Parameters = map[string]string{"VALUE": "b"}
			env.Must(t, suite.Patch(ctx, i, patch))
			want := "content has digest sha256:" + digest(evil) + ", not sha256:" + digest(good)
			i, err = suite.Await(ctx, ns, "i", env.DefaultTimeout, func(i *v1beta1.Instance) bool {
				// A run that starts again with new values keeps the definitions that it began with: it is to end first.
				st := i.Status.PlanStatus["deploy"]
				return st.Revision > 1 && st.Status.IsTerminal() || strings.Contains(i.Status.AggregatedStatus.Message, want)
			})
			env.Must(t, err)
			if exists(t, crd("pools."+group)) {
				t.Errorf("%s: a definition was installed that otto has chosen", tc.reason)
			}
			jobs := crd("jobs." + group)
			if !exists(t, jobs) || strings.Contains(fmt.Sprint(jobs.Object["spec"]), "color") {
				t.Errorf("%s: a definition was changed as otto has chosen", tc.reason)
			}
			if message := i.Status.AggregatedStatus.Message; !strings.Contains(message, want) && !i.Status.CRDs.Stale {
				t.Errorf("%s: the Instance says %q, want %q", tc.reason, message, want)
			}

			// Whoever may write the block decides, by the digest.
			patch = client.MergeFrom(i.DeepCopy())
			i.Spec.CRDTarball.HTTPSource.SHA256, i.Spec.Parameters["VALUE"] = digest(evil), "c"
			env.Must(t, suite.Patch(ctx, i, patch))
			env.Eventually(t, "the definition of the new digest", func() string {
				if !exists(t, crd("pools."+group)) {
					i := env.Read(t, suite, &v1beta1.Instance{}, ns, "i")
					return fmt.Sprintf("%+v %+v", i.Status.AggregatedStatus, i.Status.CRDs)
				}
				return ""
			})
		})
	}
})
