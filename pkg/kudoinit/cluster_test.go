package kudoinit

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// keySecret is the Secret of some keys, the last one current.
func keySecret(t *testing.T, keys int) *corev1.Secret {
	t.Helper()
	var data map[string][]byte
	for range keys {
		var err error
		if data, err = keyring.Rotate(data, rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	return &corev1.Secret{ObjectMeta: gen.Meta("kudo-system", keyring.SecretName), Data: data}
}

// usedBy is an Instance with a baseline of the keys with these ids, and the record of a run of the last.
func usedBy(ids ...string) []client.Object {
	i := gen.Instance("web", gen.Version("ns", "v"), nil)
	i.UID = "web"
	i.Status.Baseline = &v1beta1.Baseline{Parameters: map[string]string{}}
	for _, id := range ids {
		i.Status.Baseline.Parameters["P"+id] = id + ".00"
	}
	record := &appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", "web-1"), Revision: 1}
	record.Labels = map[string]string{v1beta1.HistoryLabel: "web"}
	record.Annotations = map[string]string{v1beta1.SealAnnotation: ids[len(ids)-1] + ".00"}
	record.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(i, v1beta1.GroupVersion.WithKind("Instance"))}
	return []client.Object{i, record}
}

// orphanOf is a record of the key whose owner was deleted.
func orphanOf(id string) client.Object {
	record := usedBy(id)[1]
	record.SetName("gone-1")
	record.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "kudo.dev/v1beta1", Kind: "Instance", Name: "gone", UID: "gone", Controller: new(true)}})
	return record
}

func ids(t *testing.T, server *apitest.Server) (current string, all []string) {
	t.Helper()
	secret := keySecret(t, 1)
	server.Read(secret)
	if _, err := keyring.Parse(secret.Data); err != nil {
		t.Errorf("the Secret is of no use: %v", err)
	}
	return string(secret.Data["current"]), keyring.IDs(secret.Data)
}

// TestHistoryKeyCheck checks when init refuses to continue: a new key would open nothing that the old one has sealed.
func TestHistoryKeyCheck(t *testing.T) {
	broken := keySecret(t, 1)
	broken.Data["1"] = []byte("short")
	for name, tc := range map[string]struct {
		reason  string
		objects []client.Object
		want    string
	}{
		"New":    {"a new cluster has no key", nil, ""},
		"There":  {"the key is there", append(usedBy("1"), keySecret(t, 1)), ""},
		"Orphan": {"records whose owner was deleted need no key", []client.Object{orphanOf("1")}, ""},
		"Lost": {"the key is lost", usedBy("1"), "Secret kudo-system/kudo-history-key is missing, and the runs of 1 Instances and OperatorVersions are sealed with it: restore it from a backup, or say --rotate-history-key --drop-old, " +
			"which makes a new key; plans that run then fail, and kubectl kudo plan retry starts them anew"},
		"Broken": {"the key is damaged", []client.Object{broken}, `Secret kudo-system/kudo-history-key cannot be used: entry "1" must be a number, with 32 bytes; ` +
			"restore it from a backup, or say --rotate-history-key --drop-old, which makes a new key"},
	} {
		server := apitest.Start(t, tc.objects...)
		key := &HistoryKey{Client: server.Client(), Namespace: "kudo-system", Random: rand.Reader}
		err := key.Check(t.Context())
		if (err == nil) != (tc.want == "") || err != nil && err.Error() != tc.want {
			t.Errorf("%s: %s:\n%v\nwant\n%s", name, tc.reason, err, tc.want)
		}
		if got := server.Requests(); slices.ContainsFunc(got, func(r string) bool { return !strings.HasPrefix(r, "get") && !strings.HasPrefix(r, "list") }) {
			t.Errorf("%s: a check writes: %v", name, got)
		}
	}
}

