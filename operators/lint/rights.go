package lint

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
)

// Right is what the install plan of a package does to objects of a kind. Kudo does it with its own rights, so that an
// administrator wants to know before it does.
type Right struct {
	// APIVersion and Kind of the objects.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Names of the objects, with the namespace that they name. Empty for objects whose names kudo makes.
	Names []string `json:"names,omitempty"`
	// Verbs, sorted. `escalate` and `bind` stand for roles that may allow more than who installs them may do.
	Verbs []string `json:"verbs"`
}

// Verbs that kudo needs of objects that it applies and releases, and of those that it only deletes.
var (
	applying = []string{"create", "delete", "get", "list", "patch", "watch"}
	deleting = []string{"delete", "get"}
)

// Rights lists the rights that the install plan needs, by what its templates render to with the defaults of the
// parameters, sorted by kind. A kind that only other values bring is not in it.
func Rights(pkg *operators.Package) []Right {
	s := NewSubject(pkg)
	rights := map[schema.GroupVersionKind]*Right{}
	for _, r := range s.rendered() {
		if !s.installs(r.use) {
			continue
		}
		for _, o := range r.result.Objects {
			verbs := applying
			if r.use.Role == operators.Deleted {
				verbs = deleting
			}
			need(rights, o.GroupVersionKind(), verbs...)
			if r.use.Role == operators.PipePod {
				continue // kudo makes its name
			}
			name := o.GetName()
			if o.GetNamespace() != "" {
				name = o.GetNamespace() + "/" + name
			}
			right := rights[o.GroupVersionKind()]
			right.Names = append(right.Names, name)
		}
	}
	s.taskRights(rights)
	var out []Right
	for _, right := range rights {
		slices.Sort(right.Names)
		right.Names = slices.Compact(right.Names)
		out = append(out, *right)
	}
	slices.SortFunc(out, func(a, b Right) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.APIVersion, b.APIVersion))
	})
	return out
}

// taskRights adds what tasks of the install plan need besides their templates.
func (s *Subject) taskRights(rights map[schema.GroupVersionKind]*Right) {
	named := map[string]bool{}
	s.eachStep(func(plan, _ string, step v1beta1.Step) {
		if s.Operator.InstallPlan != "" && plan == s.Operator.InstallPlan {
			for _, task := range step.Tasks {
				named[task] = true
			}
		}
	})
	for _, task := range s.Operator.Tasks {
		switch {
		case !named[task.Name]:
		case task.Kind == v1beta1.PipeTask:
			need(rights, schema.GroupVersionKind{Version: "v1", Kind: "Pod/exec"}, "create")
			for _, pipe := range task.Spec.Pipe {
				need(rights, schema.GroupVersionKind{Version: "v1", Kind: pipe.Kind}, applying...)
			}
		case task.Kind == v1beta1.KudoOperatorTask && !task.Spec.Shared:
			need(rights, v1beta1.GroupVersion.WithKind("Instance"), applying...)
		}
	}
}

// need adds verbs to what is needed of a kind.
func need(rights map[schema.GroupVersionKind]*Right, gvk schema.GroupVersionKind, verbs ...string) {
	right := rights[gvk]
	if right == nil {
		right = &Right{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind}
		rights[gvk] = right
	}
	right.Verbs = append(right.Verbs, verbs...)
	if gvk.Group == "rbac.authorization.k8s.io" && slices.Contains(verbs, "patch") {
		switch gvk.Kind {
		case "Role", "ClusterRole":
			right.Verbs = append(right.Verbs, "escalate")
		case "RoleBinding", "ClusterRoleBinding":
			right.Verbs = append(right.Verbs, "bind") // of the role that it names
		}
	}
	slices.Sort(right.Verbs)
	right.Verbs = slices.Compact(right.Verbs)
}
