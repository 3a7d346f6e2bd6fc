package tenancy

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// attempt is an attack on the API server: who does what, and the words of the refusal.
type attempt struct {
	rule, reason, who string
	do                func(t *testing.T, c client.Client) error
	words             string
}

// scene is what an attack finds: a namespace with an Instance that has run, and another one with a version of its own.
type scene struct{ ns, other string }

func newScene(t *testing.T, mode string) scene {
	t.Helper()
	s := scene{suite.NewNamespace(t), suite.NewNamespace(t)}
	makeAccount(t, mode, s.ns)
	personas(t, s.ns)
	for _, ns := range []string{s.ns, s.other} {
		ov := gen.Version(ns, "quiet-1", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
		env.Must(t, suite.Create(ctx, ov))
	}
	env.Must(t, suite.Create(ctx, &corev1.Secret{ObjectMeta: gen.Meta(s.ns, "s1"), StringData: map[string]string{"value": "b", "other": "secret"}}))
	given := s.instance("given")
	given.Spec.ParametersFrom = []v1beta1.ParametersSource{{Kind: "Secret", Name: "s1", Keys: map[string]string{"VALUE": "value"}}}
	env.Must(t, suite.Create(ctx, given))
	_, err := suite.Await(ctx, s.ns, "given", env.DefaultTimeout, env.PlanEnded(v1beta1.DeployPlan, 1))
	env.Must(t, err)
	env.Must(t, suite.Create(ctx, s.instance("named")))
	tenants.allow(s.ns, "kudo", installer) // the install plan
	held := gen.Version(s.ns, "held-1", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("install", "cm"), gen.InstallPlan("install"))
	env.Must(t, suite.Create(ctx, held))
	env.Eventually(t, "the OperatorVersion installed", func() string {
		if now := env.Read(t, suite.Cluster, &v1beta1.OperatorVersion{}, s.ns, "held-1"); !now.Installed() {
			return fmt.Sprintf("%+v", now.Status)
		}
		return ""
	})
	_, err = suite.Await(ctx, s.ns, "named", env.DefaultTimeout, env.PlanEnded(v1beta1.DeployPlan, 1))
	env.Must(t, err)
	env.Must(t, suite.Create(ctx, s.instance("quiet")))
	_, err = suite.Await(ctx, s.ns, "quiet", env.DefaultTimeout, env.PlanEnded(v1beta1.DeployPlan, 1))
	env.Must(t, err)
	if mode == labeled { // the Instances above ran as accounts of the namespace
		privileged(t, s.ns)
	}
	return s
}

// instance returns an Instance of the namespace's own version, with the account that ann may use.
func (s scene) instance(name string) *v1beta1.Instance {
	i := &v1beta1.Instance{ObjectMeta: gen.Meta(s.ns, name)}
	i.Spec.OperatorVersion.Name, i.Spec.ServiceAccountName = "quiet-1", "kudo"
	return i
}

// status patches the status of an Instance as it was shown on kudo of before: a run that kudo has not started.
func (s scene) status(_ *testing.T, c client.Client) error {
	patch := fmt.Sprintf(`{"status":{"planStatus":{"deploy":{"name":"deploy","status":"IN_PROGRESS","uid":%q,"revision":0}}}}`, "forged")
	return c.Status().Patch(ctx, &v1beta1.Instance{ObjectMeta: gen.Meta(s.ns, "quiet")}, client.RawPatch(types.MergePatchType, []byte(patch)))
}

func (s scene) record() *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{ObjectMeta: gen.Meta(s.ns, "quiet-1")}
}

