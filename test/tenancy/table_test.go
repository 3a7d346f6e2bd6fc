package tenancy

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// The modes in which each attack is tried.
const (
	strict     = "strict"
	everywhere = "run as everywhere, another default account, and every other flag"
	labeled    = "a privileged namespace"
	whole      = "a privileged cluster"
)

// tenant is the account of Instances that name none, in the mode everywhere.
const tenant = "tenant"

// stage is where an attack is tried: a namespace of a mode, in a moment.
type stage struct {
	mode   string
	moment *moment
	attack attackCase
	// ns is the namespace of the attack; victim one that it must not reach.
	ns, victim string
	// role is what the account worker of the namespace may do.
	role *rbacv1.Role
	// saved is what a case keeps between its parts.
	saved any
}

// attackCase is a case of the table: what is made before the moment, what is done in it, and what must hold after it.
type attackCase struct {
	finding, name, reason string
	// begin makes what the attack needs, while a manager runs; ready waits for it.
	begin, ready func(t *testing.T, s *stage)
	// strike is the attack. In all moments but the steady one, no manager works meanwhile.
	strike func(t *testing.T, s *stage)
	holds  func(t *testing.T, s *stage)
}

// flags of kudo init make a mode of all namespaces.
var flags = map[string][]string{
	strict: {"--strict", "--run-as-everywhere=false", "--default-account=kudo"},
	everywhere: {"--strict", "--run-as-everywhere", "--default-account=" + tenant, "--oci-token-realms=realm.example",
		"--default-crd-url-template=https://crds.invalid/{{ .OperatorName }}.tgz"},
	whole: {"--privileged", "--run-as-everywhere=false", "--default-account=kudo"},
}

// managerFlags are those of the manager that make it less strict; --init-arg gives it --crd-allowed-hosts.
var managerFlags = map[string][]string{
	everywhere: {"--metrics-bind-address=127.0.0.1:0", "--metrics-secure=false", "--allow-unpinned-pipe-image", "--pipe-image=example.org/pipe:latest"},
}

// senseless are the combinations that are not tried, by the finding and the mode, with the reason.
var senseless = map[string]string{
	"T14 " + labeled:                       "the namespace has the label already",
	"T6 " + strict:                         "the namespace gives no rights of kudo that a removed name would lead to",
	"T6 " + everywhere:                     "the same",
	"T8 by default " + strict:              "the default account is the one that ann may use",
	"T8 by default " + labeled:             "an Instance that names no account has the rights of kudo",
	"T8 by default " + whole:               "the same",
	"replayed " + strict:                   "no run of the namespace had the rights of kudo",
	"replayed " + everywhere:               "the same",
	"the binding is deleted " + everywhere: "no binding of the namespace lets the manager in",
	"a lockdown undone " + labeled:         "the Deployment is the cluster's, and not the namespace's",
}

// tried reports whether a combination makes sense.
func tried(finding, mode string) bool { return senseless[finding+" "+mode] == "" }

// managers are managers of the suite's own, in the place of kudo-local's.
type managers struct {
	running []*exec.Cmd
	// flags are those of all of them.
	flags []string
}

// start starts a manager.
func (m *managers) start(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	process := suite.Manager(slices.Concat([]string{"--webhook-port=0"}, m.flags, args)...)
	env.Must(t, process.Start())
	m.running = append(m.running, process)
	return process
}

// kill kills all.
func (m *managers) kill() {
	for _, process := range m.running {
		_ = process.Process.Kill()
		_ = process.Wait()
	}
	m.running = nil
}

// TestTable is the attack suite: each attack in each mode and each moment. It holds if the words are those, nothing of the
// victim's namespace has changed by a byte, and, at the end of the suite, the audit log shows nothing outside of the
// manager's role.
func TestTable(t *testing.T) {
	if !suite.IsDisposable() {
		t.Skip("needs a manager that may be killed, and KUDO_TEST_KUBECONFIG names a cluster")
	}
	local(t, "kill", "manager")
	m := &managers{}
	t.Cleanup(func() {
		m.kill()
		kudo(t, initOf(strict)...)
		local(t, "up")
	})
	victim := newVictim(t)
	// Where another account becomes the default one, Instances of the modes before that name none wait for it. The privileged cluster
	// comes before: an Instance that waits while the key is lost runs anew, and there it would do so with the rights of kudo.
	for _, modes := range [][]string{{strict, labeled}, {whole}, {everywhere}} {
		kudo(t, initOf(modes[0])...)
		m.flags = managerFlags[modes[0]]
		m.start(t, "--leader-elect=false")
		scenes := map[string]scene{}
		for _, mode := range modes {
			scenes[mode] = newScene(t, mode)
		}
		m.kill()
		for _, moment := range moments() {
			t.Run(modes[0]+"/"+moment.name, func(t *testing.T) { moment.try(t, m, modes, scenes, victim) })
			m.kill()
		}
	}
}

// initOf is the command that sets the cluster up for a mode.
func initOf(mode string) []string {
	return append([]string{"init", "--upgrade", "--external-manager"}, flags[mode]...)
}

// labelsOf are the labels of the namespaces of a mode.
func labelsOf(mode string) []string {
	if mode == labeled {
		return []string{v1beta1.PrivilegedLabel}
	}
	return nil
}

