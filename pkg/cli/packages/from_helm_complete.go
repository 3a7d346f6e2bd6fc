package packages

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/helmrelease"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/helmstore"
	"kudo.dev/kudo/pkg/text"
)

// helmMove moves the objects of a release between Helm and an Instance.
type helmMove struct {
	env                          *command.Env
	client                       client.Client
	namespace, release, instance string
	yes                          bool
}

// maxMissing is how many objects a message names.
const maxMissing = 10

// complete sets the Secrets of the release aside, if the Instance has all of its objects.
func (m *helmMove) complete(ctx context.Context) error {
	stored, _, err := m.checkComplete(ctx)
	if err != nil || len(stored) == 0 {
		return err
	}
	for i := range stored {
		m.env.Printf("Secret %s is set aside", stored[i].Name)
	}
	if err := m.env.Ask(m.question("Take the release away from Helm? Helm does not find it then.")); err != nil {
		return err
	}
	// Helm and the Instance may have done much until the answer came.
	stored, objs, err := m.checkComplete(ctx)
	if err != nil || len(stored) == 0 {
		return err
	}
	if err := stored.SetAside(ctx, m.client, m.instance); err != nil {
		return err
	}
	if err := m.checkNothingLeft(ctx, stored); err != nil {
		return err
	}
	m.env.Printf("release %s/%s is set aside: Instance %s has its %d objects", m.namespace, m.release, m.instance, len(objs))
	return nil
}

// checkComplete returns the Secrets of the release, and its objects if the Instance has all of them. It returns no Secrets if they are set
// aside already.
func (m *helmMove) checkComplete(ctx context.Context) (helmstore.Releases, []helmrelease.Object, error) {
	stored, err := helmstore.List(ctx, m.client, m.namespace, m.release)
	if err != nil {
		return nil, nil, err
	}
	if len(stored) == 0 {
		return nil, nil, m.explainNothingToSetAside(ctx)
	}
	release, newest, err := stored.Deployed()
	if err != nil {
		return nil, nil, err
	}
	if newest != "deployed" {
		return nil, nil, fmt.Errorf("the newest revision of release %s is %s: let Helm finish or roll back, make the package anew, and upgrade "+
			"the Instance to it", m.release, newest)
	}
	converted, err := helmrelease.Convert(release, scopeOf(m.client), nil)
	if err != nil {
		return nil, nil, fmt.Errorf("release %s/%s: %w", m.namespace, m.release, err)
	}
	instance := &v1beta1.Instance{}
	if err := m.client.Get(ctx, types.NamespacedName{Namespace: m.namespace, Name: m.instance}, instance); err != nil {
		return nil, nil, fmt.Errorf("get Instance %s/%s: %w", m.namespace, m.instance, err)
	}
	return stored, converted.Objects, m.checkTakenOver(ctx, instance, converted.Objects)
}

// checkNothingLeft restores the Secrets if Helm has written another revision since they were listed: Helm would find that one, and delete
// the objects that it names.
func (m *helmMove) checkNothingLeft(ctx context.Context, stored helmstore.Releases) error {
	left, err := helmstore.List(ctx, m.client, m.namespace, m.release)
	if err != nil {
		return fmt.Errorf("find out whether Helm has written another revision meanwhile: %w: repeat the command", err)
	}
	if len(left) == 0 {
		return nil
	}
	var names []string
	for i := range left {
		names = append(names, left[i].Name)
	}
	err = fmt.Errorf("helm has written Secret %s meanwhile, and the release stays Helm's: let Helm finish, then repeat the command",
		text.List(names, maxMissing))
	return errors.Join(err, stored.Restore(ctx, m.client))
}

func (m *helmMove) question(text string) command.Question {
	return command.Question{Text: text, Yes: m.yes,
		NoTerminal: "a release is moved only after a question, and stdin is no terminal: say --yes to continue",
		Declined:   "nothing was changed"}
}