// TestHistoryKeyEnsure checks that a key is made once, and that a second init, and one without chance, makes none.
func TestHistoryKeyEnsure(t *testing.T) {
	server := apitest.Start(t)
	key := &HistoryKey{Client: server.Client(), Namespace: "kudo-system", Random: bytes.NewReader(nil)}
	if made, err := key.Ensure(t.Context()); made || err == nil || server.Get(keySecret(t, 1)) != nil {
		t.Errorf("a key of no random bytes: %v, %v", made, err)
	}
	key.Random = rand.Reader
	if made, err := key.Ensure(t.Context()); !made || err != nil {
		t.Fatalf("%v, %v", made, err)
	}
	first := server.Get(keySecret(t, 1))
	if made, err := key.Ensure(t.Context()); made || err != nil {
		t.Errorf("again: %v, %v", made, err)
	}
	server.Remove(first)
	server.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "create" {
			server.Before(nil)
			server.Put(keySecret(t, 1))
		}
		return nil, nil
	})
	if made, err := key.Ensure(t.Context()); made || err != nil {
		t.Errorf("another init was faster: %v, %v", made, err)
	}
	server.Remove(first)
	server.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "create" {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, keyring.SecretName, errors.New("no"))
		}
		return nil, nil
	})
	const want = `create Secret kudo-system/kudo-history-key: secrets "kudo-history-key" is forbidden: no`
	if made, err := key.Ensure(t.Context()); made || err == nil || err.Error() != want {
		t.Errorf("%v, %v", made, err)
	}
}

// TestHistoryKeyRotate checks which keys are there after a rotation.
func TestHistoryKeyRotate(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		objects []client.Object
		dropOld bool
		current string
		all     []string
		err     string
	}{
		"Keep":   {"the old keys open what they have sealed", []client.Object{keySecret(t, 2)}, false, "3", []string{"1", "2", "3"}, ""},
		"Drop":   {"unless they are dropped", []client.Object{keySecret(t, 2)}, true, "3", []string{"3"}, ""},
		"None":   {"without a key there is none to rotate", nil, false, "", nil, "Secret kudo-system/kudo-history-key does not exist, so there is no key to rotate: kubectl kudo init makes it"},
		"Lost":   {"a key in place of a lost one never has its id", usedBy("1", "7"), true, "8", []string{"8"}, ""},
		"Unused": {"without anything sealed, it is the first", nil, true, "1", []string{"1"}, ""},
	} {
		server := apitest.Start(t, tc.objects...)
		key := &HistoryKey{Client: server.Client(), Namespace: "kudo-system", Random: rand.Reader}
		id, err := key.Rotate(t.Context(), tc.dropOld)
		if (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err || id != tc.current {
			t.Errorf("%s: %s: %q, %v", name, tc.reason, id, err)
		}
		if err != nil {
			continue
		}
		current, all := ids(t, server)
		if diff := cmp.Diff(tc.all, all); diff != "" || current != tc.current {
			t.Errorf("%s: %s: current %s: %s", name, tc.reason, current, diff)
		}
	}
}

// TestHistoryKeyRotateRace checks that of two rotations at a time, the second does not drop the key of the first.
func TestHistoryKeyRotateRace(t *testing.T) {
	server := apitest.Start(t, keySecret(t, 1))
	key := &HistoryKey{Client: server.Client(), Namespace: "kudo-system", Random: rand.Reader}
	server.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "update" {
			server.Before(nil)
			server.Put(keySecret(t, 3))
		}
		return nil, nil
	})
	if id, err := key.Rotate(t.Context(), false); !apierrors.IsConflict(err) {
		t.Errorf("%s, %v", id, err)
	}
	if current, _ := ids(t, server); current != "3" {
		t.Errorf("current is %s", current)
	}
}

// TestHistoryKeyDrop checks that only keys that nothing was sealed with are dropped.
func TestHistoryKeyDrop(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		objects []client.Object
		want    []string
		left    []string
	}{
		"Used":   {"a baseline and a record need theirs", append(usedBy("1", "3"), keySecret(t, 4)), []string{"2"}, []string{"1", "3", "4"}},
		"Orphan": {"a record without owner needs none", []client.Object{orphanOf("1"), keySecret(t, 2)}, []string{"1"}, []string{"2"}},
		"All":    {"where all are used, none goes", append(usedBy("1", "2"), keySecret(t, 3)), nil, []string{"1", "2", "3"}},
		"One":    {"the current one stays", []client.Object{keySecret(t, 1)}, nil, []string{"1"}},
	} {
		server := apitest.Start(t, tc.objects...)
		key := &HistoryKey{Client: server.Client(), Namespace: "kudo-system", Random: rand.Reader}
		got, err := key.Drop(t.Context())
		_, left := ids(t, server)
		if diff := cmp.Diff(tc.want, got) + cmp.Diff(tc.left, left); diff != "" || err != nil {
			t.Errorf("%s: %s: %v: %s", name, tc.reason, err, diff)
		}
	}
	server := apitest.Start(t, keySecret(t, 2))
	key := &HistoryKey{Client: server.Client(), Namespace: "kudo-system", Random: rand.Reader}
	server.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "list" && r.Kind == "ControllerRevision" {
			return nil, apierrors.NewInternalError(errors.New("etcd"))
		}
		return nil, nil
	})
	if got, err := key.Drop(t.Context()); err == nil || got != nil || err.Error() != "look for what is sealed: Internal error occurred: etcd" {
		t.Errorf("keys are dropped without a look at the records: %v, %v", got, err)
	}
	if _, all := ids(t, server); len(all) != 2 {
		t.Errorf("left are %v", all)
	}
}

