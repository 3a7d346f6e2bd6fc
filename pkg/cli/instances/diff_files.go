package instances

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/preview"
)

// computeFiles previews what applying the files would do.
func (o *diffOptions) computeFiles(ctx context.Context) ([]*preview.Preview, error) {
	c, _, namespace, err := o.env.Connect()
	if err != nil {
		return nil, err
	}
	instances, versions, err := readFiles(o.files, namespace)
	if err != nil {
		return nil, err
	}
	previewer, err := o.timeout.previewer(o.env, c, false)
	if err != nil {
		return nil, err
	}
	var out []*preview.Preview
	if len(instances) == 0 {
		for _, version := range sortVersions(versions) {
			p, err := previewer.Versions(ctx, "apply", []*v1beta1.OperatorVersion{version}, false)
			if err != nil {
				return nil, err
			}
			out = append(out, p)
		}
		return out, nil
	}
	for _, wanted := range instances {
		o.timeout.resume()
		e, err := editOfFile(ctx, c, wanted, versions)
		if err != nil {
			return nil, err
		}
		p, err := previewer.Edit(ctx, e)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// editOfFile returns the edit that applying an Instance of a file would be. Versions of the files come before those of the cluster.
func editOfFile(ctx context.Context, c client.Client, wanted *v1beta1.Instance,
	versions map[types.NamespacedName]*v1beta1.OperatorVersion) (e preview.Edit, err error) {
	e = preview.Edit{Verb: "apply", After: wanted, Versions: sortVersions(versions)}
	live := &v1beta1.Instance{}
	err = c.Get(ctx, client.ObjectKeyFromObject(wanted), live)
	if client.IgnoreNotFound(err) != nil {
		return e, err
	}
	if err == nil {
		e.Before, e.After = live, live.DeepCopy()
		e.After.Spec = specOfFile(live, wanted)
		for key, value := range wanted.Annotations {
			if e.After.Annotations == nil {
				e.After.Annotations = map[string]string{}
			}
			e.After.Annotations[key] = value
		}
		if e.Old, err = act.ReadVersion(ctx, c, live); err != nil {
			return e, err
		}
	}
	if e.Version = versions[wanted.OperatorVersionKey()]; e.Version == nil {
		e.Version, err = act.FindVersion(ctx, c, wanted)
		return e, err
	}
	return e, nil
}

// specOfFile is the spec that applying a file leaves: what kudo has written into the live one, and no file has, stays.
func specOfFile(live, wanted *v1beta1.Instance) v1beta1.InstanceSpec {
	spec := *wanted.Spec.DeepCopy()
	if spec.PlanExecution.PlanName == "" {
		spec.PlanExecution = live.Spec.PlanExecution
	}
	if live.Status.Baseline == nil {
		return spec
	}
	for name, value := range live.Status.Baseline.ImmutableDefaults {
		_, given := spec.Parameters[name]
		if now, set := live.Spec.Parameters[name]; set && !given && now == value {
			if spec.Parameters == nil {
				spec.Parameters = map[string]string{}
			}
			spec.Parameters[name] = value
		}
	}
	return spec
}

// sortVersions returns OperatorVersions in the order of their names.
func sortVersions(versions map[types.NamespacedName]*v1beta1.OperatorVersion) []*v1beta1.OperatorVersion {
	var out []*v1beta1.OperatorVersion
	for _, key := range slices.SortedFunc(maps.Keys(versions), compareKeys) {
		out = append(out, versions[key])
	}
	return out
}

func compareKeys(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }

// maxFile is how large a file of Instances, or of a preview, may be, in bytes.
const maxFile = 16 << 20

// readFiles reads the Instances and OperatorVersions of files. Those without a namespace are in the one that is given.
func readFiles(files []string, namespace string) ([]*v1beta1.Instance, map[types.NamespacedName]*v1beta1.OperatorVersion, error) {
	var instances []*v1beta1.Instance
	versions := map[types.NamespacedName]*v1beta1.OperatorVersion{}
	for _, file := range files {
		text, err := readFile(file)
		if err != nil {
			return nil, nil, err
		}
		found, err := decodeObjects(text)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, obj := range found {
			if obj.GetNamespace() == "" {
				obj.SetNamespace(namespace)
			}
			switch o := obj.(type) { // objects of other kinds start no plans
			case *v1beta1.Instance:
				instances = append(instances, o)
			case *v1beta1.OperatorVersion:
				versions[client.ObjectKeyFromObject(o)] = o
			}
		}
	}
	if len(instances)+len(versions) == 0 {
		return nil, nil, command.UsageError("--filename: there is no Instance and no OperatorVersion in the files")
	}
	return instances, versions, nil
}

// decodeObjects reads the Instances and OperatorVersions of a text of YAML documents. A field that these kinds do not have is an error.
func decodeObjects(text []byte) ([]client.Object, error) {
	var out []client.Object
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(document, &kind); err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		var obj client.Object
		switch kind.GroupVersionKind() {
		case v1beta1.GroupVersion.WithKind("Instance"):
			obj = &v1beta1.Instance{}
		case v1beta1.GroupVersion.WithKind("OperatorVersion"):
			obj = &v1beta1.OperatorVersion{}
		default:
			continue
		}
		if err := yaml.UnmarshalStrict(document, obj); err != nil {
			return nil, fmt.Errorf("document %d: %s: %w", n, kind.Kind, err)
		}
		if obj.GetName() == "" {
			return nil, fmt.Errorf("document %d: %s: metadata.name is missing: add it", n, kind.Kind)
		}
		out = append(out, obj)
	}
}
