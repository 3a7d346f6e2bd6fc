package rights

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/podexec"
	"kudo.dev/kudo/pkg/rights"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// limit bounds what plans on played nodes may take.
const limit = "170"

// TestRightsSuffice is T33: with the account that --create-service-account makes, every plan of every package runs.
func TestRightsSuffice(t *testing.T) {
	for _, s := range subjects(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			ns := s.namespace(t)
			args := []string{"install", s.dir, "--instance", "i", "-n", ns, "--create-service-account", "-y"}
			for name, value := range s.version(t, ns).Spec.InstallParameters {
				args = append(args, "--install-parameter", name+"="+value)
			}
			for name, value := range s.parameters {
				args = append(args, "-p", name+"="+value)
			}
			suite.MustKudo(t, 0, args...)
			if s.outdated {
				i, err := suite.Await(t.Context(), ns, "i", env.DefaultTimeout, env.PlanEnded(v1beta1.DeployPlan, 1))
				env.Must(t, err)
				if st := i.Status.PlanStatus[v1beta1.DeployPlan]; !strings.Contains(st.Message, "is not served by this cluster") {
					t.Errorf("the plan fails since its API is not served, and not for its rights: %s", st.Message)
				}
				return
			}
			settled(t, ns, v1beta1.DeployPlan)
			for _, plan := range others(s.version(t, ns)) {
				suite.MustKudo(t, 0, "plan", "trigger", "--name", plan, "--instance", "i", "-n", ns, "--wait", "--wait-time", limit)
			}
			for _, change := range s.changes {
				suite.MustKudo(t, 0, "update", "--instance", "i", "-n", ns, "-p", change, "--wait", "--wait-time", limit)
			}
			suite.MustKudo(t, 0, "uninstall", "--instance", "i", "-n", ns, "--wait", "--wait-time", limit)
			env.Eventually(t, "the account is deleted after the Instance", func() string {
				for _, o := range []client.Object{&corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}} {
					if err := suite.Get(context.Background(), types.NamespacedName{Namespace: ns, Name: "i-kudo"}, o); !apierrors.IsNotFound(err) {
						return fmt.Sprintf("%T: %v", o, err)
					}
				}
				return ""
			})
		})
	}
}

// settled waits until a plan of Instance i is complete.
func settled(t *testing.T, ns, plan string) {
	t.Helper()
	i, err := suite.Await(t.Context(), ns, "i", env.DefaultTimeout, env.PlanEnded(plan, 1))
	env.Must(t, err)
	if st := i.Status.PlanStatus[plan]; st.Status != v1beta1.Complete {
		t.Fatalf("plan %s is %s: %s", plan, st.Status, st.Message)
	}
}

// others are the plans beside deploy and cleanup, which begin and end an Instance.
func others(ov *v1beta1.OperatorVersion) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(ov.Spec.InstancePlans())), func(plan string) bool {
		return plan == v1beta1.DeployPlan || plan == v1beta1.CleanupPlan
	})
}

// TestEachRightIsNeeded is T33 the other way round: without any one of the rules, a plan is forbidden what the rule allows.
func TestEachRightIsNeeded(t *testing.T) {
	for _, s := range subjects(t) {
		if s.outdated {
			continue // its plans write nothing
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			all := needed(t, s, "any", "any")
			if len(all) == 0 {
				t.Fatal("no rules")
			}
			for n, rule := range all {
				t.Run(fmt.Sprintf("without %s %s %d", strings.Join(rule.Verbs, ","), strings.Join(rule.Resources, ","), n), func(t *testing.T) {
					if slices.Equal(rule.Resources, []string{"pods/exec"}) {
						readsFiles(t, s, rule)
						return
					}
					t.Parallel()
					lacking(t, s, s.namespace(t), fmt.Sprintf("r%d", n), n)
				})
			}
		})
	}
}

// readsFiles shows what the files of a pod are read with: where nodes are played, the manager's plans cannot.
func readsFiles(t *testing.T, s subject, rule rbacv1.PolicyRule) {
	t.Helper()
	ns := s.namespace(t)
	pod := &corev1.Pod{ObjectMeta: gen.Meta(ns, rule.ResourceNames[0]), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "waiter", Image: "busybox"}}}}
	env.Must(t, suite.Create(t.Context(), pod))
	executor, err := podexec.New(suite.Config)
	env.Must(t, err)
	read := func() string {
		_, err := executor.Output(t.Context(), "system:serviceaccount:"+ns+":reader", podexec.Container{Namespace: ns, Pod: pod.Name, Name: "waiter"}, []string{"cat", "/file"}, 1)
		return fmt.Sprint(err)
	}
	if text := read(); !strings.Contains(text, "forbidden") {
		t.Errorf("without %v, reading a file says %s", rule, text)
	}
	env.Must(t, suite.Create(t.Context(), &rbacv1.Role{ObjectMeta: gen.Meta(ns, "reader"), Rules: []rbacv1.PolicyRule{rule}}))
	env.Must(t, suite.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: gen.Meta(ns, "reader"),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: "reader"}},
	}))
	env.Eventually(t, "reading a file is allowed, and then fails at the played node", func() string {
		if text := read(); text == "<nil>" || strings.Contains(text, "forbidden") {
			return text
		}
		return ""
	})
}