var keyID = idOf("v1", "Secret", "kudo-system", "kudo-history-key")

// TestHistoryKeyRemove checks that the key stays as long as anything is sealed with it.
func TestHistoryKeyRemove(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		objects []client.Object
		dryRun  bool
		want    *RemovalResult
		gone    bool
	}{
		"Unused": {"nothing is sealed with it", []client.Object{keySecret(t, 1)}, false, &RemovalResult{Object: "secret kudo-history-key", ID: keyID, Deleted: true}, true},
		"Dry":    {"a dry run deletes nothing", []client.Object{keySecret(t, 1)}, true, &RemovalResult{Object: "secret kudo-history-key", ID: keyID, Deleted: true}, false},
		"Used": {"a run is sealed with it", append(usedBy("1"), keySecret(t, 1)), false,
			&RemovalResult{Object: "secret kudo-history-key", ID: keyID, Reason: "the runs of 1 Instances and OperatorVersions, which stay, are sealed with it"}, false},
		"None": {"there is none", nil, false, nil, true},
	} {
		server := apitest.Start(t, tc.objects...)
		got, err := (&HistoryKey{Client: server.Client(), Namespace: "kudo-system"}).Remove(t.Context(), tc.dryRun)
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%s: %s: %v: %s", name, tc.reason, err, diff)
		}
		if gone := server.Get(keySecret(t, 1)) == nil; gone != tc.gone {
			t.Errorf("%s: %s: gone %v", name, tc.reason, gone)
		}
	}
}

// TestUnsealed checks which running plans a new manager would not continue with.
func TestUnsealed(t *testing.T) {
	i := usedBy("1")[0].(*v1beta1.Instance)
	i.Status.PlanStatus = map[string]v1beta1.PlanStatus{
		"sealed":   {Status: v1beta1.InProgress, Revision: 1},
		"unsealed": {Status: v1beta1.InProgress, Revision: 2},
		"missing":  {Status: v1beta1.Pending, Revision: 3},
		"done":     {Status: v1beta1.Complete, Revision: 2},
		"theirs":   {Status: v1beta1.InProgress},
	}
	unsealed := &appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", "web-2"), Revision: 2}
	server := apitest.Start(t, i, usedBy("1")[1], unsealed)
	got, err := Unsealed(t.Context(), server.Client())
	want := []string{"plan missing of Instance ns/web", "plan unsealed of Instance ns/web"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var told []string
	err = AwaitSealed(ctx, server.Client(), func(message string) { told = append(told, message) })
	if err == nil || !strings.Contains(err.Error(), "there runs still plan missing of Instance ns/web, plan unsealed of Instance ns/web: wait for it, end it with kubectl kudo plan cancel") {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff([]string{"the end of " + strings.Join(want, ", ")}, told); diff != "" {
		t.Errorf("the message about a wait is not given once: %s", diff)
	}
	i.Status.PlanStatus = nil
	server.Put(i)
	if err := AwaitSealed(t.Context(), server.Client(), func(message string) { t.Errorf("waits for %s", message) }); err != nil {
		t.Error(err)
	}
}

// TestDiscardValues checks that of all Secrets only those in which an older kudo kept values are deleted.
func TestDiscardValues(t *testing.T) {
	secret := func(name, ownerKind, apiVersion string, label bool) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: gen.Meta("ns", name)}
		if label {
			s.Labels = map[string]string{v1beta1.HistoryLabel: "x"}
		}
		if ownerKind != "" {
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: ownerKind, Name: "web", UID: "x", Controller: new(true)}}
		}
		return s
	}
	stay := []client.Object{
		secret("other", "Instance", "kudo.dev/v1beta1", true), secret("web-kudo-parameters2", "", "", true),
		secret("web", "Instance", "kudo.dev/v1beta1", true), secret("unlabeled", "Instance", "kudo.dev/v1beta1", false),
	}
	foreign := secret(history.SecretName("web"), "Instance", "example.com/v1", true)
	foreign.Namespace = "other"
	server := apitest.Start(t, append(stay, foreign, secret(history.SecretName("web"), "Instance", "kudo.dev/v1beta1", true))...)
	got, err := DiscardValues(t.Context(), server.Client())
	if diff := cmp.Diff([]string{"ns/web-kudo-parameters"}, got); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
	for _, obj := range append(stay, foreign) {
		if server.Get(obj) == nil {
			t.Errorf("Secret %s was deleted", obj.GetName())
		}
	}
}

