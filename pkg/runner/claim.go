package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/apply"
)

// maxManager is the longest field manager that the API allows, in bytes.
const maxManager = 128

// Manager is the field manager of an Instance (engine rule 23).
func Manager(namespace, name string) string {
	manager := v1beta1.FieldManagerPrefix(namespace) + name
	if len(manager) <= maxManager {
		return manager
	}
	sum := sha256.Sum256([]byte(manager))
	return manager[:maxManager-17] + "-" + hex.EncodeToString(sum[:8])
}

func (r *Runner) options(run *Run, inventory Inventory) apply.Options {
	return apply.Options{
		Manager: Manager(run.Subject.Namespace, run.Subject.Name),
		Claim:   run.claimer(known(inventory)),
		Known:   inventory,
		Labels:  map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: run.Subject.Name},
		Keys:    run.Keys,
		SelectsPods: sync.OnceValue(func() bool {
			for _, text := range run.Version.Spec.Templates {
				if podSelector.MatchString(text) {
					return true
				}
			}
			return false
		}),
	}
}

// podSelector matches the text of templates that select pods by kudo's labels. It matches also other texts with these labels: it is better
// to replace the pods of an adopted object without need than to leave a Service without pods.
var podSelector = regexp.MustCompile(`kudo\.dev/(?:instance|operator)\b|\bheritage\b["']?\s*[:=]{1,2}\s*["']?kudo\b`)

// claimer decides whose a live object is (engine rule 20).
//
//	held by an Installation: cluster-scoped                      shared
//	                         namespaced                          foreign
//	owned by this Instance, or in its inventory by uid           ours
//	namespaced, controller of another uid:
//	    that Instance exists                                     foreign
//	    it does not                                              leaving: the garbage collector takes it
//	heritage kudo and our name, or KUDO's own annotation         ours
//	cluster-scoped, made by kudo                                 shared
//	adopted by annotation of the Instance: namespaced            ours
//	else                                                         foreign
func (run *Run) claimer(listed func(live *unstructured.Unstructured) bool) func(context.Context,
	*unstructured.Unstructured) (apply.Claim, string) {
	return func(ctx context.Context, live *unstructured.Unstructured) (apply.Claim, string) {
		if holder := shared(live); holder != "" { // whatever this Instance has written of it
			if live.GetNamespace() == "" {
				return apply.Shared, holder
			}
			return apply.Foreign, holder
		}
		if listed(live) {
			return apply.Ours, ""
		}
		if v1beta1.HasOwner(live, run.Subject.UID) {
			return apply.Ours, ""
		}
		if claim, owner, decided := run.claimByController(ctx, live); decided {
			return claim, owner
		}
		labels := live.GetLabels()
		kudo := labels[v1beta1.HeritageLabel] == v1beta1.Heritage
		switch {
		case kudo && live.GetNamespace() == "":
			return apply.Shared, "Instance " + labels[v1beta1.InstanceLabel]
		case kudo && labels[v1beta1.InstanceLabel] == run.Subject.Name:
			return apply.Ours, ""
		case live.GetAnnotations()[v1beta1.LastAppliedAnnotation] != "" && !kudo:
			return apply.Ours, ""
		case run.Subject.Annotations[v1beta1.AdoptAnnotation] == "true" && live.GetNamespace() != "":
			return apply.Ours, ""
		case kudo:
			return apply.Foreign, "Instance " + live.GetNamespace() + "/" + labels[v1beta1.InstanceLabel]
		}
		return apply.Foreign, owners(live)
	}
}

// known reports whether the inventory has a live object.
func known(inventory map[apply.ID]apply.Record) func(live *unstructured.Unstructured) bool {
	return func(live *unstructured.Unstructured) bool {
		record, found := inventory[apply.IDOf(live)]
		return found && record.UID == live.GetUID()
	}
}

// marked reports whether the inventory has a live object that shows that a plan of the Instance has written it: by the
// field manager, or, in its namespace, by the labels. The inventory stands in the status, which others may have written:
// for a deletion its word is not enough.
func marked(inventory map[apply.ID]apply.Record, manager, instance string) func(live *unstructured.Unstructured) bool {
	listed := known(inventory)
	return func(live *unstructured.Unstructured) bool {
		written := slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == manager })
		labels := live.GetLabels()
		labeled := live.GetNamespace() != "" && labels[v1beta1.HeritageLabel] == v1beta1.Heritage && labels[v1beta1.InstanceLabel] == instance
		return listed(live) && (written || labeled)
	}
}

// shared names the Installation that holds a live object; empty if none does.
func shared(live *unstructured.Unstructured) string {
	for _, owner := range live.GetOwnerReferences() {
		if v1beta1.OwnedBy(owner, "Installation") {
			return "Installation " + owner.Name
		}
	}
	return ""
}

// claimByController decides by the controller of an object.
func (run *Run) claimByController(ctx context.Context, live *unstructured.Unstructured) (apply.Claim, string, bool) {
	controller := metav1.GetControllerOf(live)
	if controller == nil {
		return 0, "", false
	}
	name := controller.Kind + " " + live.GetNamespace() + "/" + controller.Name
	if !v1beta1.OwnedBy(*controller, "Instance") {
		return apply.Foreign, name, true
	}
	if owner, err := run.owner(ctx, live.GetNamespace(), *controller); err == nil && owner == nil {
		return apply.OwnerGone, name, true
	}
	return apply.Foreign, name, true
}

// owner returns the Instance that an object of a namespace names as its owner; nil if there is none of that name and uid.
func (run *Run) owner(ctx context.Context, namespace string, reference metav1.OwnerReference) (*v1beta1.Instance, error) {
	i := &v1beta1.Instance{}
	err := run.Instances.Get(ctx, types.NamespacedName{Namespace: namespace, Name: reference.Name}, i)
	if apierror.IsObjectNotFound(err) || err == nil && i.UID != reference.UID {
		return nil, nil
	}
	return i, err
}

// owners names those who manage a foreign object, for people.
func owners(live *unstructured.Unstructured) string {
	var managers []string
	for _, entry := range live.GetManagedFields() {
		if entry.Subresource == "" && !slices.Contains(managers, entry.Manager) {
			managers = append(managers, entry.Manager)
		}
	}
	if len(managers) == 0 {
		return "another client"
	}
	return fmt.Sprintf("another client (written by %s)", strings.Join(managers, ", "))
}
