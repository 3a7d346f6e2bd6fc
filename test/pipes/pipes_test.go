// Package pipes tests Pipe tasks on a real control plane. Its nodes cannot run commands, so what a pod's files hold is
// told by the test; all else is real.
package pipes

import (
	"context"
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers"
	"kudo.dev/kudo/pkg/podexec"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// files answers commands of the form `cat -- FILE` by the file's name.
type files struct {
	mu      sync.Mutex
	content map[string]string
	reads   int
}

// Output implements runner.Executor.
func (f *files) Output(_ context.Context, _, namespace, pod, container string, command []string, limit int) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	if container != "waiter" || command[0] != "cat" {
		return nil, fmt.Errorf("unexpected command %v in container %s of %s/%s", command, container, namespace, pod)
	}
	text, ok := f.content[path.Base(command[2])]
	switch {
	case !ok:
		return nil, &podexec.CommandError{Code: 1, Stderr: "cat: can't open '" + command[2] + "': No such file or directory"}
	case len(text) > limit:
		return nil, &podexec.TooLargeError{Limit: limit}
	}
	return []byte(text), nil
}

const pod = `apiVersion: v1
kind: Pod
spec:
  securityContext: {runAsNonRoot: true, runAsUser: 1000}
  volumes:
  - name: shared
    emptyDir: {}
  initContainers:
  - name: make
    image: busybox
    command: [sh, -c, "echo made > /out/index.html"]
    volumeMounts: [{name: shared, mountPath: /out}]
    securityContext:
      allowPrivilegeEscalation: false
      capabilities: {drop: [ALL]}
      seccompProfile: {type: RuntimeDefault}
`

const uses = `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Name }}-uses-{{ .PlanName }}
data:
  page: {{ .Pipes.page }}
  secret: {{ .Pipes.secret }}
  env: {{ .Pipes.env }}
`

func piped(ns, name string, pipes ...v1beta1.PipeSpec) *v1beta1.OperatorVersion {
	return gen.Version(ns, name, gen.Param("V", "1", "again"), gen.Template("pod.yaml", pod), gen.Template("uses.yaml", uses),
		gen.Task("pipe", "Pipe", v1beta1.TaskSpec{Pod: "pod.yaml", Pipe: pipes}), gen.Apply("uses", "uses.yaml"),
		gen.Serial("deploy", "pipe", "uses"), gen.Serial("again", "uses"), gen.Serial("update", "pipe", "uses"))
}

