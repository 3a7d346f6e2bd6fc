package lint

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/operators/render"
)

// instancePlans are started by what happens to an Instance, so that none of them can be the install plan.
var instancePlans = []string{v1beta1.DeployPlan, v1beta1.UpdatePlan, v1beta1.UpgradePlan, v1beta1.CleanupPlan}

// installPlan finds that the install plan does not exist, or is one that Instances run.
func installPlan(s *Subject) (found Findings) {
	name := s.Operator.InstallPlan
	fail := func(fields []string, format string, args ...any) {
		found.Errors = append(found.Errors, s.operatorFinding(fields, format, args...))
	}
	policy := s.Operator.InstallPolicy
	if policy != nil && !slices.Contains([]v1beta1.SharedUpdates{"", v1beta1.NoSharedUpdates, v1beta1.SameOperatorUpdates},
		policy.SharedUpdates) {
		fail([]string{"installPolicy.sharedUpdates", "installPolicy"}, "installPolicy.sharedUpdates is %q: use %s or %s",
			policy.SharedUpdates, v1beta1.NoSharedUpdates, v1beta1.SameOperatorUpdates)
	}
	if name == "" {
		if policy != nil {
			found.Warnings = append(found.Warnings, s.operatorFinding([]string{"installPolicy"}, "installPolicy has no effect without installPlan"))
		}
		return found
	}
	if _, defined := s.Operator.Plans[name]; !defined {
		fail([]string{"installPlan"}, "plan %q named by installPlan is not defined%s", name, closestName(name, s.PlanNames()))
	}
	if slices.Contains(instancePlans, name) {
		fail([]string{"installPlan"}, "installPlan cannot be %q, which Instances run: give it a plan of its own", name)
	}
	for i, p := range s.Params.Parameters {
		if p.Trigger == name {
			found.Errors = append(found.Errors, s.parameterFinding(i, "trigger",
				"parameter %q triggers the install plan, which no Instance runs: values for it are given with --install-parameter", p.Name))
		}
	}
	return found
}

// crdTarball finds that a tarball of CRDs has not exactly one source.
func crdTarball(s *Subject) (found Findings) {
	tarball := s.Operator.CRDTarball
	if tarball == nil {
		return found
	}
	var sources []string
	for _, source := range []struct {
		name string
		set  bool
	}{{"httpSource", tarball.HTTPSource != nil}, {"ociSource", tarball.OCISource != nil},
		{"configMapSource", tarball.ConfigMapSource != nil}} {
		if source.set {
			sources = append(sources, source.name)
		}
	}
	if len(sources) != 1 {
		found.Errors = append(found.Errors, s.operatorFinding([]string{"crdTarball"},
			"crdTarball has %d sources %v: exactly one of httpSource, ociSource and configMapSource must be set", len(sources), sources))
	}
	return found
}

// onlyInstalls reports whether the install plan uses a template, and nothing else does.
func (s *Subject) onlyInstalls(template string) bool {
	if s.Operator.InstallPlan == "" || template == s.Operator.NamespaceManifest {
		return false
	}
	uses := 0
	for _, use := range s.allUses() {
		if use.Template != template {
			continue
		}
		if use.Plan != s.Operator.InstallPlan {
			return false
		}
		uses++
	}
	return uses > 0
}

// installUses are the uses of templates by the install plan.
func (s *Subject) installUses() []operators.Use {
	return slices.DeleteFunc(s.Uses(), func(use operators.Use) bool {
		return s.Operator.InstallPlan == "" || use.Plan != s.Operator.InstallPlan
	})
}

// installPipes finds pipes of other plans in templates of the install plan. Those are of an Instance, and there is none.
func installPipes(s *Subject) Findings {
	uses := s.installUses()
	if len(uses) == 0 {
		return Findings{}
	}
	own := &operators.Package{Templates: s.Templates}
	own.Operator.Tasks = s.Operator.Tasks
	own.Operator.Plans = map[string]v1beta1.Plan{s.Operator.InstallPlan: s.Operator.Plans[s.Operator.InstallPlan]}
	a := newAnalysis(s.Package)
	a.elsewhere, a.keys = a.keys, map[string]bool{}
	for key := range own.Pipes("") {
		a.keys[key] = true
	}
	for _, use := range uses {
		a.enter(use.Template, use.Template, value{kind: variables})
	}
	return Findings{Errors: a.notInstalled}
}