// makeAccount makes the default account of a mode in a namespace, which has the one of the other modes already.
func makeAccount(t *testing.T, mode, ns string) {
	t.Helper()
	if mode == everywhere {
		env.Must(t, suite.Delete(ctx, &rbacv1.RoleBinding{ObjectMeta: gen.Meta(ns, "kudo-run-as")}))
		env.Must(t, suite.Create(ctx, &corev1.ServiceAccount{ObjectMeta: gen.Meta(ns, tenant)}))
		binding := env.Read(t, suite.Cluster, &rbacv1.RoleBinding{}, ns, "kudo")
		env.Must(t, suite.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: gen.Meta(ns, tenant), RoleRef: binding.RoleRef,
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: tenant}}}))
	}
}

func local(t *testing.T, args ...string) {
	t.Helper()
	if out, err := suite.Local(args...); err != nil {
		t.Fatalf("kudo-local %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func kudo(t *testing.T, args ...string) {
	t.Helper()
	suite.MustKudo(t, 0, args...)
}

// try tries all attacks in a moment.
func (m *moment) try(t *testing.T, all *managers, modes []string, scenes map[string]scene, victim string) {
	began := time.Now()
	done := func(what string) { t.Logf("%s after %s", what, time.Since(began).Round(10*time.Millisecond)) }
	before := bytesOf(t, victim)
	m.first = all.start(t, m.flags...)
	if m.led {
		suite.AwaitLeader(t, "")
	}
	stages := m.prepare(t, modes, victim)
	done("all runs")
	m.begin(t, all)
	for _, s := range stages {
		s.attack.strike(t, s)
	}
	for _, s := range stages {
		if m.change != nil {
			m.change(t, s)
		}
	}
	if m.once != nil {
		m.once(t)
	}
	done("attacked")
	for _, mode := range modes {
		scenes[mode].refused(t, mode)
	}
	done("the API server refused")
	m.end(t, all)
	t.Run("holds", func(t *testing.T) {
		for _, s := range stages {
			t.Run(s.mode+"/"+s.attack.finding+" "+s.attack.name, func(t *testing.T) {
				t.Parallel()
				s.attack.holds(t, s)
				if t.Failed() {
					t.Log("reason: " + s.attack.reason)
				}
			})
		}
	})
	done("all held")
	if m.after != nil {
		m.after(t, all)
	}
	if now := bytesOf(t, victim); now != before {
		t.Errorf("the namespace of the victim has changed:\n%s\nbefore:\n%s", now, before)
	}
}

// prepare makes a namespace for each case in each mode, with what the attack needs, and waits until all runs are there.
func (m *moment) prepare(t *testing.T, modes []string, victim string) []*stage {
	t.Helper()
	var stages []*stage
	for _, mode := range modes {
		for _, c := range cases() {
			if !tried(c.name, mode) {
				continue
			}
			ns, err := suite.Namespace(ctx, labelsOf(mode)...) // goes with the control plane: the end of hundreds would take most of the time
			env.Must(t, err)
			s := &stage{mode: mode, moment: m, attack: c, ns: ns, victim: victim}
			makeAccount(t, mode, ns)
			c.begin(t, s)
			stages = append(stages, s)
		}
	}
	for _, s := range stages {
		if s.attack.ready != nil {
			s.attack.ready(t, s)
		}
	}
	return stages
}

// refused tries what the API server itself must refuse, word by word. Each attempt leaves nothing behind.
func (s scene) refused(t *testing.T, mode string) {
	before := s.state(t)
	for _, a := range s.attempts() {
		if !tried(a.rule, mode) {
			continue
		}
		t.Run("refused/"+mode+"/"+a.rule+" "+a.reason, func(t *testing.T) {
			c := client.Client(suite.Cluster)
			if a.who != "" {
				c = as(t, a.who)
			}
			switch err := a.do(t, c); {
			case err == nil:
				t.Fatal("it was allowed")
			case !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), a.words):
				t.Errorf("it was answered %q, and should be refused with %q", err, a.words)
			}
			if after := s.state(t); after != before {
				t.Errorf("it left something behind:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
}

// newVictim makes a namespace with objects of each kind that an attack may be after.
func newVictim(t *testing.T) string {
	t.Helper()
	ns := suite.NewNamespace(t)
	personas(t, ns)
	env.Must(t, suite.Create(ctx, &corev1.Secret{ObjectMeta: gen.Meta(ns, "x"), StringData: map[string]string{"password": "victim"}}))
	env.Must(t, suite.Create(ctx, &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "x-cm-0"), Data: map[string]string{"a": "b"}}))
	env.Must(t, suite.Create(ctx, &appsv1.ControllerRevision{ObjectMeta: gen.Meta(ns, "x-1"), Revision: 1, Data: runtime.RawExtension{Raw: []byte("{}")}}))
	env.Must(t, suite.Create(ctx, gen.Version(ns, "quiet-1", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))))
	tenants.allow(ns)
	return ns
}

// bytesOf is all that stands in a namespace, but events.
func bytesOf(t *testing.T, ns string) string {
	t.Helper()
	var out strings.Builder
	for _, list := range []client.ObjectList{
		&v1beta1.InstanceList{}, &v1beta1.OperatorVersionList{}, &appsv1.ControllerRevisionList{}, &appsv1.DeploymentList{}, &corev1.ConfigMapList{},
		&corev1.SecretList{}, &corev1.ServiceAccountList{}, &corev1.PodList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
	} {
		env.Must(t, suite.List(ctx, list, client.InNamespace(ns)))
		items, err := extract(list)
		env.Must(t, err)
		for _, item := range items {
			text, err := json.Marshal(item)
			env.Must(t, err)
			fmt.Fprintf(&out, "%s\n", text)
		}
	}
	return out.String()
}

// signal signals a manager.
func signal(t *testing.T, process *exec.Cmd, s syscall.Signal) {
	t.Helper()
	env.Must(t, process.Process.Signal(s))
}
