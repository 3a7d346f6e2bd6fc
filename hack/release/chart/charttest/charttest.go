// Package charttest renders charts of kudo as Helm does, and compares their objects with those of init.
package charttest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/pkg/cli"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/kudoinit"
)

// Load returns the chart that has these files.
func Load(files map[string][]byte) (*chartv2.Chart, error) {
	var all []*archive.BufferedFile
	for name, data := range files {
		all = append(all, &archive.BufferedFile{Name: name, Data: data})
	}
	return loader.LoadFiles(all)
}

// Render returns the objects that helm template prints for a release in a namespace.
func Render(chart *chartv2.Chart, namespace, values string) ([]*unstructured.Unstructured, error) {
	given := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		return nil, err
	}
	options := common.ReleaseOptions{Name: "kudo", Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, given, options, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for name, text := range files {
		if strings.HasSuffix(name, ".txt") {
			continue
		}
		objs, err := Parse([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", name, err, text)
		}
		out = append(out, objs...)
	}
	return out, nil
}

// Init returns the objects that init prints with these flags and --dry-run.
func Init(flags ...string) ([]*unstructured.Unstructured, error) {
	var out, errs bytes.Buffer
	root := cli.NewRoot(command.NewEnv(strings.NewReader(""), &out, &errs))
	root.SetArgs(append([]string{"init", "--dry-run", "-o", "yaml"}, flags...))
	if err := root.Execute(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, errs.String())
	}
	return Parse(out.Bytes())
}

// Parse reads objects from YAML documents. A field that stands twice is an error.
func Parse(text []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for doc := range strings.SplitSeq("\n"+string(text), "\n---") {
		obj := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(doc), &obj.Object); err != nil {
			return nil, err
		}
		if len(obj.Object) > 0 {
			out = append(out, obj)
		}
	}
	return out, nil
}

// Kept returns the kinds and names of the objects that Helm keeps.
func Kept(objs []*unstructured.Unstructured) []string {
	var out []string
	for _, obj := range objs {
		if obj.GetAnnotations()["helm.sh/resource-policy"] == "keep" {
			out = append(out, obj.GetKind()+" "+obj.GetName())
		}
	}
	slices.Sort(out)
	return out
}

// Difference compares two sets of objects; empty if they are the same. The marks of Helm do not count, nor does the form of quantities and
// of the text of the values.
func Difference(a, b []*unstructured.Unstructured) (string, error) {
	x, err := index(a)
	if err != nil {
		return "", err
	}
	y, err := index(b)
	return cmp.Diff(x, y), err
}

func index(objs []*unstructured.Unstructured) (map[string]any, error) {
	out := map[string]any{}
	for _, obj := range objs {
		normal, err := normalize(obj)
		if err != nil {
			return nil, err
		}
		name := strings.Join([]string{obj.GetAPIVersion(), obj.GetKind(), obj.GetNamespace(), obj.GetName()}, " ")
		if out[name] != nil {
			return nil, fmt.Errorf("there are two of %s", name)
		}
		out[name] = normal.Object
	}
	return out, nil
}

// normalize returns an object in the form in which it is compared.
func normalize(obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	text, err := obj.MarshalJSON() // numbers of one type
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(out.Object, "metadata", "annotations", "helm.sh/resource-policy")
	if len(out.GetAnnotations()) == 0 {
		out.SetAnnotations(nil)
	}
	unstructured.RemoveNestedField(out.Object, "metadata", "labels", kudoinit.ManagedByLabel)
	switch {
	case obj.GetKind() == "Deployment":
		typed := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(out.Object, typed); err != nil {
			return nil, err
		}
		out.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		return out, err
	case obj.GetName() == kudoinit.ValuesConfigMap:
		text, _, _ := unstructured.NestedString(out.Object, "data", "values.yaml")
		values, err := kudoinit.ParseValues([]byte(text))
		if err != nil {
			return nil, err
		}
		normal, err := yaml.Marshal(values)
		if err != nil {
			return nil, err
		}
		return out, unstructured.SetNestedField(out.Object, string(normal), "data", "values.yaml")
	}
	return out, nil
}
