package kudoinit

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

func groupKind(kind string) schema.GroupKind {
	return schema.GroupKind{Group: v1beta1.GroupVersion.Group, Kind: kind}
}

// user is the manager's name for the apiserver.
func (l *InstalledState) user() string {
	return "system:serviceaccount:" + l.Namespace + ":" + l.Account
}

func (l *InstalledState) groups() []string {
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + l.Namespace, "system:authenticated"}
}

// rights asks the API server whether the manager's account has the rights of the manager's role, from whatever binding.
func (i *inspection) rights(ctx context.Context) []Finding {
	found := Finding{Check: "rights of serviceaccount " + i.live.Account, State: OK}
	if i.live.Account != ServiceAccount {
		if err := Account(ctx, i.client, i.live.Namespace, i.live.Account); err != nil {
			return []Finding{{found.Check, Failed, err.Error(), "kubectl create serviceaccount " + i.live.Account + " -n " + i.live.Namespace}}
		}
	}
	var lacks []string
	for _, right := range i.needed() {
		review := &authorizationv1.SubjectAccessReview{}
		review.Spec.User, review.Spec.Groups, review.Spec.ResourceAttributes = i.live.user(), i.live.groups(), &right
		if err := i.client.Create(ctx, review); err != nil {
			return []Finding{{found.Check, Warning, "cannot be asked for: " + err.Error(), "use an administrator's kubeconfig"}}
		}
		if !review.Status.Allowed {
			lacks = append(lacks, right.Verb+" "+strings.Trim(right.Resource+"/"+right.Subresource, "/")+strings.TrimSuffix("."+right.Group, "."))
		}
	}
	if len(lacks) > 0 {
		found.State, found.Remedy = Failed, i.rightsRemedy(ctx)
		if len(lacks) > shown {
			lacks = append(lacks[:shown:shown], fmt.Sprintf("and %d more", len(lacks)-shown))
		}
		found.Message = "may not " + strings.Join(lacks, ", ")
	}
	return []Finding{found}
}

// rightsRemedy returns how the manager gets its rights. Init does not restore rights that an administrator has removed from its role.
func (i *inspection) rightsRemedy(ctx context.Context) string {
	for _, role := range i.wanted {
		if role.GetKind() != "ClusterRole" || role.GetName() != roleName {
			continue
		}
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(role.GroupVersionKind())
		if found, err := getIfPresent(ctx, i.client, live, "", roleName); err != nil || !found {
			break
		}
		if lost, err := keepRules(role.DeepCopy(), live, parseRules(i.live.rules)); err == nil && lost > 0 {
			return renewRole(roleName)
		}
	}
	return again
}

// renewRole returns how a ClusterRole gets back the rights that were taken away from it.
func renewRole(name string) string {
	return "kubectl delete clusterrole " + name + ", and " + again + ", give them again"
}

// needed are the rights of the manager's roles, one by one.
func (i *inspection) needed() []authorizationv1.ResourceAttributes {
	var out []authorizationv1.ResourceAttributes
	for _, obj := range i.wanted {
		role := &rbacv1.ClusterRole{} // a Role has the same rules
		if !strings.HasSuffix(obj.GetKind(), "Role") || obj.GetName() != roleName ||
			runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, role) != nil {
			continue
		}
		for _, rule := range role.Rules {
			out = append(out, rightsOf(rule, obj.GetNamespace())...)
		}
	}
	return out
}

// rightsOf are the rights that a rule gives in a namespace, or in the whole cluster if that is empty.
func rightsOf(rule rbacv1.PolicyRule, namespace string) []authorizationv1.ResourceAttributes {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var out []authorizationv1.ResourceAttributes
	for _, group := range rule.APIGroups {
		for _, text := range rule.Resources {
			resource, subresource, _ := strings.Cut(text, "/")
			for _, verb := range rule.Verbs {
				for _, name := range names {
					out = append(out, authorizationv1.ResourceAttributes{Namespace: namespace, Group: group, Resource: resource, Subresource: subresource,
						Name: name, Verb: verb})
				}
			}
		}
	}
	return out
}