func TestPipes(t *testing.T) {
	ctrllog.SetLogger(zap.New())
	e, err := env.Start()
	must(t, err)
	t.Cleanup(e.Stop)
	if !e.Own() {
		t.Skip("the cluster is not the test's own: its manager cannot be replaced")
	}
	if out, err := e.Local("kill", "manager"); err != nil {
		t.Fatal(out, err)
	}
	c, err := e.Connect()
	must(t, err)
	made := &files{content: map[string]string{"index.html": "<p>hello</p>", "key.pem": "secret", "env": "# made\nA=1\nB=x=y\n", "huge": strings.Repeat("x", 1<<20+1)}}
	start(t, e, made)
	page := v1beta1.PipeSpec{File: "/out/index.html", Kind: "ConfigMap", Key: "page"}
	secret := v1beta1.PipeSpec{File: "/out/key.pem", Kind: "Secret", Key: "secret"}
	vars := v1beta1.PipeSpec{EnvFile: "/out/env", Kind: "ConfigMap", Key: "env"}

	t.Run("files become objects, which every plan can read; the pod goes", func(t *testing.T) {
		ns := restricted(t, c)
		i := deploy(t, c, piped(ns, "ok", page, secret, vars))
		if st := i.Status.PlanStatus["deploy"]; st.Status != v1beta1.Complete {
			t.Fatalf("deploy is %s: %s", st.Status, st.Message)
		}
		prefix := "i.deploy.main.step0.pipe."
		cm, s, ev, used := &corev1.ConfigMap{}, &corev1.Secret{}, &corev1.ConfigMap{}, &corev1.ConfigMap{}
		must(t, c.Get(context.Background(), types.NamespacedName{Namespace: ns, Name: prefix + "page"}, cm))
		must(t, c.Get(context.Background(), types.NamespacedName{Namespace: ns, Name: prefix + "secret"}, s))
		must(t, c.Get(context.Background(), types.NamespacedName{Namespace: ns, Name: prefix + "env"}, ev))
		must(t, c.Get(context.Background(), types.NamespacedName{Namespace: ns, Name: "i-uses-deploy"}, used))
		if string(cm.BinaryData["index.html"]) != "<p>hello</p>" || string(s.Data["key.pem"]) != "secret" || s.Type != "Opaque" || ev.Data["A"] != "1" || ev.Data["B"] != "x=y" {
			t.Errorf("the artifacts are %v, %v, %v", cm.BinaryData, s.Data, ev.Data)
		}
		if used.Data["page"] != prefix+"page" || used.Data["secret"] != prefix+"secret" {
			t.Errorf(".Pipes is %v", used.Data)
		}
		reads := made.reads
		patchParameter(t, c, ns, "again")
		must(t, c.Get(context.Background(), types.NamespacedName{Namespace: ns, Name: "i-uses-again"}, used))
		if used.Data["page"] != prefix+"page" {
			t.Errorf("rule 14: .Pipes in another plan is %v", used.Data)
		}
		if made.reads != reads {
			t.Errorf("rule 9: the pipe ran again: %d reads more", made.reads-reads)
		}
		await(t, "the pipe pod gone", func() bool {
			list := &corev1.PodList{}
			must(t, c.List(context.Background(), list, client.InNamespace(ns)))
			return len(list.Items) == 0
		})
	})
	t.Run("in an install plan, whose pod is slow to go", func(t *testing.T) { testInstallPlan(t, c, page) })
	for _, tc := range []struct {
		reason string
		pipe   v1beta1.PipeSpec
		want   string
	}{
		{"a file that is not there", v1beta1.PipeSpec{File: "/out/none", Kind: "ConfigMap", Key: "page"}, "file /out/none: ended with exit code 1: cat: can't open"},
		{"a file over 1 MiB", v1beta1.PipeSpec{File: "/out/huge", Kind: "Secret", Key: "page"}, "file /out/huge: is larger than 1048576 bytes"},
		{"a file outside of the volume", v1beta1.PipeSpec{File: "/etc/passwd", Kind: "Secret", Key: "page"}, "file /etc/passwd is not below the volume's mountPath /out"},
		{"an envFile that is none", v1beta1.PipeSpec{EnvFile: "/out/index.html", Kind: "Secret", Key: "page"}, "line 1 is not KEY=VALUE"},
		{"a key twice", page, "makes pipe \"page\" twice"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			pipes := []v1beta1.PipeSpec{tc.pipe}
			if tc.reason == "a key twice" {
				pipes = append(pipes, tc.pipe)
			}
			i := deploy(t, c, piped(restricted(t, c), "bad", pipes...))
			if st := i.Status.PlanStatus["deploy"]; st.Status != v1beta1.FatalError || !strings.Contains(st.Message, tc.want) {
				t.Errorf("deploy is %s: %s, want %q", st.Status, st.Message, tc.want)
			}
		})
	}
}

