package crdcompat

import (
	"context"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Lister reads the custom resources of all namespaces, a page at a time.
type Lister interface {
	// List returns at most limit objects of a kind, from where the token of the page before points; the list holds the
	// token of the next one. The caller may change the objects.
	List(ctx context.Context, kind schema.GroupVersionKind, limit int64, token string) (*unstructured.UnstructuredList, error)
}

const (
	pageSize      = 500 // objects of a request, as kubectl asks for
	namedObjects  = 20  // objects that Findings names
	namedProblems = 5   // problems of an object that Findings lists
	restarts      = 3   // how often a list is begun again whose token has expired
)

// Object is one that would break.
type Object struct {
	// Version of the new definition that the object breaks in.
	Version   string `json:"version"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Problems name the fields, keys of maps among them, without their values, which may be secret.
	Problems []string `json:"problems"`
	// More is how many problems are not listed.
	More int `json:"more,omitempty"`
}

// Findings are what Validate has found. Objects are counted once for each version that they were checked in.
type Findings struct {
	Checked int `json:"checked"`
	Invalid int `json:"invalid"`
	// Objects are the first of the broken ones.
	Objects []Object `json:"objects,omitempty"`
	// Unchecked are versions in which objects cannot be had before the new definition is in force.
	Unchecked []string `json:"unchecked,omitempty"`
}

// Safe reports whether each object was checked in each version, and none would break.
func (f Findings) Safe() bool { return f.Invalid == 0 && len(f.Unchecked) == 0 }

// count says how many objects would break, and names none.
func (f Findings) count() string {
	text := f.summary()
	if f.Invalid > 0 {
		text += "; kubectl kudo package crd-diff --live names those that you may list"
	}
	return text + "\n" + f.unchecked()
}

// String lists the objects that would break, one a line, after a summary.
func (f Findings) String() string {
	var out strings.Builder
	out.WriteString(f.summary() + "\n")
	for _, o := range f.Objects {
		name := o.Name
		if o.Namespace != "" {
			name = o.Namespace + "/" + o.Name
		}
		fmt.Fprintf(&out, "  %s (%s): %s", name, o.Version, strings.Join(o.Problems, "; "))
		if o.More > 0 {
			fmt.Fprintf(&out, "; and %d more", o.More)
		}
		out.WriteString("\n")
	}
	if more := f.Invalid - len(f.Objects); more > 0 {
		fmt.Fprintf(&out, "  and %d more\n", more)
	}
	return out.String() + f.unchecked()
}

func (f Findings) summary() string {
	return fmt.Sprintf("%d of %d objects would break", f.Invalid, f.Checked)
}

// unchecked lists the versions that could not be checked, one a line.
func (f Findings) unchecked() string {
	var out strings.Builder
	for _, version := range f.Unchecked {
		fmt.Fprintf(&out, "  version %s could not be checked: its objects cannot be read before the new definition is in force\n", version)
	}
	return out.String()
}

// Validate checks the objects that exist against each version of a new definition, in process and as the API server does
// on a write: unknown fields are pruned, defaults set, then schema, embedded metadata, list types and CEL rules are checked,
// with the object itself as its old state. A pruned field or null is a problem. Objects are read as live, the definition
// in force, serves them. Errors are those of the lister, and schemas that the API server would refuse.
func Validate(ctx context.Context, live, new *apiextensionsv1.CustomResourceDefinition, lister Lister) (Findings, error) {
	found := Findings{}
	for i := range new.Spec.Versions {
		version := &new.Spec.Versions[i]
		if !version.Served && !version.Storage {
			continue
		}
		from := source(live, new, version.Name)
		if from == "" {
			found.Unchecked = append(found.Unchecked, version.Name)
			continue
		}
		check, err := newChecker(new, version, false)
		if err != nil {
			return Findings{}, err
		}
		kind := schema.GroupVersionKind{Group: live.Spec.Group, Version: from, Kind: live.Spec.Names.Kind}
		if err := found.read(ctx, kind, check, lister); err != nil {
			return Findings{}, fmt.Errorf("reading %s objects of version %s to check them against %s: %w", kind.GroupKind(), from, new.Name, err)
		}
	}
	return found, nil
}

// source is the version to read objects in that are checked as a version of new; empty if there is none. Without a
// webhook, conversion changes nothing but apiVersion.
func source(live, new *apiextensionsv1.CustomResourceDefinition, version string) string {
	if served := find(live, version); served != nil && served.Served {
		return version
	}
	if c := new.Spec.Conversion; c != nil && c.Strategy == apiextensionsv1.WebhookConverter {
		return ""
	}
	first := ""
	for _, v := range live.Spec.Versions {
		switch {
		case v.Served && v.Storage:
			return v.Name
		case v.Served && first == "":
			first = v.Name
		}
	}
	return first
}

// read checks all objects of a kind. Counts of a list that must begin again are dropped.
func (f *Findings) read(ctx context.Context, kind schema.GroupVersionKind, check *checker, lister Lister) error {
	for attempt := 0; ; attempt++ {
		part := Findings{Checked: f.Checked, Invalid: f.Invalid, Objects: f.Objects[:len(f.Objects):len(f.Objects)], Unchecked: f.Unchecked}
		err := part.pages(ctx, kind, check, lister)
		if err == nil {
			*f = part
			return nil
		}
		if attempt == restarts || !apierrors.IsResourceExpired(err) {
			return err
		}
	}
}

func (f *Findings) pages(ctx context.Context, kind schema.GroupVersionKind, check *checker, lister Lister) error {
	for token := ""; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		list, err := lister.List(ctx, kind, pageSize, token)
		if err != nil {
			return err
		}
		for i := range list.Items {
			f.add(check.version, &list.Items[i], check.problems(ctx, &list.Items[i]))
		}
		if token = list.GetContinue(); token == "" {
			return nil
		}
	}
}

func (f *Findings) add(version string, object *unstructured.Unstructured, problems []string) {
	f.Checked++
	if len(problems) == 0 {
		return
	}
	f.Invalid++
	if len(f.Objects) < namedObjects {
		n := min(len(problems), namedProblems)
		f.Objects = append(f.Objects, Object{Version: version, Namespace: object.GetNamespace(), Name: object.GetName(), Problems: problems[:n],
			More: len(problems) - n})
	}
}