func newScanner(t *testing.T, server *apitest.Server) *Scanner {
	t.Helper()
	served, errServed := discovery.NewDiscoveryClientForConfig(server.Config())
	lists, errLists := metadata.NewForConfig(server.Config())
	if err := errors.Join(errServed, errLists); err != nil {
		t.Fatal(err)
	}
	return &Scanner{Discovery: served, Metadata: lists}
}

// TestScannerContent checks what keeps kudo's namespace, and that what cannot be listed is not taken for empty.
func TestScannerContent(t *testing.T) {
	owned := &corev1.Pod{ObjectMeta: gen.Meta("kudo-system", "owned")}
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "d", UID: "d"}}
	deleted := &corev1.Pod{ObjectMeta: gen.Meta("kudo-system", "deleted")}
	deleted.DeletionTimestamp, deleted.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"a.example.com/b"}
	server := apitest.Start(t, owned, deleted,
		&corev1.ConfigMap{ObjectMeta: gen.Meta("kudo-system", "kube-root-ca.crt")}, &corev1.ServiceAccount{ObjectMeta: gen.Meta("kudo-system", "default")},
		&corev1.ConfigMap{ObjectMeta: gen.Meta("kudo-system", "mine")}, &corev1.Secret{ObjectMeta: gen.Meta("kudo-system", "goes")},
		&corev1.Pod{ObjectMeta: gen.Meta("kudo-system", "alone")}, &corev1.Pod{ObjectMeta: gen.Meta("other", "elsewhere")})
	scanner := newScanner(t, server)
	goes := func(group, kind, name string) bool { return group == "" && kind == "Secret" && name == "goes" }
	got, err := scanner.Content(t.Context(), "kudo-system", goes)
	if diff := cmp.Diff([]string{"ConfigMap mine", "Pod alone"}, got); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
	for reason, tc := range map[string]struct {
		err  error
		want string
	}{
		"an error ends the scan":                     {apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no")), "list secrets: secrets is forbidden: no"},
		"a kind that went meanwhile hides nothing":   {apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, ""), ""},
		"one that cannot be listed is not asked for": {apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "secrets"}, "list"), ""},
	} {
		server.Before(func(r apitest.Request) (any, error) {
			if r.Verb == "list" && r.Kind == "Secret" {
				return nil, tc.err
			}
			return nil, nil
		})
		if _, err := scanner.Content(t.Context(), "kudo-system", goes); (err == nil) != (tc.want == "") || err != nil && err.Error() != tc.want {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// TestRemoveKudoOwners checks that an object leaves kudo's hands with its other owners, and that a newer object of the name is left alone.
func TestRemoveKudoOwners(t *testing.T) {
	reference := func(apiVersion, kind, name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID("uid-of-" + name)}
	}
	system := reference("v1", "Namespace", "kube-system")
	for name, tc := range map[string]struct {
		reason  string
		managed bool
		owners  []metav1.OwnerReference
		left    []metav1.OwnerReference
	}{
		"Instance": {"an Instance's", false, []metav1.OwnerReference{reference("kudo.dev/v1beta1", "Instance", "web")}, nil},
		"Others":   {"owners of others stay, wherever they stand", false, []metav1.OwnerReference{reference("v1", "Pod", "a"), reference("kudo.dev/v1beta1", "Instance", "web"), reference("v1", "Pod", "b")}, []metav1.OwnerReference{reference("v1", "Pod", "a"), reference("v1", "Pod", "b")}},
		"Guard":    {"the guard goes with the Installations", true, []metav1.OwnerReference{reference("kudo.dev/v1beta1", "Installation", "x"), system, reference("kudo.dev/v1beta1", "Installation", "y")}, nil},
		"System":   {"of an object that kudo did not make, kube-system is no guard", false, []metav1.OwnerReference{reference("kudo.dev/v1beta1", "Installation", "x"), system}, []metav1.OwnerReference{system}},
		"Group":    {"a group that only begins like kudo's is another", false, []metav1.OwnerReference{reference("kudo.dev.example.com/v1", "Instance", "web")}, []metav1.OwnerReference{reference("kudo.dev.example.com/v1", "Instance", "web")}},
	} {
		t.Run(name, func(t *testing.T) {
			cm := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "c")}
			cm.OwnerReferences = tc.owners
			if tc.managed {
				cm.Annotations = map[string]string{v1beta1.ManagedAnnotation: "true", "other": "x"}
			}
			server := apitest.Start(t, cm)
			server.Read(cm)
			remover := &Remover{Scanner: newScanner(t, server), Client: server.Client()}
			partial := &metav1.PartialObjectMetadata{ObjectMeta: cm.ObjectMeta}
			meantime := cm.DeepCopy()
			meantime.OwnerReferences = slices.Insert(slices.Clone(tc.owners), 0, reference("v1", "Pod", "late"))
			server.Put(meantime) // the places of the owners have changed since they were seen
			if err := remover.removeKudoOwners(t.Context(), corev1.SchemeGroupVersion.WithResource("configmaps"), partial); err != nil {
				t.Fatal(err)
			}
			after := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "c")}
			server.Read(after)
			want := append([]metav1.OwnerReference{reference("v1", "Pod", "late")}, tc.left...)
			if diff := cmp.Diff(want, after.OwnerReferences, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
			if after.Annotations[v1beta1.ManagedAnnotation] != "" || tc.managed && after.Annotations["other"] != "x" {
				t.Errorf("%s: annotations %v", tc.reason, after.Annotations)
			}
			server.Remove(cm)
			cm.UID = "another"
			server.Put(cm)
			server.Requests()
			if err := remover.removeKudoOwners(t.Context(), corev1.SchemeGroupVersion.WithResource("configmaps"), partial); err != nil {
				t.Errorf("another object of the name: %v", err)
			}
			if got := server.Get(cm); len(got.GetOwnerReferences()) != len(tc.owners) {
				t.Errorf("another object of the name was changed: %v", got.GetOwnerReferences())
			}
		})
	}
}

