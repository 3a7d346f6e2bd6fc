package kudoinit

import (
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// fence is the policy that guards a Namespace which kudo is about to delete.
const fence = "kudo-fence"

// namespaced tries the policies that need a Namespace of their own:
//
//	kudo-sources-1, kudo-sources-2   refuse sources that the user may not get. Every account of kudo that may write Instances may get
//	                                 all, so that a Role of the Namespace lets a user with a random name write Instances
//	kudo-fence                       refuses objects in a Namespace with the label kudo.dev/releasing
//
// The Namespace is deleted afterwards, and the Role along with it.
func (i *inspection) namespaced(ctx context.Context) []Finding {
	policies := []string{"kudo-sources-1", "kudo-sources-2"}
	untried := func(err error, policies ...string) []Finding {
		var out []Finding
		for _, name := range policies {
			out = append(out, Finding{checkOf(name), Warning, "cannot be tried, since a Namespace for that cannot be set up: " + err.Error(),
				"use an administrator's kubeconfig"})
		}
		return out
	}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: probeName + "-"}}
	if err := i.client.Create(ctx, space); err != nil {
		return untried(err, append(policies, fence)...)
	}
	defer func() { _ = i.client.Delete(context.WithoutCancel(ctx), space) }()
	user := "kudo:probe:" + uuid.NewString()
	for _, obj := range authorOf(space.Name, user) {
		if err := i.client.Create(ctx, obj); err != nil {
			return untried(err, append(policies, fence)...)
		}
	}
	out := make([]Finding, 2)
	var running sync.WaitGroup
	for n, count := range []int{1, sourcesOfPolicy + 1} {
		running.Go(func() { out[n] = i.try(ctx, i.sources(policies[n], space.Name, user, count)) })
	}
	running.Wait()
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+v1beta1.ReleasingLabel+`":"true"}}}`))
	if err := i.client.Patch(ctx, space, label); err != nil {
		return append(out, untried(err, fence)...)
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: space.Name, Name: probeName}}
	return append(out, i.try(ctx, probe{policy: fence, account: i.installer(), object: object,
		request: func(ctx context.Context, as client.Client) error {
			return as.Create(ctx, object.DeepCopy(), client.DryRunAll)
		}}))
}

// sourcesOfPolicy is how many sources kudo-sources-1 looks at.
const sourcesOfPolicy = 16

// sources is a probe with an Instance whose last source the user may not get.
func (i *inspection) sources(policy, namespace, user string, count int) probe {
	instance := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: probeName}}
	instance.Spec.OperatorVersion.Name, instance.Spec.ServiceAccountName = probeName, probeName
	instance.Spec.ParametersFrom = slices.Repeat([]v1beta1.ParametersSource{{Kind: "ConfigMap", Name: probeName}}, count-1)
	instance.Spec.ParametersFrom = append(instance.Spec.ParametersFrom, v1beta1.ParametersSource{Kind: "Secret", Name: probeName})
	return probe{policy: policy, account: user, object: instance, request: func(ctx context.Context, as client.Client) error {
		err := as.Create(ctx, instance.DeepCopy(), client.DryRunAll)
		if apierrors.IsForbidden(err) && !refusedBy(err, policy) {
			return nil // the authorizer does not have the Role yet
		}
		return err
	}}
}

// authorOf are the objects that let a user write Instances in a Namespace, and get one ConfigMap.
func authorOf(namespace, user string) []client.Object {
	at := metav1.ObjectMeta{Namespace: namespace, Name: probeName}
	return []client.Object{
		&rbacv1.Role{ObjectMeta: at, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{v1beta1.GroupVersion.Group}, Resources: []string{"instances"}, Verbs: []string{"create"}},
			{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{probeName}, Verbs: []string{"use"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{probeName}, Verbs: []string{"get"}},
		}},
		&rbacv1.RoleBinding{ObjectMeta: at, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: probeName},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}},
	}
}
