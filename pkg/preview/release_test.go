package preview

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestRelease checks what the deletion of an OperatorVersion says of each object that it holds, and of the Instances that use it (P1, P13, P24).
func TestRelease(t *testing.T) {
	version := web()
	version.UID = "version-uid"
	user := []types.NamespacedName{{Namespace: "team-b", Name: "site"}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: gen.Meta("apps", "data")}
	common := &corev1.ConfigMap{ObjectMeta: gen.Meta("apps", "common")}
	other := &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "other-uid"}}
	other.Spec.Subject = v1beta1.InstallationSubject{Kind: "OperatorVersion", Namespace: "team-b", Name: "db-1.0.0"}
	ours := metav1.OwnerReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "Installation", Name: version.InstallationName(), UID: "holder-uid"}
	theirs := metav1.OwnerReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "Installation", Name: "other", UID: "other-uid"}
	forbidden := func(r apitest.Request) (any, error) {
		if r.Kind == "ConfigMap" {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "common", errors.New("no"))
		}
		return nil, nil
	}
	for name, tc := range map[string]struct {
		reason  string
		release Release
		held    []client.Object
		owners  []metav1.OwnerReference
		hook    apitest.Hook
		want    []string
		why     string
		summary string
	}{
		"Nothing": {"a version without an install plan holds nothing", Release{}, nil, nil, nil, nil, "", ""},
		"Last":    {"the last holder takes the object along", Release{}, []client.Object{common}, []metav1.OwnerReference{ours}, nil, []string{"delete ConfigMap apps/common"}, "", "1 delete"},
		"Others": {"what others hold stays, and they are named", Release{}, []client.Object{common}, []metav1.OwnerReference{ours, theirs}, nil, []string{"keep ConfigMap apps/common"},
			"OperatorVersion team-b/db-1.0.0 holds it too", "1 keep"},
		"Claim": {"data holds the release up", Release{}, []client.Object{claim}, []metav1.OwnerReference{ours}, nil, []string{"keep PersistentVolumeClaim apps/data"}, "it holds the release up: it holds data", ""},
		"Force": {"unless it is to be destroyed", Release{Force: true}, []client.Object{claim}, []metav1.OwnerReference{ours}, nil, []string{"delete PersistentVolumeClaim apps/data"},
			"it is destroyed with what it holds: it holds data", "data: 1 claim deleted"},
		"Used": {"Instances are named, and hold it up", Release{Users: user}, []client.Object{common}, []metav1.OwnerReference{ours}, nil,
			[]string{"refused: Instances use it: team-b/site. Uninstall or upgrade them first, or add --leave-users", "delete ConfigMap apps/common"}, "", ""},
		"Left": {"unless they are left behind", Release{Users: user, LeavesUsers: true}, []client.Object{common}, []metav1.OwnerReference{ours}, nil, []string{"keep ConfigMap apps/common"},
			"it is held until no Instance uses this version any more", ""},
		"Forbidden": {"what may not be looked at is unknown, with the reason", Release{}, []client.Object{common}, []metav1.OwnerReference{ours}, forbidden, []string{"unknown ConfigMap apps/common"},
			`ConfigMap apps/common: configmaps "common" is forbidden: no`, "1 unknown"},
		"Unlisted": {"who may not list Instances learns that some may not be known", Release{Unlisted: errors.New("no")}, nil, nil, nil, []string{"unknown: which Instances of other namespaces use the version: no"}, "", "1 unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, other)
			holder := &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{Name: version.InstallationName(), UID: "holder-uid"}}
			for _, obj := range tc.held {
				obj, _ := obj.DeepCopyObject().(client.Object)
				obj.SetOwnerReferences(tc.owners)
				obj.SetAnnotations(map[string]string{v1beta1.ManagedAnnotation: "true"})
				live := l.Put(obj)
				holder.Status.Resources = append(holder.Status.Resources, v1beta1.HeldResource{APIVersion: live.GetAPIVersion(), Kind: live.GetKind(), Namespace: live.GetNamespace(), Name: live.GetName(), UID: live.GetUID(), State: v1beta1.HoldCreated})
			}
			if len(tc.held) > 0 {
				l.Put(holder)
			}
			l.watchWrites(tc.hook)
			tc.release.Version = version
			p, err := ComputeRelease(t.Context(), l.options(), tc.release)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, brief(p)); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
			if tc.why != "" && p.Objects[0].Why != tc.why {
				t.Errorf("%s: %q", tc.reason, p.Objects[0].Why)
			}
			var shared []Share
			if name == "Others" {
				shared = []Share{{"ConfigMap apps/common", ShareLeave, []string{"OperatorVersion team-b/db-1.0.0"}}}
			}
			if diff := cmp.Diff(shared, p.Shared); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
			if !strings.Contains(p.Summary(), tc.summary) || !strings.HasPrefix(p.Digest, "sha256:") {
				t.Errorf("%s: %q %s", tc.reason, p.Summary(), p.Digest)
			}
			if (name == "Used") != p.Fails() || (name == "Force") != p.Raises(concernData) {
				t.Errorf("%s: fails %v, loses data %v", tc.reason, p.Fails(), p.Raises(concernData))
			}
		})
	}
}

// TestReleaseComment checks that a comment names the Instances that stay, and escapes what others have named.
func TestReleaseComment(t *testing.T) {
	p := &Preview{Verb: "uninstall", Subject: "OperatorVersion ns/web", Stays: []Stay{{Object: "Instance ns/<b>site</b>", Why: "it | uses\nit @all"}},
		Objects: []Object{{Kind: "CustomResourceDefinition", Name: "ships.example.com", Effect: Delete, Lost: true, Why: "it has 3 objects of kind Ship"}}}
	var out bytes.Buffer
	if err := p.WriteMarkdown(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"- Instance ns/&lt;b&gt;site&lt;/b&gt; stays: it &#124; uses", "&#64;all", "1 object destroyed with their content"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "<b>") {
		t.Error(out.String())
	}
}