// TestReadState checks what is read off a cluster, and that an error is none of "not installed".
func TestReadState(t *testing.T) {
	server := apitest.Start(t)
	live, err := ReadState(t.Context(), server.Client())
	if err != nil || live.Installed || live.Bound || !live.External || live.IsExternal() || live.Namespace != DefaultNamespace || live.Predecessor != "" {
		t.Errorf("an empty cluster: %+v, %v", live, err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: roleName}}
	server.Put(binding)
	if live, err = ReadState(t.Context(), server.Client()); err != nil || live.Bound {
		t.Errorf("a binding without subjects binds no account: %+v, %v", live, err)
	}
	binding.Subjects = []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "elsewhere", Name: "boss"}}
	server.Put(binding)
	deployment := &appsv1.Deployment{ObjectMeta: gen.Meta("elsewhere", deploymentName)}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{
		{Name: "sidecar", Image: "sidecar", Args: []string{insecureMetricsArg}},
		{Name: "manager", Image: "manager:1", ImagePullPolicy: corev1.PullNever, Args: []string{"--x", pipeImageArg + "pipe@sha256:1"}},
	}
	deployment.Spec.Replicas = new(int32(3))
	server.Put(deployment)
	set := &appsv1.StatefulSet{ObjectMeta: gen.Meta("old", "kudo-controller-manager")}
	set.Labels = map[string]string{"app": "kudo-manager", "control-plane": "controller-manager"}
	server.Put(set)
	live, err = ReadState(t.Context(), server.Client())
	if err != nil {
		t.Fatal(err)
	}
	got := []string{live.Namespace, live.Account, live.Image, live.PullPolicy, live.PipeImage, live.Predecessor}
	if diff := cmp.Diff([]string{"elsewhere", "boss", "manager:1", "Never", "pipe@sha256:1", "old"}, got); diff != "" || live.External || live.InsecureMetrics || live.Replicas != 3 {
		t.Errorf("external %v, metrics %v, %d replicas: %s", live.External, live.InsecureMetrics, live.Replicas, diff)
	}
	for _, kind := range []string{"CustomResourceDefinition", "ClusterRoleBinding", "Deployment", "ValidatingWebhookConfiguration", "StatefulSet"} {
		server.Before(func(r apitest.Request) (any, error) {
			if r.Kind == kind {
				return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", errors.New("no"))
			}
			return nil, nil
		})
		if _, err := ReadState(t.Context(), server.Client()); !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), "look for ") {
			t.Errorf("%s cannot be read: %v", kind, err)
		}
	}
}

