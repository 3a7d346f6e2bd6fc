package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/install"
	"kudo.dev/kudo/pkg/keyring"
)

func historyKey(c client.Client, namespace string) *install.HistoryKey {
	return &install.HistoryKey{Client: c, Namespace: namespace, Random: rand.Reader}
}

// keyNote says how to make the key where objects are not applied by init: what is printed goes into repositories.
func keyNote(namespace string) string {
	return fmt.Sprintf("the Secret %s is not printed, since a key must not come into a repository, and no plan starts without it: make it once, with "+
		"kubectl create secret generic %s -n %s --from-literal=current=1 --from-file=1=<(head -c 32 /dev/urandom)", keyring.SecretName, keyring.SecretName, namespace)
}

// apply puts the objects on the cluster, and the history key as soon as its namespace is there: the manager waits for it.
func (t *tool) apply(ctx context.Context, c client.Client, o *initOptions, objs []*unstructured.Unstructured) error {
	told := func(obj *unstructured.Unstructured, created bool) {
		verb := "configured"
		if created {
			verb = "created"
		}
		t.say("%s %s %s", lower(obj.GetKind()), obj.GetName(), verb)
	}
	if o.CRDsOnly {
		return install.Apply(ctx, c, objs, told)
	}
	first := 1 + slices.IndexFunc(objs, func(obj *unstructured.Unstructured) bool { return obj.GetKind() == "Namespace" })
	if err := install.Apply(ctx, c, objs[:first], told); err != nil {
		return err
	}
	key := historyKey(c, o.Namespace)
	made, err := key.Ensure(ctx)
	if err != nil {
		return err
	}
	if made {
		t.say("secret %s created", keyring.SecretName)
	}
	if err := install.Apply(ctx, c, objs[first:], told); err != nil || !o.upgrade {
		return err
	}
	dropped, err := key.Drop(ctx)
	if err != nil {
		return err
	}
	if len(dropped) > 0 {
		t.say("secret %s: dropped key %s, which nothing is sealed with any more", keyring.SecretName, strings.Join(dropped, ", "))
	}
	deleted, err := install.DiscardValues(ctx, c)
	for _, name := range deleted {
		t.say("secret %s removed: sensitive values are sealed into the records of runs", name)
	}
	return err
}

// awaitSealed waits, before an upgrade, for the plans that the new version would not go on with.
func (t *tool) awaitSealed(ctx context.Context, c client.Client, o *initOptions) error {
	if !o.upgrade || o.waitTime == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(o.waitTime))
	defer cancel()
	err := install.AwaitSealed(ctx, c, func(message string) { t.progress("waiting: %s", message) })
	if err != nil && ctx.Err() != nil {
		return &codeError{ExitTimeout, err}
	}
	return err
}

// rotateHistoryKey makes a new key for the records of runs.
func (t *tool) rotateHistoryKey(ctx context.Context, dropOld bool) error {
	c, _, _, err := t.connect()
	if err != nil {
		return err
	}
	live, err := install.Look(ctx, c)
	if err != nil {
		return err
	}
	if !live.Installed {
		return fmt.Errorf("kudo is not installed on this cluster, so there is no key to rotate: run kubectl kudo init")
	}
	if n := t.flags.Namespace; !live.Bound && n != nil && *n != "" {
		live.Namespace = *n
	}
	key := historyKey(c, live.Namespace)
	id, err := key.Rotate(ctx, dropOld)
	if err != nil {
		return err
	}
	after := "the old ones are dropped by kubectl kudo init --upgrade once nothing is sealed with them"
	if dropOld {
		after = "the old ones are dropped: plans that run fail, and kubectl kudo plan retry starts them anew"
	}
	t.say("secret %s: key %s is the current one; %s", keyring.SecretName, id, after)
	return nil
}
