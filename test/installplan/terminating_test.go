package installplan

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

var _ = It("An install plan waits while a namespace that it writes to is being deleted, and goes on when it is there again", func() {
	t := GinkgoTB()
	ns, place := suite.NewNamespace(t), "place-"+rand.String(8)
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: place}}
	env.Must(t, suite.Create(ctx, home.DeepCopy()))
	t.Cleanup(func() { _ = suite.Delete(ctx, home.DeepCopy()) })
	hold := &corev1.ConfigMap{ObjectMeta: gen.Meta(place, "hold")}
	hold.Finalizers = []string{"example.com/hold"}
	env.Must(t, suite.Create(ctx, hold))
	env.Must(t, suite.Delete(ctx, home.DeepCopy()))

	ov := gen.Version(ns, "web", gen.Template("config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config, namespace: "+place+"}\n"),
		gen.Apply("config", "config.yaml"), gen.Serial("install", "config"), gen.InstallPlan("install"), gen.Serial("deploy"))
	env.Must(t, suite.Create(ctx, ov))
	env.Eventually(t, "a run that waits for the namespace", func() string {
		got := env.Read(t, suite, &v1beta1.OperatorVersion{}, ns, "web").Status.AggregatedStatus
		if got.Status != v1beta1.InProgress || !strings.Contains(got.Message, place+" because it is being terminated") {
			return fmt.Sprintf("%+v", got)
		}
		return ""
	})
	edit(t, hold, func(hold *corev1.ConfigMap) { hold.Finalizers = nil })
	env.Eventually(t, "the namespace again", func() string {
		if err := suite.Create(ctx, home.DeepCopy()); err != nil {
			return err.Error()
		}
		return ""
	})
	complete(t, ended(t, ov, 1))
	uninstall(t, ov)
})
