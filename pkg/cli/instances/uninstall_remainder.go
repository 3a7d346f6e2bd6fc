package instances

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/text"
)

// keptObject is an object that stays when an Instance is deleted, and why.
type keptObject struct {
	kind      schema.GroupKind
	name, why string
	// held is set if others hold the object: it is needed.
	held bool
}

// printStays lists the objects that stay.
func printStays(env *command.Env, kept []keptObject) {
	for _, k := range kept {
		env.Printf("%s %s stays, since %s", strings.ToLower(k.kind.Kind), k.name, k.why)
	}
}

// printRemedy prints how the objects that stay are deleted.
func printRemedy(env *command.Env, namespace string, kept []keptObject) {
	var names []string
	for _, k := range kept {
		if k.held {
			continue
		}
		resource := k.kind
		resource.Kind = strings.ToLower(resource.Kind)
		names = append(names, text.ShellQuote(resource.String()+"/"+k.name))
	}
	if len(names) > 0 {
		env.Printf("delete what is not needed any more: kubectl delete -n %s %s", namespace, strings.Join(names, " "))
	}
}

func kindOf(r v1beta1.ResourceStatus) schema.GroupKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind()
}

var claimKind = schema.GroupKind{Kind: "PersistentVolumeClaim"}

// maxGenerations is how many generations of children an Instance has at most, with some to spare.
const maxGenerations = 10

// withChildren lists an Instance and those that are deleted with it.
func withChildren(ctx context.Context, c client.Client, instance *v1beta1.Instance) ([]*v1beta1.Instance, error) {
	list := &v1beta1.InstanceList{}
	if err := c.List(ctx, list, client.InNamespace(instance.Namespace)); err != nil {
		return []*v1beta1.Instance{instance}, fmt.Errorf("list Instances: %w", err)
	}
	out := []*v1beta1.Instance{instance}
	for from, generation := 0, 0; from < len(out) && generation < maxGenerations; generation++ {
		parents := out[from:]
		from = len(out)
		isChild := func(i *v1beta1.Instance) bool {
			return slices.ContainsFunc(parents, func(parent *v1beta1.Instance) bool { return v1beta1.HasOwner(i, parent.UID) })
		}
		for i := range list.Items {
			if child := &list.Items[i]; isChild(child) && !hasOtherOwner(child, out) && !isAmong(child.UID, out) {
				out = append(out, child)
			}
		}
	}
	return out, nil
}

// hasOtherOwner reports whether an owner of an Instance is none of those that are deleted: the Instance stays.
func hasOtherOwner(i *v1beta1.Instance, deleted []*v1beta1.Instance) bool {
	return slices.ContainsFunc(i.OwnerReferences, func(owner metav1.OwnerReference) bool { return !isAmong(owner.UID, deleted) })
}

func isAmong(uid types.UID, all []*v1beta1.Instance) bool {
	return slices.ContainsFunc(all, func(i *v1beta1.Instance) bool { return i.UID == uid })
}
