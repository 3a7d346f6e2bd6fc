package kudoinit

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/keyring"
)

// HistoryKey is the Secret, in kudo's namespace, whose key kudo seals the records of its runs with. The manager reads it;
// it is made and changed here only.
type HistoryKey struct {
	Client    client.Client
	Namespace string
	// Random is where keys come from.
	Random io.Reader
}

func (k *HistoryKey) String() string { return "Secret " + k.Namespace + "/" + keyring.SecretName }

// read returns the Secret, or nil if it does not exist.
func (k *HistoryKey) read(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	found, err := getIfPresent(ctx, k.Client, secret, k.Namespace, keyring.SecretName)
	if err != nil || !found {
		return nil, err
	}
	return secret, nil
}

// Exists reports whether there is a Secret.
func (k *HistoryKey) Exists(ctx context.Context) (bool, error) {
	secret, err := k.read(ctx)
	return secret != nil, err
}

// Check returns an error if the Secret is missing although records are sealed with its keys, which new keys would not open; or if its keys
// have sealed records that this version cannot read, since a newer one has written them.
func (k *HistoryKey) Check(ctx context.Context) error {
	secret, err := k.read(ctx)
	if err != nil {
		return err
	}
	if secret != nil {
		ring, err := keyring.Parse(secret.Data)
		if err != nil {
			return refuse(fmt.Errorf("%s cannot be used: %w; restore it from a backup, or say --rotate-history-key --drop-old, which makes a "+
				"new key", k, err))
		}
		return k.checkFormats(ctx, ring)
	}
	_, owners, err := k.uses(ctx)
	if err != nil || owners == 0 {
		return err
	}
	return refuse(fmt.Errorf("%s is missing, and the runs of %d Instances and OperatorVersions are sealed with it: restore it from a backup, "+
		"or say --rotate-history-key --drop-old, which makes a new key; plans that run then fail, and kubectl kudo plan retry starts them anew",
		k, owners))
}

// checkFormats returns an error if a newer version of kudo has sealed records. Its manager continues with their runs, and that of this
// version cannot.
func (k *HistoryKey) checkFormats(ctx context.Context, ring *keyring.Ring) error {
	records := &appsv1.ControllerRevisionList{}
	if err := k.Client.List(ctx, records, client.HasLabels{v1beta1.HistoryLabel}); err != nil {
		return fmt.Errorf("look for records of newer versions: %w", err)
	}
	var newer error
	count := 0
	for n := range records.Items {
		if err := history.CheckSealedFormat(ring, &records.Items[n]); err != nil {
			newer, count = cmp.Or(newer, err), count+1
		}
	}
	if newer == nil {
		return nil
	}
	return refuse(fmt.Errorf("records of runs that this version of kudo cannot read: %d; the first: %w", count, newer))
}

// Ensure makes the Secret if it does not exist, and reports whether it did. Check comes first.
func (k *HistoryKey) Ensure(ctx context.Context) (bool, error) {
	secret, err := k.read(ctx)
	if err != nil || secret != nil {
		return false, err
	}
	data, err := keyring.Rotate(nil, k.Random)
	if err != nil {
		return false, err
	}
	err = k.create(ctx, data)
	if apierrors.IsAlreadyExists(err) { // another init has made it
		return false, nil
	}
	return err == nil, err
}

func (k *HistoryKey) create(ctx context.Context, data map[string][]byte) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: keyring.SecretName,
		Labels: map[string]string{"app": "kudo-manager"}}, Data: data}
	if err := k.Client.Create(ctx, secret, client.FieldOwner(manager)); err != nil {
		return fmt.Errorf("create %s: %w", k, err)
	}
	return nil
}

// Rotate makes a new key the current one, and returns its id. The old ones continue to open what they have sealed, unless they
// are dropped.
func (k *HistoryKey) Rotate(ctx context.Context, dropOld bool) (string, error) {
	secret, err := k.read(ctx)
	if err != nil {
		return "", err
	}
	if secret == nil {
		if !dropOld {
			return "", fmt.Errorf("%s does not exist, so there is no key to rotate: kubectl kudo init makes it", k)
		}
		return k.replace(ctx)
	}
	var drop []string
	if dropOld {
		drop = keyring.IDs(secret.Data)
	}
	data, err := keyring.Rotate(secret.Data, k.Random, drop...)
	if err != nil {
		return "", err
	}
	return string(data["current"]), k.update(ctx, secret, data)
}