// attempts are the attacks that the API server itself refuses, with the words of the refusal.
func (s scene) attempts() []attempt {
	reads := func(obj client.Object) func(*testing.T, client.Client) error {
		return func(_ *testing.T, c client.Client) error {
			return c.Get(ctx, client.ObjectKeyFromObject(obj), obj.DeepCopyObject().(client.Object))
		}
	}
	makes := func(obj client.Object) func(*testing.T, client.Client) error {
		return func(_ *testing.T, c client.Client) error { return c.Create(ctx, obj.DeepCopyObject().(client.Object)) }
	}
	changes := func(obj client.Object, patch string) func(*testing.T, client.Client) error {
		return func(_ *testing.T, c client.Client) error {
			return c.Patch(ctx, obj.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(patch)))
		}
	}
	ours := "only kudo writes instances/status: %s lacks the verb \"own-status\" on instances.kudo.dev for the whole cluster"
	history := "ControllerRevision " + s.ns + "/%s is history of kudo: only kudo writes it, and nadia may delete it along with its owner or namespace only"
	account := "the plans of this Instance run as ServiceAccount " + s.ns + "/%s: ann needs the verb \"use\" on serviceaccounts \"%[1]s\" in namespace " + s.ns
	deployer, adopts, sources, foreign, elsewhere := s.instance("a"), s.instance("a"), s.instance("a"), s.instance("a"), s.instance("a")
	deployer.Spec.ServiceAccountName = "deployer"
	nameless := s.instance("a")
	nameless.Spec.ServiceAccountName = ""
	adopts.Annotations = map[string]string{v1beta1.AdoptAnnotation: "true"}
	sources.Spec.ParametersFrom = []v1beta1.ParametersSource{{Kind: "Secret", Name: "s1"}, {Kind: "Secret", Name: "s2"}}
	foreign.Spec.OperatorVersion.Namespace = s.other
	elsewhere.Namespace = "kudo-system"
	forged := s.record()
	forged.Name, forged.Labels, forged.Data.Raw = "forged-1", map[string]string{v1beta1.HistoryLabel: "x"}, []byte("{}")
	installs := gen.Version(s.ns, "installs-1", gen.ConfigMaps("cm", 1), gen.Serial("install", "cm"), gen.InstallPlan("install"))
	installation := &v1beta1.Installation{ObjectMeta: gen.Meta("", s.ns)}
	installation.Spec.Subject = v1beta1.InstallationSubject{Kind: "Instance", Namespace: s.ns, Name: "quiet", UID: "x"}
	unpinned := gen.Version(s.ns, "unpinned-1", gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	unpinned.Spec.CRDTarball = &v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: "http://example.org/crds.tgz"}}
	remote := gen.Version(s.ns, "remote-1", gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	remote.Spec.CRDTarball = &v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: "https://example.org/crds.tgz"}}
	carries, loose := s.instance("a"), s.instance("a")
	carries.Spec.CRDTarball = remote.Spec.CRDTarball
	loose.Spec.CRDTarball = &v1beta1.CRDTarball{ConfigMapSource: &v1beta1.ConfigMapSource{ConfigMaps: []v1beta1.ConfigMapPart{{Name: "c1"}}}}
	strong := &rbacv1.RoleBinding{ObjectMeta: gen.Meta(s.ns, "strong"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kudo-install-plans"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.ns, Name: "kudo"}}}
	taken := func(t *testing.T, c client.Client) error {
		// A dry run: in a namespace that is not privileged, it would pass.
		return c.Patch(ctx, &v1beta1.Instance{ObjectMeta: gen.Meta(s.ns, "named")}, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"serviceAccountName":null}}`)), client.DryRunAll)
	}
	return []attempt{
		{"T6", "the account of an Instance in a privileged namespace, taken off", ann, taken, "spec.serviceAccountName is taken off in privileged namespace " + s.ns + ", so that the plans would have the rights of kudo: ann needs the verb \"install\""},
		{"T12", "what holds an OperatorVersion until it is released", otto, changes(&v1beta1.OperatorVersion{ObjectMeta: gen.Meta(s.ns, "held-1")}, `{"metadata":{"finalizers":null}}`), "the finalizer kudo.dev/operatorversion comes off when kudo has released what the OperatorVersion has installed: otto needs the verb \"install\""},
		{"T12", "the status of a run that kudo has not started", nadia, s.status, fmt.Sprintf(ours, nadia)},
		{"T12", "by a right on instances/status", ann, s.status, fmt.Sprintf(ours, ann)},
		{"T12", "the status of an OperatorVersion", otto, func(_ *testing.T, c client.Client) error {
			return c.Status().Patch(ctx, &v1beta1.OperatorVersion{ObjectMeta: gen.Meta(s.ns, "quiet-1")}, client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":7}}`)))
		}, "only kudo writes operatorversions/status: otto lacks the verb \"own-status\""},
		{"T13", "a label of a record", nadia, changes(s.record(), `{"metadata":{"labels":{"kudo.dev/history-of":null}}}`), fmt.Sprintf(history, "quiet-1")},
		{"T13", "the data of a record", nadia, changes(s.record(), `{"revision":9}`), fmt.Sprintf(history, "quiet-1")},
		{"T13", "the end of a record", nadia, func(_ *testing.T, c client.Client) error { return c.Delete(ctx, s.record()) }, fmt.Sprintf(history, "quiet-1")},
		{"T13", "a record of her own", nadia, makes(forged), fmt.Sprintf(history, "forged-1")},
		{"T8", "an account that was not given to her", ann, makes(deployer), fmt.Sprintf(account, "deployer")},
		{"T8 by default", "the default account, which was not given to her", ann, makes(nameless), fmt.Sprintf(account, tenant)},
		{"T8", "the same later", ann, changes(s.instance("quiet"), `{"spec":{"serviceAccountName":"deployer"}}`), fmt.Sprintf(account, "deployer")},
		{"T9", "Secrets that she may not read", ann, makes(sources), "spec.parametersFrom names s1 and s2: ann must be allowed to get each Secret and ConfigMap it names in namespace " + s.ns},
		{"T9", "the same later", ann, changes(s.instance("quiet"), `{"spec":{"parametersFrom":[{"kind":"ConfigMap","name":"c1"}]}}`), "spec.parametersFrom names c1: ann must be allowed to get"},
		{"T9", "another key of a Secret that another user has named", ann, changes(s.instance("given"), `{"spec":{"parametersFrom":[{"kind":"Secret","name":"s1","keys":{"VALUE":"other"}}]}}`), "spec.parametersFrom names s1: ann must be allowed to get"},
		{"T9", "another version that gets the values", ann, changes(s.instance("given"), `{"spec":{"operatorVersion":{"name":"quiet-2"}}}`), "spec.parametersFrom names s1: ann must be allowed to get"},
		{"T14", "the same by the status of the namespace", nadia, func(_ *testing.T, c client.Client) error {
			return c.Status().Patch(ctx, &corev1.Namespace{ObjectMeta: gen.Meta("", s.ns)}, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"kudo.dev/privileged":"true"}}}`)))
		}, "the label kudo.dev/privileged lets plans in Namespace " + s.ns},
		{"T10", "a version of another namespace", ann, makes(foreign), "OperatorVersion " + s.other + "/quiet-1 is of another namespace: ann needs the verb \"use\" on operatorversions.kudo.dev there"},
		{"T10", "the same later", ann, changes(s.instance("quiet"), `{"spec":{"operatorVersion":{"namespace":"`+s.other+`"}}}`), "is of another namespace: ann needs"},
		{"T11", "objects of others", ann, makes(adopts), "the annotation kudo.dev/adopt lets plans take over objects that others made: ann needs the verb \"adopt\" on instances.kudo.dev in namespace " + s.ns},
		{"T11", "the same later", ann, changes(s.instance("quiet"), `{"metadata":{"annotations":{"kudo.dev/adopt":"true"}}}`), "the annotation kudo.dev/adopt"},
		{"T14", "a privileged namespace", nadia, changes(&corev1.Namespace{ObjectMeta: gen.Meta("", s.ns)}, `{"metadata":{"labels":{"kudo.dev/privileged":"true"}}}`),
			"the label kudo.dev/privileged lets plans in Namespace " + s.ns + " write with the rights of kudo: nadia needs the verb \"install\" on operatorversions.kudo.dev for the whole cluster"},
		{"T1", "an install plan", nadia, makes(installs), "it needs the verb \"install\" on operatorversions.kudo.dev for the whole cluster"},
		{"T34", "a tarball by http without a digest, also as an administrator", "", makes(unpinned), "spec.crdTarball.httpSource.sha256 is required: what http transfers can be changed on the way"},
		{"T34", "a tarball of a ConfigMap without a digest, also as an administrator", "", makes(loose), "spec.crdTarball.configMapSource.sha256 is required: whoever may write the ConfigMap could change the tarball"},
		{"T1", "a tarball", otto, makes(remote), "spec.installPlan or spec.crdTarball is set, so that this installs cluster resources with the rights of kudo: it needs the verb \"install\""},
		{"T1", "a tarball of an Instance", ann, makes(carries), "spec.crdTarball is set, so that this installs CustomResourceDefinitions with the rights of kudo: it needs the verb \"install\""},
		{"T1", "another install plan", otto, changes(&v1beta1.OperatorVersion{ObjectMeta: gen.Meta(s.ns, "held-1")}, `{"spec":{"installParameters":{"VALUE":"b"}}}`), "it needs the verb \"install\" on operatorversions.kudo.dev for the whole cluster"},
		{"T1", "a release by force", otto, changes(&v1beta1.OperatorVersion{ObjectMeta: gen.Meta(s.ns, "held-1")}, `{"metadata":{"annotations":{"kudo.dev/force-release":"true"}}}`),
			"the annotation kudo.dev/force-release destroys what others have in the cluster: setting it needs the verb \"install\""},
		{"reader", "an Instance", vera, makes(s.instance("a")), `User "vera" cannot create resource "instances" in API group "kudo.dev" in the namespace "` + s.ns + `"`},
		{"reader", "a plan by hand", vera, changes(s.instance("quiet"), `{"spec":{"planExecution":{"planName":"deploy"}}}`), `User "vera" cannot patch resource "instances" in API group "kudo.dev" in the namespace "` + s.ns + `"`},
		{"reader", "an OperatorVersion", vera, changes(&v1beta1.OperatorVersion{ObjectMeta: gen.Meta(s.ns, "quiet-1")}, `{"spec":{"appVersion":"2"}}`), `User "vera" cannot patch resource "operatorversions"`},
		{"reader", "a Secret that gives values", vera, reads(&corev1.Secret{ObjectMeta: gen.Meta(s.ns, "s1")}), `User "vera" cannot get resource "secrets" in API group "" in the namespace "` + s.ns + `"`},
		{"T1", "the role of kudo-installer for an account of hers", nadia, makes(strong), "is attempting to grant RBAC permissions not currently held"},
		{"T15", "a plan as an account of the control plane, also as an administrator", "", makes(elsewhere), "no Instance may be made in namespace kudo-system: its plans could run as an account of the control plane"},
		{"T12", "an Installation, by the account that install plans have", "system:serviceaccount:kudo-system:kudo-installer", makes(installation), "only kudo writes installations: system:serviceaccount:kudo-system:kudo-installer lacks the verb"},
	}
}

// state is what an attack must not change.
func (s scene) state(t *testing.T) string {
	t.Helper()
	var out []string
	for _, list := range []client.ObjectList{&v1beta1.InstanceList{}, &v1beta1.OperatorVersionList{}, &appsv1.ControllerRevisionList{}, &corev1.ConfigMapList{},
		&corev1.SecretList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}} {
		for _, ns := range []string{s.ns, s.other} {
			env.Must(t, suite.List(ctx, list, client.InNamespace(ns)))
			items, err := extract(list)
			env.Must(t, err)
			for _, item := range items {
				out = append(out, fmt.Sprintf("%T %s/%s %s", item, ns, item.GetName(), item.GetResourceVersion()))
			}
		}
	}
	for _, ns := range []string{s.ns, s.other} {
		out = append(out, fmt.Sprint(ns, env.Read(t, suite.Cluster, &corev1.Namespace{}, "", ns).Labels))
	}
	return strings.Join(out, "\n")
}

// TestBoundRole is T12: a RoleBinding to the manager's own role does not give the verb own-status, which is asked for
// the whole cluster.
func TestBoundRole(t *testing.T) {
	s := newScene(t, strict)
	bind(t, s.ns, nadia, "ClusterRole", "kudo-manager")
	env.Eventually(t, "nadia may patch the status", func() string {
		if err := s.status(t, as(t, nadia)); err == nil || !strings.Contains(err.Error(), "own-status") {
			return fmt.Sprint(err)
		}
		return ""
	})
}

// TestManagerRights is T2: the manager itself may not write what plans write.
func TestManagerRights(t *testing.T) {
	ns := suite.NewNamespace(t)
	manager := as(t, "system:serviceaccount:kudo-system:kudo-manager")
	for _, obj := range []client.Object{
		&corev1.Secret{ObjectMeta: gen.Meta(ns, "a")}, &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "a")},
		&rbacv1.ClusterRoleBinding{ObjectMeta: gen.Meta("", ns), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}},
		&v1beta1.Instance{ObjectMeta: gen.Meta(ns, "a")},
	} {
		if err := manager.Create(ctx, obj); !apierrors.IsForbidden(err) {
			t.Errorf("%T: %v", obj, err)
		}
	}
}

// TestInstallByName is T1: a ClusterRole may give the verb install for OperatorVersions that it names. It gives the verb for no other one, and a
// Role of the namespace gives it for none.
func TestInstallByName(t *testing.T) {
	ns := suite.NewNamespace(t)
	personas(t, ns)
	rule := rbacv1.PolicyRule{APIGroups: []string{"kudo.dev"}, Resources: []string{"operatorversions"}, Verbs: []string{"install"}, ResourceNames: []string{ns + "-1"}}
	env.Must(t, suite.Create(ctx, &rbacv1.Role{ObjectMeta: gen.Meta(ns, "installs"), Rules: []rbacv1.PolicyRule{rule}}))
	bind(t, ns, otto, "Role", "installs")
	create := func(name string) error {
		return as(t, otto).Create(ctx, gen.Version(ns, name, gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("install", "cm"), gen.InstallPlan("install")), client.DryRunAll)
	}
	const refusal = `it needs the verb "install" on operatorversions.kudo.dev for the whole cluster`
	env.Must(t, suite.AwaitRight(ctx, otto, authorizationv1.ResourceAttributes{Namespace: ns, Verb: "install", Group: "kudo.dev", Resource: "operatorversions", Name: ns + "-1"}))
	if err := create(ns + "-1"); err == nil || !strings.Contains(err.Error(), refusal) {
		t.Errorf("by a Role of the namespace: %v", err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: gen.Meta("", ns), Rules: []rbacv1.PolicyRule{rule}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: gen.Meta("", ns), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ns},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: otto}}}
	for _, obj := range []client.Object{role, binding} {
		env.Must(t, suite.Create(ctx, obj))
		t.Cleanup(func() { _ = suite.Delete(ctx, obj) })
	}
	env.Must(t, suite.AwaitRight(ctx, otto, authorizationv1.ResourceAttributes{Verb: "install", Group: "kudo.dev", Resource: "operatorversions", Name: ns + "-1"}))
	if err := create(ns + "-1"); err != nil {
		t.Errorf("the OperatorVersion that the ClusterRole names: %v", err)
	}
	if err := create(ns + "-2"); err == nil || !strings.Contains(err.Error(), refusal) {
		t.Errorf("another OperatorVersion: %v", err)
	}
	generated := gen.Version(ns, "", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("install", "cm"), gen.InstallPlan("install"))
	generated.GenerateName = ns + "-1"
	if err := as(t, otto).Create(ctx, generated, client.DryRunAll); err == nil || !strings.Contains(err.Error(), refusal) {
		t.Errorf("a generated name: %v", err)
	}
	for name, want := range map[string]string{ns + "-1": "", ns + "-2": refusal} {
		ov := gen.Version(ns, name, gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("install", "cm"))
		env.Must(t, suite.Create(ctx, ov))
		gen.InstallPlan("install")(ov)
		err := as(t, otto).Update(ctx, ov, client.DryRunAll)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("an install plan that is added to %s: %v", name, err)
		}
	}
}
