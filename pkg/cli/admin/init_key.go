package admin

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/pkg/kudoinit"
)

func historyKey(c client.Client, namespace string) *kudoinit.HistoryKey {
	return &kudoinit.HistoryKey{Client: c, Namespace: namespace, Random: rand.Reader}
}

// keyNote says how to make the key where objects are not applied by init: what is printed goes into repositories.
func keyNote(namespace string) string {
	return fmt.Sprintf("the Secret %s is not printed, since a key must not come into a repository, and no plan starts without it: make it "+
		"once, with "+
		"kubectl create secret generic %s -n %s --from-literal=current=1 --from-file=1=<(head -c 32 /dev/urandom)", keyring.SecretName,
		keyring.SecretName, namespace)
}

// apply puts the objects on the cluster, and the history key as soon as its namespace is there: the manager waits for it.
func (o *initOptions) apply(ctx context.Context, c client.Client, change *kudoinit.Change) error {
	told := func(obj *unstructured.Unstructured, created bool) {
		verb := "configured"
		if created {
			verb = "created"
		}
		o.env.Printf("%s %s %s", strings.ToLower(obj.GetKind()), obj.GetName(), verb)
	}
	if o.CRDsOnly || o.Values.Hub { // a hub records no runs
		return change.Apply(ctx, c, told)
	}
	first, rest := change.Split("Namespace")
	if err := first.Apply(ctx, c, told); err != nil {
		return err
	}
	key := historyKey(c, o.Namespace)
	made, err := key.Ensure(ctx)
	if err != nil {
		return err
	}
	if made {
		o.env.Printf("secret %s created", keyring.SecretName)
	}
	if err := rest.Apply(ctx, c, told); err != nil {
		return err
	}
	err = kudoinit.Prune(ctx, c, o.Version, func(obj client.Object) {
		o.env.Printf("%s %s removed: kudo %s does not have it", strings.ToLower(obj.GetObjectKind().GroupVersionKind().Kind), obj.GetName(),
			o.Version)
	})
	if err != nil || !o.upgrade {
		return err
	}
	dropped, err := key.Drop(ctx)
	if err != nil {
		return err
	}
	if len(dropped) > 0 {
		o.env.Printf("secret %s: dropped key %s, which nothing is sealed with any more", keyring.SecretName, strings.Join(dropped, ", "))
	}
	deleted, err := kudoinit.DiscardValues(ctx, c)
	for _, name := range deleted {
		o.env.Printf("secret %s removed: sensitive values are sealed into the records of runs", name)
	}
	return err
}

// awaitSealed waits, before an upgrade, for the plans that the new version would not continue with.
func (o *initOptions) awaitSealed(ctx context.Context, c client.Client) error {
	if !o.upgrade || o.waitTime == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(o.waitTime))
	defer cancel()
	err := kudoinit.AwaitSealed(ctx, c, func(message string) { o.env.Progressf("waiting: %s", message) })
	if err != nil && ctx.Err() != nil {
		return command.WithCode(command.ExitTimeout, err)
	}
	return err
}

// rotateHistoryKey makes a new key for the records of runs.
func rotateHistoryKey(ctx context.Context, env *command.Env, dropOld bool) error {
	c, _, _, err := env.Connect()
	if err != nil {
		return err
	}
	live, err := kudoinit.ReadState(ctx, c)
	if err != nil {
		return err
	}
	if !live.Installed {
		return fmt.Errorf("kudo is not installed on this cluster, so there is no key to rotate: run kubectl kudo init")
	}
	if n := env.Flags.Namespace; !live.Bound && n != nil && *n != "" {
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
	env.Printf("secret %s: key %s is the current one; %s", keyring.SecretName, id, after)
	return nil
}