// replace makes a key in place of one that is lost, with another id: a digest of the lost key would otherwise count as one of a value that
// has changed.
func (k *HistoryKey) replace(ctx context.Context) (string, error) {
	used, _, err := k.uses(ctx)
	if err != nil {
		return "", err
	}
	lost := map[string][]byte{}
	for _, id := range used {
		lost[id] = nil
	}
	data, err := keyring.Rotate(lost, k.Random, keyring.IDs(lost)...)
	if err != nil {
		return "", err
	}
	return string(data["current"]), k.create(ctx, data)
}

// update writes the Secret, if no other client has written it meanwhile.
func (k *HistoryKey) update(ctx context.Context, secret *corev1.Secret, data map[string][]byte) error {
	secret.Data = data
	if err := k.Client.Update(ctx, secret, client.FieldOwner(manager)); err != nil {
		return fmt.Errorf("write %s: %w", k, err)
	}
	return nil
}

// Drop removes the keys that nothing was sealed with any more, but for the current one, and returns their ids.
func (k *HistoryKey) Drop(ctx context.Context) ([]string, error) {
	secret, err := k.read(ctx)
	if err != nil || secret == nil || len(keyring.IDs(secret.Data)) < 2 {
		return nil, err
	}
	used, _, err := k.uses(ctx)
	if err != nil {
		return nil, err
	}
	drop := slices.DeleteFunc(keyring.IDs(secret.Data), func(id string) bool {
		return id == string(secret.Data["current"]) || slices.Contains(used, id)
	})
	if len(drop) == 0 {
		return nil, nil
	}
	for _, id := range drop {
		delete(secret.Data, id)
	}
	return drop, k.update(ctx, secret, secret.Data)
}

// uses lists the ids of the keys of all records and baselines whose owners exist, one for each, and counts these owners.
func (k *HistoryKey) uses(ctx context.Context) (ids []string, owners int, err error) {
	instances, versions, records := &v1beta1.InstanceList{}, &v1beta1.OperatorVersionList{}, &appsv1.ControllerRevisionList{}
	for _, list := range []client.ObjectList{instances, versions} {
		if err := k.Client.List(ctx, list); err != nil && !absent(err) {
			return nil, 0, fmt.Errorf("look for what is sealed: %w", err)
		}
	}
	if err := k.Client.List(ctx, records, client.HasLabels{v1beta1.HistoryLabel}); err != nil {
		return nil, 0, fmt.Errorf("look for what is sealed: %w", err)
	}
	exists, uses := map[types.UID]bool{}, map[types.UID]bool{}
	add := func(owner types.UID, text string) {
		if id := keyring.IDOf(text); id != "" {
			ids, uses[owner] = append(ids, id), true
		}
	}
	for _, i := range instances.Items {
		exists[i.UID] = true
		if i.Status.Baseline == nil {
			continue
		}
		for _, digest := range i.Status.Baseline.Parameters {
			add(i.UID, digest)
		}
	}
	for _, v := range versions.Items {
		exists[v.UID] = true
		add(v.UID, v.Status.InputsHash)
	}
	for _, record := range records.Items {
		if owner := metav1.GetControllerOf(&record); owner != nil && exists[owner.UID] {
			add(owner.UID, record.Annotations[v1beta1.SealAnnotation])
		}
	}
	return ids, len(uses), nil
}

// Remove deletes the Secret, or says why it stays.
func (k *HistoryKey) Remove(ctx context.Context, dryRun bool) (*RemovalResult, error) {
	secret, err := k.read(ctx)
	if err != nil || secret == nil {
		return nil, err
	}
	_, owners, err := k.uses(ctx)
	if err != nil {
		return nil, err
	}
	id := idOf("v1", "Secret", k.Namespace, keyring.SecretName)
	result := &RemovalResult{Object: "secret " + keyring.SecretName, ID: id, Deleted: owners == 0}
	if !result.Deleted {
		result.Reason = fmt.Sprintf("the runs of %d Instances and OperatorVersions, which stay, are sealed with it", owners)
	}
	if !result.Deleted || dryRun {
		return result, nil
	}
	_, err = deleteAwait(ctx, k.Client, secret, metav1.DeletePropagationBackground)
	return result, err
}

