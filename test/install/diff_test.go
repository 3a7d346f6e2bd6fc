package install

import (
	"context"
	"maps"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/test/env"
)

var _ = It("The command init --diff shows what would change, and changes nothing", Label("diff", "slow", "R26"), func() {
	t, ctx := GinkgoTB(), context.Background()
	e, err := env.StartBare()
	env.Must(t, err)
	t.Cleanup(e.Stop)
	c, err := e.Connect()
	env.Must(t, err)

	By("on a cluster without kudo")
	env.Contains(t, e.MustKudo(t, 0, "init", "--diff", "--kudo-image", editedImage), "Namespace kudo-system would be created",
		"Deployment kudo-system/kudo-controller-manager would be created", "Secret kudo-system/kudo-history-key would be created, with a new key", "to change: 0, to delete: 0")
	if err := c.Get(ctx, types.NamespacedName{Name: "kudo-system"}, object(spaces, "")); !apierrors.IsNotFound(err) {
		t.Fatalf("--diff has created the namespace: %v", err)
	}

	By("after an installation, nothing is to be done")
	e.MustKudo(t, 0, "init", "--kudo-image", editedImage)
	env.Contains(t, e.MustKudo(t, 0, "init", "--diff"), "image of the manager: "+editedImage, "objects to create: 0, to change: 0, to delete: 0")

	By("an object of another version, a Secret with values, and other values of the installation")
	obsolete := object(roles, "kudo-obsolete")
	obsolete.SetAnnotations(map[string]string{"kudo.dev/version": "0.0.1"})
	env.Must(t, c.Apply(ctx, client.ApplyConfigurationFromUnstructured(obsolete), client.FieldOwner("kudo-init")))
	secret := env.Read(t, c, &corev1.Secret{}, "kudo-system", "kudo-webhook-server-secret")
	secret.Data = map[string][]byte{"tls.key": []byte("a secret key")}
	delete(secret.Labels, "app")
	env.Must(t, c.Update(ctx, secret))
	deployment := object(deployments, "")
	key := types.NamespacedName{Namespace: "kudo-system", Name: deploymentName}
	env.Must(t, c.Get(ctx, key, deployment))
	out := e.MustKudo(t, 0, "init", "--diff", "--set", "podLabels.team=x", "--set", "networkPolicy=true")
	env.Contains(t, out, "+        team: x", "NetworkPolicy kudo-system/kudo-controller-manager would be created", "ClusterRole kudo-obsolete would be deleted",
		"Secret kudo-system/kudo-webhook-server-secret, on the cluster", "objects to create: 1, to change: 3, to delete: 1")
	if strings.Contains(out, "a secret key") || strings.Contains(out, "YSBzZWNyZXQga2V5") {
		t.Errorf("the diff shows a secret:\n%s", out)
	}
	now := object(deployments, "")
	env.Must(t, c.Get(ctx, key, now))
	env.Must(t, c.Get(ctx, client.ObjectKeyFromObject(obsolete), obsolete))
	if now.GetGeneration() != deployment.GetGeneration() || !maps.Equal(now.GetLabels(), deployment.GetLabels()) {
		t.Error("--diff has changed the Deployment")
	}

	By("what init refuses, --diff refuses")
	env.Must(t, c.Patch(ctx, now, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":7}}}}`)),
		client.FieldOwner("kubectl-edit")))
	env.Contains(t, e.MustKudo(t, 1, "init", "--diff"), "spec.template.spec.terminationGracePeriodSeconds is 7, set by kubectl-edit; init would set 75.")
	env.Contains(t, e.MustKudo(t, 0, "init", "--diff", "--force-conflicts"), "-      terminationGracePeriodSeconds: 7", "+      terminationGracePeriodSeconds: 75")
})