// needed are the rules for an Instance of a package. The CustomResourceDefinitions of a tarball are not there yet: their
// resources have the usual plural.
func needed(t *testing.T, s subject, ns, name string) []rbacv1.PolicyRule {
	t.Helper()
	all := s.versions(t, ns)
	known := rights.Known{Versions: func(name string) *v1beta1.OperatorVersionSpec {
		if at := slices.IndexFunc(all, func(ov *v1beta1.OperatorVersion) bool { return ov.Name == name }); at >= 0 {
			return &all[at].Spec
		}
		return nil
	}}
	computed, err := rights.Of(rights.Subject{Namespace: ns, Name: name, Version: &all[len(all)-1].Spec, Parameters: s.parameters}, known)
	env.Must(t, err)
	if len(computed.ClusterRules) > 0 {
		t.Fatalf("plans of %s write cluster-scoped objects: %v", s.name, computed.ClusterScoped)
	}
	return computed.Rules
}

// lacking runs the plans of an Instance whose account lacks the n-th rule, until one is forbidden what the rule allows.
func lacking(t *testing.T, s subject, ns, name string, n int) {
	t.Helper()
	ov := s.install(t, ns)
	rules := needed(t, s, ns, name)
	gone := rules[n]
	ctx, account := t.Context(), name+"-kudo"
	env.Must(t, suite.Create(ctx, &corev1.ServiceAccount{ObjectMeta: gen.Meta(ns, account)}))
	env.Must(t, suite.Create(ctx, &rbacv1.Role{ObjectMeta: gen.Meta(ns, account), Rules: slices.Delete(slices.Clone(rules), n, n+1)}))
	env.Must(t, suite.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: gen.Meta(ns, account),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: account}},
	}))
	letIn(t, ns)
	i := gen.Instance(name, ov, maps.Clone(s.parameters))
	i.Spec.ServiceAccountName = account
	env.Must(t, suite.Create(ctx, i))
	message := ended(t, ns, name, v1beta1.DeployPlan)
	for _, plan := range others(ov) {
		if message == "" {
			edit(t, ns, name, func(i *v1beta1.Instance) {
				i.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: plan, UID: uuid.NewUUID()}
			})
			message = ended(t, ns, name, plan)
		}
	}
	for _, change := range s.changes {
		if message == "" {
			parameter, value, _ := strings.Cut(change, "=")
			edit(t, ns, name, func(i *v1beta1.Instance) {
				if i.Spec.Parameters == nil {
					i.Spec.Parameters = map[string]string{}
				}
				i.Spec.Parameters[parameter] = value
			})
			message = ended(t, ns, name, "")
		}
	}
	if message == "" {
		env.Must(t, suite.Delete(ctx, i))
		message = ended(t, ns, name, v1beta1.CleanupPlan)
	}
	named := strings.Contains(message, "not currently held") // by a role that the package has
	for _, resource := range gone.Resources {
		named = named || strings.Contains(message, fmt.Sprintf("resource %q", resource))
	}
	if !named {
		t.Errorf("all plans ran without %v, or failed otherwise: %q", gone, message)
	}
	if err := client.IgnoreNotFound(suite.Delete(context.Background(), i)); err != nil { // ends what would be tried for ever
		t.Log(err)
	}
}

// letIn lets the manager act as the accounts of a namespace.
func letIn(t *testing.T, ns string) {
	t.Helper()
	err := suite.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: gen.Meta(ns, "kudo-run-as"),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kudo-run-as"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "kudo-system", Name: "kudo-manager"}},
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

func edit(t *testing.T, ns, name string, change func(*v1beta1.Instance)) {
	t.Helper()
	env.Eventually(t, "the Instance is patched", func() string {
		i := env.Read(t, suite.Cluster, &v1beta1.Instance{}, ns, name)
		patch := client.MergeFrom(i.DeepCopy())
		change(i)
		if err := suite.Patch(context.Background(), i, patch); err != nil {
			return err.Error()
		}
		return ""
	})
}

// ended waits until a plan has ended, and returns the empty text, or until something is forbidden, and returns what. The
// empty plan stands for all that a change starts.
func ended(t *testing.T, ns, name, plan string) (forbidden string) {
	t.Helper()
	_, err := suite.Await(t.Context(), ns, name, env.DefaultTimeout, func(i *v1beta1.Instance) bool {
		if i == nil {
			return true
		}
		// An API server that does not know the new role yet says so; the plan tries again.
		if message := i.Status.AggregatedStatus.Message; strings.Contains(message, "forbidden") && !strings.Contains(message, "RBAC: role") {
			forbidden = message
			return true
		}
		if i.Status.ObservedGeneration < i.Generation || plans.Running(i.Status.PlanStatus) != "" || len(i.Status.Queue) > 0 {
			return false
		}
		if last, run := plans.LatestRun(i.Status.PlanStatus); run.Status == v1beta1.FatalError {
			t.Errorf("plan %s: %s", last, run.Message)
			return true
		}
		return i.DeletionTimestamp == nil && (plan == "" || i.Status.PlanStatus[plan].Status.IsTerminal())
	})
	if err != nil {
		t.Errorf("plan %s: %v", plan, err)
	}
	return forbidden
}
