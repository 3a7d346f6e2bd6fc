package preview

import (
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/preview"
)

// parent is a package that makes an Instance of another one.
func parent() base {
	return base{name: "parent", files: files{
		"operator.yaml": `apiVersion: kudo.dev/v1beta1
name: parent
operatorVersion: 1.0.0
tasks:
- {name: child, kind: KudoOperator, spec: {package: ./child, instanceName: part, parameterFile: part.yaml}}
- {name: config, kind: Apply, spec: {resources: [config.yaml]}}
plans:
  deploy:
    strategy: serial
    phases:
    - name: main
      strategy: serial
      steps: [{name: part, tasks: [child]}, {name: config, tasks: [config]}]
`,
		"params.yaml":           "apiVersion: kudo.dev/v1beta1\nparameters:\n- {name: COLOR, default: red}\n",
		"templates/part.yaml":   "COLOR: '{{ .Params.COLOR }}'\n",
		"templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}'}\ndata: {color: '{{ .Params.COLOR }}'}\n",
		"child/operator.yaml": `apiVersion: kudo.dev/v1beta1
name: child
operatorVersion: 1.0.0
tasks: [{name: app, kind: Apply, spec: {resources: [app.yaml]}}]
plans: {deploy: {strategy: serial, phases: [{name: main, strategy: serial, steps: [{name: app, tasks: [app]}]}]}}
`,
		"child/params.yaml":        "apiVersion: kudo.dev/v1beta1\nparameters: [{name: COLOR, default: none}]\n",
		"child/templates/app.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}-app'}\ndata: {color: '{{ .Params.COLOR }}'}\n",
	}}
}

// TestChildren shows P17 of children: what previews of an installation, an update and an uninstallation say of Instances that the plans make
// is what happens to these, and to their objects.
func TestChildren(t *testing.T) {
	t.Parallel()
	ns, b := suite.NewNamespace(t), parent()
	for _, step := range []struct {
		command []string
		effect  preview.Effect
		color   string
	}{
		{[]string{"install", b.write(t, b.files, ns), "--instance", "i", "-n", ns}, preview.Create, "red"},
		{[]string{"update", "i", "-n", ns, "-p", "COLOR=blue"}, preview.Modify, "blue"},
		{[]string{"uninstall", "i", "-n", ns}, preview.Delete, ""},
	} {
		o := act(t, ns, step.command)
		o.compareObjects(t)
		for _, id := range []string{"ConfigMap " + ns + "/i", "ConfigMap " + ns + "/part-app", "Instance " + ns + "/part"} {
			if !slices.ContainsFunc(append(o.objects(), o.preview.Objects...), func(said preview.Object) bool {
				return said.ID() == id && said.Effect == step.effect
			}) {
				t.Errorf("%s of %s was not said\n%s", step.effect, id, o.texts)
			}
		}
		part := &v1beta1.Instance{}
		err := suite.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "part"}, part)
		if color := part.Spec.Parameters["COLOR"]; color != step.color || apierrors.IsNotFound(err) != (step.effect == preview.Delete) {
			t.Errorf("the child has color %q: %v", color, err)
		}
	}
}