// Unsealed lists the running plans that have no sealed record, because an older kudo started them. A new manager fails them.
func Unsealed(ctx context.Context, c client.Client) ([]string, error) {
	instances, versions := &v1beta1.InstanceList{}, &v1beta1.OperatorVersionList{}
	for _, list := range []client.ObjectList{instances, versions} {
		if err := c.List(ctx, list); err != nil && !absent(err) {
			return nil, fmt.Errorf("look for plans that run: %w", err)
		}
	}
	var out []string
	for n := range instances.Items {
		plans, err := unsealedPlans(ctx, c, "Instance", &instances.Items[n], instances.Items[n].Status.PlanStatus)
		if err != nil {
			return nil, err
		}
		out = append(out, plans...)
	}
	for n := range versions.Items {
		plans, err := unsealedPlans(ctx, c, "OperatorVersion", &versions.Items[n], versions.Items[n].Status.PlanStatus)
		if err != nil {
			return nil, err
		}
		out = append(out, plans...)
	}
	slices.Sort(out)
	return out, nil
}

// unsealedPlans lists the running plans of one Instance or OperatorVersion that have no sealed record, in no order.
func unsealedPlans(ctx context.Context, c client.Client, kind string, owner client.Object, plans map[string]v1beta1.PlanStatus) (
	[]string, error) {
	var out []string
	for name, st := range plans {
		if !st.Status.IsRunning() || st.Revision == 0 { // KUDO's own have no record, and continue
			continue
		}
		record := &appsv1.ControllerRevision{}
		if _, err := getIfPresent(ctx, c, record, owner.GetNamespace(), history.NameFor(owner, st.Revision)); err != nil {
			return nil, err
		}
		if record.Annotations[v1beta1.SealAnnotation] == "" {
			out = append(out, fmt.Sprintf("plan %s of %s %s/%s", name, kind, owner.GetNamespace(), owner.GetName()))
		}
	}
	return out, nil
}

// AwaitSealed waits until no plan runs that a new manager would not continue with.
func AwaitSealed(ctx context.Context, c client.Client, waiting func(message string)) error {
	told := ""
	err := poll(ctx, func() (string, error) {
		running, err := Unsealed(ctx, c)
		if err != nil || len(running) == 0 {
			return "", err
		}
		message := "the end of " + strings.Join(running, ", ")
		if message != told {
			waiting(message)
			told = message
		}
		return message, nil
	})
	if err == nil || told == "" || ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("the new version continues no plan that the old one has started, and there runs still %s: wait for it, end it with "+
		"kubectl kudo plan cancel, or give --wait-time=0s, with which it fails and is started anew by kubectl kudo plan retry",
		strings.TrimPrefix(told, "the end of "))
}

// DiscardValues deletes the Secrets in which kudo kept sensitive values before it sealed them into the records.
func DiscardValues(ctx context.Context, c client.Client) ([]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := c.List(ctx, list, client.HasLabels{v1beta1.HistoryLabel}); err != nil {
		return nil, fmt.Errorf("look for Secrets that are not used any more: %w", err)
	}
	var out []string
	for n := range list.Items {
		secret := &list.Items[n]
		owner := metav1.GetControllerOf(secret)
		if owner == nil || !v1beta1.OwnedBy(*owner, "Instance") || secret.Name != history.SecretName(owner.Name) {
			continue
		}
		uid := secret.UID
		if err := c.Delete(ctx, secret, client.Preconditions{UID: &uid}); err != nil && !absent(err) {
			return out, fmt.Errorf("delete Secret %s/%s: %w", secret.Namespace, secret.Name, err)
		}
		out = append(out, secret.Namespace+"/"+secret.Name)
	}
	return out, nil
}

// historyKey checks that the manager can seal records.
func (i *inspection) historyKey(ctx context.Context) []Finding {
	if i.live.Values.Hub {
		return nil // a hub records no runs
	}
	found := Finding{Check: "secret " + keyring.SecretName, State: OK}
	key := &HistoryKey{Client: i.client, Namespace: i.live.Namespace}
	secret, err := key.read(ctx)
	switch {
	case err != nil:
		found.State, found.Message, found.Remedy = Warning, "cannot be read: "+err.Error(), "use an administrator's kubeconfig"
		return []Finding{found}
	case secret == nil:
		found.State, found.Message = Failed, "is missing, so that no plan starts"
	default:
		if _, err := keyring.Parse(secret.Data); err != nil {
			found.State, found.Message = Failed, "cannot be used: "+err.Error()
		}
	}
	if found.State == Failed {
		found.Remedy = "restore it from a backup; if there is none, " + again
	}
	return []Finding{found}
}