// TestRenewToken checks that a token is for its owner's eyes only, and that a refused one leaves the old file.
func TestRenewToken(t *testing.T) {
	server := apitest.Start(t)
	end := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	var asked []int64
	server.Before(func(r apitest.Request) (any, error) {
		request := &authenticationv1.TokenRequest{}
		r.Decode(t, request)
		asked = append(asked, *request.Spec.ExpirationSeconds)
		request.Status = authenticationv1.TokenRequestStatus{Token: "secret", ExpirationTimestamp: end}
		return request, nil
	})
	path := TokenFile(filepath.Join(t.TempDir(), "kubeconfig"))
	got, err := RenewToken(t.Context(), server.Client(), client.ObjectKey{Namespace: "ns", Name: "sa"}, path, time.Hour)
	if err != nil || !got.Equal(end.Time) || !cmp.Equal(asked, []int64{3600}) {
		t.Errorf("%v, %v, asked for %v", got, err, asked)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	server.Before(func(apitest.Request) (any, error) {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "serviceaccounts"}, "sa")
	})
	if _, err := RenewToken(t.Context(), server.Client(), client.ObjectKey{Namespace: "ns", Name: "sa"}, path, time.Hour); err == nil || err.Error() != `token of ServiceAccount ns/sa: serviceaccounts "sa" not found` {
		t.Errorf("%v", err)
	}
	for _, d := range []time.Duration{-time.Hour, 0, minTokenDuration - 1, MaxTokenDuration + 1} {
		if _, err := RenewToken(t.Context(), server.Client(), client.ObjectKey{Namespace: "ns", Name: "sa"}, path, d); err == nil || !strings.HasPrefix(err.Error(), "--token-duration ") {
			t.Errorf("%s: %v", d, err)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "secret" {
		t.Errorf("the old token is %q, %v", text, err)
	}
}

// TestWaitForPolicies checks that init waits until the policies refuse a probe, and deletes all probes.
func TestWaitForPolicies(t *testing.T) {
	probes := func(server *apitest.Server) int {
		list := &v1beta1.InstallationList{}
		if err := server.Client().List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	for name, tc := range map[string]struct {
		reason string
		// answers to the dry runs, in order.
		answers []error
		want    string
		dryRuns int
	}{
		"Soon":    {"a policy is in force after a moment", []error{nil, nil, apierrors.NewForbidden(v1beta1.Resource("installations"), "x", errors.New("policy"))}, "", 3},
		"Deleted": {"a manager has deleted the probe: another is made", []error{apierrors.NewNotFound(v1beta1.Resource("installations"), "x"), apierrors.NewForbidden(v1beta1.Resource("installations"), "x", errors.New("policy"))}, "", 2},
		"Error":   {"an error is no refusal", []error{apierrors.NewInternalError(errors.New("etcd"))}, "probe the policies: Internal error occurred: etcd", 1},
	} {
		t.Run(name, func(t *testing.T) {
			server := apitest.Start(t)
			dryRuns := 0
			server.Before(func(r apitest.Request) (any, error) {
				options := &metav1.DeleteOptions{}
				if r.Verb != "delete" || len(r.Body) == 0 {
					return nil, nil
				}
				if r.Decode(t, options); len(options.DryRun) == 0 {
					return nil, nil
				}
				if *options.PropagationPolicy != metav1.DeletePropagationForeground {
					t.Errorf("%s: the deletion is of policy %s", tc.reason, *options.PropagationPolicy)
				}
				dryRuns++
				if err := tc.answers[dryRuns-1]; err != nil {
					if apierrors.IsNotFound(err) {
						server.Remove(&v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{Name: r.Name}})
					}
					return nil, err
				}
				return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}, nil
			})
			err := WaitForPolicies(t.Context(), server.Client())
			if (err == nil) != (tc.want == "") || err != nil && err.Error() != tc.want || dryRuns != tc.dryRuns {
				t.Errorf("%s: %v after %d dry runs", tc.reason, err, dryRuns)
			}
			if n := probes(server); n > 0 {
				t.Errorf("%s: %d probes are left", tc.reason, n)
			}
		})
	}
}
