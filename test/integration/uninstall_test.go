package integration

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/rights"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

var _ = Describe("uninstall --wait", Label("uninstall", "P24"), func() {
	const service = "apiVersion: v1\nkind: Service\nmetadata:\n  name: '{{ .Name }}'\n  finalizers: [example.com/hold]\nspec: {ports: [{port: 80}]}\n"
	const reader = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: '{{ .Namespace }}-reader'}\n" +
		"rules: [{apiGroups: ['kudo.dev'], resources: [instances], verbs: [get]}]\n"
	const late = "apiVersion: v1\nkind: Secret\nmetadata: {name: late, finalizers: [example.com/late]}\n"
	release := func(ctx context.Context, obj client.Object) {
		GinkgoHelper()
		env.Must(GinkgoTB(), cluster.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	}

	It("ends when the objects of the Instance are deleted, names the finalizers that keep them, and what stays after it", func(ctx context.Context) {
		t := GinkgoTB()
		ns := cluster.NewNamespace(t, v1beta1.PrivilegedLabel)
		ov := gen.Version(ns, "web", gen.Template("service.yaml", service), gen.Template("reader.yaml", reader), gen.Template("late.yaml", late),
			gen.Template("map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n"),
			gen.Apply("all", "service.yaml", "reader.yaml", "map.yaml"), gen.Serial("deploy", "all"), gen.Apply("late", "late.yaml"), gen.Serial("cleanup", "late"))
		status(t, deploy(t, ov, "i", nil), "deploy", v1beta1.Complete)

		held, secret := &corev1.Service{ObjectMeta: gen.Meta(ns, "i")}, &corev1.Secret{ObjectMeta: gen.Meta(ns, "late")}
		DeferCleanup(func(ctx context.Context) { // a namespace with held objects would not end
			for _, obj := range []client.Object{held, secret} {
				_ = cluster.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
			}
		})
		ended := make(chan string, 1)
		go func() {
			defer close(ended)
			defer GinkgoRecover()
			ended <- kudo(t, 0, "uninstall", "i", "-n", ns, "--wait", "--wait-time", "120")
		}()
		env.Eventually(t, "the Service is being deleted", env.Condition(func() bool {
			return cluster.Get(ctx, client.ObjectKeyFromObject(held), held) == nil && held.DeletionTimestamp != nil
		}))
		select {
		case out := <-ended:
			t.Fatalf("the command ended before the objects were deleted:\n%s", out)
		case <-time.After(3 * time.Second): // longer than the deletion of the Instance takes
		}
		release(ctx, held)
		release(ctx, secret)
		out := <-ended
		if out == "" {
			t.Fatal("the command has failed")
		}
		contains(t, out, "all objects of instance "+ns+"/i are deleted\n", "clusterrole "+ns+"-reader stays, since it is cluster-scoped",
			"kubectl delete -n "+ns+" clusterrole.rbac.authorization.k8s.io/"+ns+"-reader")
		if err := cluster.Get(ctx, client.ObjectKeyFromObject(held), held); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("the Service exists after the command: %v", err)
		}

		env.Must(t, cluster.Create(ctx, gen.Instance("i", ov, nil)))
		status(t, await(t, ns, "i", env.PlanEnded("deploy", 1)), "deploy", v1beta1.Complete)
		out = kudo(t, 4, "uninstall", "i", "-n", ns, "--wait", "--wait-time", "45")
		contains(t, out, "instance "+ns+"/i is deleted, and after 45s some of its objects are not", "Service "+ns+"/i (finalizer example.com/hold)",
			"Secret "+ns+"/late (finalizer example.com/late)", "the client that has set the finalizer removes it")
		if strings.Contains(out, "ConfigMap") || strings.Contains(out, "all objects") {
			t.Errorf("the output names an object that is deleted, or says that all are:\n%s", out)
		}
		release(ctx, held)
		release(ctx, secret)
	})

	It("waits for what a command has made for the account of the Instance, and for nothing that others have made", func(ctx context.Context) {
		t := GinkgoTB()
		ns := cluster.NewNamespace(t)
		ov := gen.Version(ns, "web", gen.Template("map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n"),
			gen.Apply("all", "map.yaml"), gen.Serial("deploy", "all"))
		i := deploy(t, ov, "i", nil)
		status(t, i, "deploy", v1beta1.Complete)
		account := rights.NewAccount(ns, "i", "", nil)
		role, binding := account.Role(), account.RoleBinding()
		role.Finalizers = []string{"example.com/hold"}
		DeferCleanup(release, role)
		objects := append(account.Own()[:1], role, binding)
		for _, obj := range objects[:2] { // others have made the binding
			obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance", Name: i.Name, UID: i.UID}})
		}
		for _, obj := range objects {
			env.Must(t, cluster.Create(ctx, obj))
		}
		ended := make(chan string, 1)
		go func() {
			defer close(ended)
			defer GinkgoRecover()
			ended <- kudo(t, 0, "uninstall", "i", "-n", ns, "--wait", "--wait-time", "120")
		}()
		env.Eventually(t, "the Role is being deleted", env.Condition(func() bool {
			return cluster.Get(ctx, client.ObjectKeyFromObject(role), role) == nil && role.DeletionTimestamp != nil
		}))
		select {
		case out := <-ended:
			t.Fatalf("the command ended before the Role was deleted:\n%s", out)
		case <-time.After(3 * time.Second): // longer than the deletion of the Instance takes
		}
		release(ctx, role)
		out := <-ended
		contains(t, out, "to be deleted with instance "+ns+"/i: configmap map, role i-kudo, serviceaccount i-kudo\n", "all objects of instance "+ns+"/i are deleted\n")
		for _, obj := range objects {
			err := cluster.Get(ctx, client.ObjectKeyFromObject(obj), obj)
			if isForeign := obj == binding; client.IgnoreNotFound(err) != nil || (err == nil) != isForeign {
				t.Errorf("after the command, %T is read with %v", obj, err)
			}
		}

		env.Must(t, cluster.Create(ctx, gen.Instance("i", ov, nil)))
		i = await(t, ns, "i", env.PlanEnded("deploy", 1))
		role = account.Role()
		role.Finalizers = []string{"example.com/hold"}
		role.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance", Name: i.Name, UID: i.UID}}
		env.Must(t, cluster.Create(ctx, role))
		contains(t, kudo(t, 4, "uninstall", "i", "-n", ns, "--wait", "--wait-time", "20"), "some of its objects are not: Role "+ns+"/i-kudo (finalizer example.com/hold). ")
	})
})