// explainNothingToSetAside prints that the release was set aside before, or returns an error if there is none.
func (m *helmMove) explainNothingToSetAside(ctx context.Context) error {
	aside, err := helmstore.ListAside(ctx, m.client, m.namespace, m.release, m.instance)
	if err != nil {
		return err
	}
	if len(aside) == 0 {
		return fmt.Errorf("namespace %s has no release %s of Helm, and none that was set aside for Instance %s", m.namespace, m.release,
			m.instance)
	}
	m.env.Printf("release %s/%s is set aside already", m.namespace, m.release)
	return nil
}

// checkTakenOver returns an error that names the objects that the Instance has not taken over.
func (m *helmMove) checkTakenOver(ctx context.Context, instance *v1beta1.Instance, objs []helmrelease.Object) error {
	if instance.DeletionTimestamp != nil {
		return fmt.Errorf("instance %s/%s is being deleted", m.namespace, m.instance)
	}
	if plan := instance.Status.AggregatedStatus; plan.ActivePlanName != "" || plan.Status != v1beta1.Complete {
		return fmt.Errorf("plan %s of Instance %s/%s is %s: wait until it is complete (kubectl kudo plan status)", plan.ActivePlanName,
			m.namespace, m.instance, plan.Status)
	}
	held, err := m.held(ctx, instance)
	if err != nil {
		return err
	}
	var missing []string
	for _, obj := range objs {
		name := releasedName(obj)
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(obj.GroupVersionKind)
		err := m.client.Get(ctx, types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}, live)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("get %s %s: %w", obj.Kind, obj.Name, err)
		}
		if uid := held[name]; err != nil || uid == "" || uid != live.UID {
			missing = append(missing, obj.Kind+" "+obj.Name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("instance %s/%s has not taken over %s: nothing was changed. Install the package that was made of the release with "+
			"--adopt, or upgrade the Instance to it", m.namespace, m.instance, text.List(missing, maxMissing))
	}
	return nil
}

// objectName names an object, whatever the version of its kind is.
type objectName struct {
	schema.GroupKind
	namespace, name string
}

// nameOf names an object of the inventory of an Instance, and releasedName one of a release.
func nameOf(r v1beta1.ResourceStatus) objectName {
	return objectName{schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind(), r.Namespace, r.Name}
}

func releasedName(obj helmrelease.Object) objectName {
	return objectName{obj.GroupKind(), obj.Namespace, obj.Name}
}

// held returns the uids of the objects that the plans of an Instance have written, and of those that the install plan of its
// OperatorVersion holds.
func (m *helmMove) held(ctx context.Context, instance *v1beta1.Instance) (map[objectName]types.UID, error) {
	out := map[objectName]types.UID{}
	for _, r := range instance.Status.Resources {
		out[nameOf(r)] = r.UID
	}
	ov := &v1beta1.OperatorVersion{}
	key := types.NamespacedName{Namespace: instance.Namespace, Name: instance.Spec.OperatorVersion.Name}
	if instance.Spec.OperatorVersion.Namespace != "" {
		key.Namespace = instance.Spec.OperatorVersion.Namespace
	}
	if err := m.client.Get(ctx, key, ov); err != nil {
		return nil, fmt.Errorf("get OperatorVersion %s: %w", key, err)
	}
	if ov.Status.Installation == "" {
		return out, nil
	}
	installation := &v1beta1.Installation{}
	if err := m.client.Get(ctx, types.NamespacedName{Name: ov.Status.Installation}, installation); err != nil {
		return nil, errors.Join(fmt.Errorf("what the install plan holds is not known: get Installation %s", ov.Status.Installation), err)
	}
	for _, r := range installation.Status.Resources {
		if r.State == v1beta1.HoldCreated || r.State == v1beta1.HoldShared || r.State == v1beta1.HoldExisting {
			out[objectName{schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind(), r.Namespace, r.Name}] = r.UID
		}
	}
	return out, nil
}