// secondVersion is a second OperatorVersion, which shares what the install plan of the first makes.
func (s *Subject) secondVersion(use operators.Use) (render.Variables, bool) {
	values, err := params.Resolve(s.Definitions(), s.samples())
	if err != nil {
		return render.Variables{}, false
	}
	f, version := s.Operator, s.Operator.OperatorVersion
	if policy := f.InstallPolicy; policy == nil || policy.SharedUpdates != v1beta1.SameOperatorUpdates {
		version += "-another"
	}
	v := render.Variables{
		OperatorName: f.Name, OperatorVersion: version, AppVersion: f.AppVersion, Name: operators.VersionName(f.Name, f.AppVersion,
			f.OperatorVersion+"-another"),
		Namespace: "another", Params: values, PlanName: use.Plan, PhaseName: use.Phase, StepName: use.Step,
	}
	v.Pipes = s.Pipes(v.Name)
	return v, true
}

// checkShareable warns of objects of the install plan that two OperatorVersions cannot share, since they are made of what only
// one of them has.
func checkShareable(s *Subject) (found Findings) {
	reported := map[string]bool{}
	for _, r := range s.rendered() {
		applies := r.use.Role == operators.Applied || r.use.Role == operators.Toggled
		if !s.installs(r.use) || !applies || r.err != nil {
			continue
		}
		v, ok := s.secondVersion(r.use)
		if !ok {
			return found
		}
		other := s.renderUse(r.use, v)
		if other.err != nil || len(other.result.Objects) != len(r.result.Objects) {
			continue
		}
		for i, o := range r.result.Objects {
			message := unshareableReason(o, other.result.Objects[i])
			if key := r.use.Template + message; message != "" && !reported[key] {
				reported[key] = true
				found.Warnings = append(found.Warnings, templateFinding(r.use.Template, 0, "%s", message))
			}
		}
	}
	return found
}

func (s *Subject) installs(use operators.Use) bool {
	return s.Operator.InstallPlan != "" && use.Plan == s.Operator.InstallPlan
}

// unshareableReason says why an object, as two OperatorVersions have it, cannot be shared; empty if it can. Objects without a
// namespace may be in that of the OperatorVersion, and are not meant to be shared then, unless their kind is
// cluster-scoped.
func unshareableReason(one, other *unstructured.Unstructured) string {
	if one.GetKind() != other.GetKind() {
		return ""
	}
	if one.GetName() != other.GetName() {
		return fmt.Sprintf("the name of %s %s is made of .Name, .Namespace or a version: OperatorVersions that need it cannot share it",
			one.GetKind(), one.GetName())
	}
	shared := one.GetNamespace() != "" && one.GetNamespace() == other.GetNamespace() || one.GetNamespace() == "" &&
		clusterScoped[one.GroupVersionKind().GroupKind().String()]
	if shared && !reflect.DeepEqual(withoutMetadata(one), withoutMetadata(other)) {
		return fmt.Sprintf("%s %s is made of .Name, .Namespace or a version: another OperatorVersion that renders it differently fails with a "+
			"mismatch", one.GetKind(), one.GetName())
	}
	return ""
}

// withoutMetadata is what is compared when an object is shared: all but metadata.
func withoutMetadata(o *unstructured.Unstructured) map[string]any {
	out := maps.Clone(o.Object)
	delete(out, "metadata")
	return out
}

// clusterScoped are the kinds of Kubernetes itself that have no namespace, and that packages may have.
var clusterScoped = map[string]bool{
	"Namespace": true, "PersistentVolume": true,
	"ClusterRole.rbac.authorization.k8s.io": true, "ClusterRoleBinding.rbac.authorization.k8s.io": true,
	"CustomResourceDefinition.apiextensions.k8s.io":                 true,
	"APIService.apiregistration.k8s.io":                             true,
	"MutatingWebhookConfiguration.admissionregistration.k8s.io":     true,
	"ValidatingWebhookConfiguration.admissionregistration.k8s.io":   true,
	"ValidatingAdmissionPolicy.admissionregistration.k8s.io":        true,
	"ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io": true,
	"MutatingAdmissionPolicy.admissionregistration.k8s.io":          true,
	"MutatingAdmissionPolicyBinding.admissionregistration.k8s.io":   true,
	"PriorityClass.scheduling.k8s.io":                               true,
	"StorageClass.storage.k8s.io":                                   true,
	"CSIDriver.storage.k8s.io":                                      true,
	"VolumeAttributesClass.storage.k8s.io":                          true,
	"RuntimeClass.node.k8s.io":                                      true,
	"IngressClass.networking.k8s.io":                                true,
	"DeviceClass.resource.k8s.io":                                   true,
	"FlowSchema.flowcontrol.apiserver.k8s.io":                       true,
	"PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io":       true,
}