// The pod of a Pipe in an install plan may be slow to go. The plan is complete all the same, and what the pod's files became
// stays.
func testInstallPlan(t *testing.T, c *env.Cluster, page v1beta1.PipeSpec) {
	ctx := context.Background()
	ns := restricted(t, c)
	const held = "example.org/slow"
	ov := gen.Version(ns, "shared", gen.Param("V", "1", ""), gen.Template("pod.yaml", strings.Replace(pod, "spec:", "metadata: {finalizers: ["+held+"]}\nspec:", 1)),
		gen.Task("pipe", "Pipe", v1beta1.TaskSpec{Pod: "pod.yaml", Pipe: []v1beta1.PipeSpec{page}}), gen.ConfigMaps("cm", 1),
		gen.Serial("install", "pipe"), gen.Serial("deploy", "cm"), gen.InstallPlan("install"))
	must(t, c.Create(ctx, ov))
	installed := func() *v1beta1.OperatorVersion {
		return env.Read(t, c, &v1beta1.OperatorVersion{}, ns, ov.Name)
	}
	await(t, "the install plan complete", func() bool { return installed().Installed() })
	pods := &corev1.PodList{}
	await(t, "the pod going", func() bool {
		must(t, c.List(ctx, pods, client.InNamespace(ns)))
		return len(pods.Items) == 1 && pods.Items[0].DeletionTimestamp != nil
	})
	file := env.Read(t, c, &corev1.ConfigMap{}, ns, "shared.install.main.step0.pipe.page")
	if string(file.BinaryData["index.html"]) != "<p>hello</p>" {
		t.Errorf("the artifact is %v", file.BinaryData)
	}
	must(t, c.Delete(ctx, file)) // the plan runs again to restore it, for which the pod must go
	await(t, "the second run, which waits for the pod", func() bool { return installed().Status.Revision == 2 })
	must(t, c.Patch(ctx, &pods.Items[0], client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	await(t, "the second run complete", func() bool { return installed().Status.PlanStatus["install"].Status == v1beta1.Complete })
	env.Read(t, c, &corev1.ConfigMap{}, ns, file.Name)
	must(t, c.Delete(ctx, ov))
	await(t, "the artifact released", func() bool {
		must(t, c.List(ctx, pods, client.InNamespace(ns)))
		for _, pod := range pods.Items {
			if len(pod.Finalizers) > 0 {
				must(t, client.IgnoreNotFound(c.Patch(ctx, &pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))))
			}
		}
		return apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(ov), ov)) && apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(file), file))
	})
}

// start runs a manager in the test's process, under the rights of the ServiceAccount.
func start(t *testing.T, e *env.Env, exec *files) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", e.ManagerKubeconfig())
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	mgr, err := controllers.NewManager(ctx, config, controllers.Options{
		Namespace: "kudo-system", MetricsAddress: "0", HealthAddress: "0", Workers: 4, PipeImage: "busybox", Executor: exec,
	})
	must(t, err)
	done := make(chan error)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

// restricted makes a namespace with restricted pod security, and the account of its plans.
func restricted(t *testing.T, c *env.Cluster) string {
	t.Helper()
	ns := &corev1.Namespace{}
	ns.GenerateName, ns.Labels = "t-", map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	must(t, c.Create(context.Background(), ns))
	must(t, c.Account(context.Background(), ns.Name))
	return ns.Name
}

func deploy(t *testing.T, c *env.Cluster, ov *v1beta1.OperatorVersion) *v1beta1.Instance {
	t.Helper()
	must(t, c.Create(context.Background(), ov))
	must(t, c.Create(context.Background(), gen.Instance("i", ov, nil)))
	i, err := c.Await(context.Background(), ov.Namespace, "i", time.Minute, env.Ended("deploy", 1))
	must(t, err)
	return i
}

// patchParameter changes V, whose trigger is plan, and waits for that plan.
func patchParameter(t *testing.T, c *env.Cluster, ns, plan string) {
	t.Helper()
	i := &v1beta1.Instance{}
	must(t, c.Get(context.Background(), types.NamespacedName{Namespace: ns, Name: "i"}, i))
	patch := client.MergeFrom(i.DeepCopy())
	i.Spec.Parameters = map[string]string{"V": "2"}
	must(t, c.Patch(context.Background(), i, patch))
	_, err := c.Await(context.Background(), ns, "i", time.Minute, env.Ended(plan, 2))
	must(t, err)
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not yet %s", what)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
