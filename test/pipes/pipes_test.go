package pipes

import (
	"context"
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/podexec"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// files answers the commands by which the manager's program reads a file, by the file's name.
type files struct {
	mu      sync.Mutex
	content map[string]string
	reads   int
}

// Output implements runner.Executor. A file is read with the rights of the account that the plan runs as.
func (f *files) Output(_ context.Context, user string, in podexec.Container, command []string, limit int) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	want := "system:serviceaccount:" + in.Namespace + ":kudo"
	if strings.HasPrefix(in.Pod, "shared") { // of the install plan
		want = "system:serviceaccount:kudo-system:kudo-installer"
	}
	if user != want {
		return nil, fmt.Errorf("%s reads a file of %s/%s, want %s", user, in.Namespace, in.Pod, want)
	}
	if in.Name != "waiter" || strings.Join(command[:3], " ") != "/manager pipe read" {
		return nil, fmt.Errorf("unexpected command %v in container %s of %s/%s", command, in.Name, in.Namespace, in.Pod)
	}
	text, ok := f.content[path.Base(command[3])]
	switch {
	case !ok:
		return nil, &podexec.CommandError{Code: 1, Stderr: "open " + command[3] + ": no such file or directory"}
	case len(text) > limit:
		return nil, &podexec.TooLargeError{Limit: limit}
	}
	return []byte(text), nil
}

// set changes a file of all pods.
func (f *files) set(name, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.content[name] = text
}

// count returns how many files have been read.
func (f *files) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reads
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

var (
	page   = v1beta1.PipeSpec{File: "/out/index.html", Kind: "ConfigMap", Key: "page"}
	secret = v1beta1.PipeSpec{File: "/out/key.pem", Kind: "Secret", Key: "secret"}
	vars   = v1beta1.PipeSpec{EnvFile: "/out/env", Kind: "ConfigMap", Key: "env"}
)

var _ = Describe("A Pipe task", func() {
	// The spec counts the reads of all pods, and is on process 1 as the manager is.
	It("makes objects of files, which every plan can read, and deletes its pod", Serial, Label("rule-9", "rule-14"), func() {
		t := GinkgoTB()
		ns := restricted(t)
		i := deploy(t, piped(ns, "ok", page, secret, vars))
		if st := i.Status.PlanStatus["deploy"]; st.Status != v1beta1.Complete {
			t.Fatalf("deploy is %s: %s", st.Status, st.Message)
		}
		prefix := "i.deploy.main.step0.pipe."
		cm := env.Read(t, suite, &corev1.ConfigMap{}, ns, prefix+"page")
		s := env.Read(t, suite, &corev1.Secret{}, ns, prefix+"secret")
		ev := env.Read(t, suite, &corev1.ConfigMap{}, ns, prefix+"env")
		used := env.Read(t, suite, &corev1.ConfigMap{}, ns, "i-uses-deploy")
		if string(cm.BinaryData["index.html"]) != "<p>hello</p>" || string(s.Data["key.pem"]) != "secret" || s.Type != "Opaque" || ev.Data["A"] != "1" || ev.Data["B"] != "x=y" {
			t.Errorf("the artifacts are %v, %v, %v", cm.BinaryData, s.Data, ev.Data)
		}
		if used.Data["page"] != prefix+"page" || used.Data["secret"] != prefix+"secret" {
			t.Errorf(".Pipes is %v", used.Data)
		}
		reads := made.count()
		patchParameter(t, ns, "again")
		used = env.Read(t, suite, &corev1.ConfigMap{}, ns, "i-uses-again")
		if used.Data["page"] != prefix+"page" {
			t.Errorf("rule 14: .Pipes in another plan is %v", used.Data)
		}
		if made.count() != reads {
			t.Errorf("rule 9: the pipe ran again: %d reads more", made.count()-reads)
		}
		env.Eventually(t, "the pipe pod gone", env.Condition(func() bool {
			list := &corev1.PodList{}
			env.Must(t, suite.List(context.Background(), list, client.InNamespace(ns)))
			return len(list.Items) == 0
		}))
	})

	It("makes its pod anew if the files were to be read from another image", Label("D4"), func() {
		t := GinkgoTB()
		ns := restricted(t)
		held := strings.Replace(pod, "spec:", "spec:\n  schedulingGates: [{name: example.org/held}]", 1)
		ov := gen.Version(ns, "held", gen.Template("pod.yaml", held), gen.Task("pipe", "Pipe", v1beta1.TaskSpec{Pod: "pod.yaml", Pipe: []v1beta1.PipeSpec{page}}), gen.Serial("deploy", "pipe"))
		env.Must(t, suite.Create(context.Background(), ov))
		env.Must(t, suite.Create(context.Background(), gen.Instance("i", ov, nil)))
		waiting := func(previous types.UID) *corev1.Pod {
			pods := &corev1.PodList{}
			env.Eventually(t, "a pod", func() string {
				env.Must(t, suite.List(context.Background(), pods, client.InNamespace(ns)))
				if len(pods.Items) != 1 || pods.Items[0].UID == previous {
					return fmt.Sprintf("there are %d", len(pods.Items))
				}
				return ""
			})
			return &pods.Items[0]
		}
		first := waiting("")
		waiter := first.Spec.Containers[0]
		if waiter.Image != "kudo-manager:dev" || waiter.ImagePullPolicy != corev1.PullIfNotPresent || strings.Join(waiter.Command, " ") != "/manager pipe wait" {
			t.Errorf("the waiter is %+v", waiter)
		}
		// So does the pod look that a manager with another --pipe-image has made.
		patch := `[{"op":"replace","path":"/spec/containers/0/image","value":"other:1"}]`
		env.Must(t, suite.Patch(context.Background(), first, client.RawPatch(types.JSONPatchType, []byte(patch))))
		if second := waiting(first.UID); second.Spec.Containers[0].Image != "kudo-manager:dev" {
			t.Errorf("the waiter is of image %s", second.Spec.Containers[0].Image)
		}
	})

	It("completes an install plan though its pod is slow to go, and keeps what the files became", func() { testInstallPlan(GinkgoTB()) })

	DescribeTable("ends with a fatal error", func(want string, pipes ...v1beta1.PipeSpec) {
		t := GinkgoTB()
		i := deploy(t, piped(restricted(t), "bad", pipes...))
		if st := i.Status.PlanStatus["deploy"]; st.Status != v1beta1.FatalError || !strings.Contains(st.Message, want) {
			t.Errorf("deploy is %s: %s, want %q", st.Status, st.Message, want)
		}
	},
		Entry("for a file that is not there", "file /out/none: ended with exit code 1: open /out/none",
			v1beta1.PipeSpec{File: "/out/none", Kind: "ConfigMap", Key: "page"}),
		Entry("for a file over 1 MiB", "file /out/huge: is larger than 1048576 bytes",
			v1beta1.PipeSpec{File: "/out/huge", Kind: "Secret", Key: "page"}),
		Entry("for a file outside of the volume", "file /etc/passwd is not below the volume's mountPath /out",
			v1beta1.PipeSpec{File: "/etc/passwd", Kind: "Secret", Key: "page"}),
		Entry("for an envFile that is none", "line 1 is not KEY=VALUE",
			v1beta1.PipeSpec{EnvFile: "/out/index.html", Kind: "Secret", Key: "page"}),
		Entry("for a key twice", "makes pipe \"page\" twice", page, page),
	)
})

// The pod of a Pipe in an install plan may be slow to go. The plan is complete all the same, and what the pod's files became
// stays.
func testInstallPlan(t testing.TB) {
	ctx := context.Background()
	ns := restricted(t)
	const held = "example.org/slow"
	ov := gen.Version(ns, "shared", gen.Param("V", "1", ""), gen.Template("pod.yaml", strings.Replace(pod, "spec:", "metadata: {finalizers: ["+held+"]}\nspec:", 1)),
		gen.Task("pipe", "Pipe", v1beta1.TaskSpec{Pod: "pod.yaml", Pipe: []v1beta1.PipeSpec{page}}), gen.ConfigMaps("cm", 1),
		gen.Serial("install", "pipe"), gen.Serial("deploy", "cm"), gen.InstallPlan("install"))
	env.Must(t, suite.Create(ctx, ov))
	installed := func() *v1beta1.OperatorVersion {
		return env.Read(t, suite, &v1beta1.OperatorVersion{}, ns, ov.Name)
	}
	env.Eventually(t, "the install plan complete", env.Condition(func() bool { return installed().Installed() }))
	pods := &corev1.PodList{}
	env.Eventually(t, "the pod going", env.Condition(func() bool {
		env.Must(t, suite.List(ctx, pods, client.InNamespace(ns)))
		return len(pods.Items) == 1 && pods.Items[0].DeletionTimestamp != nil
	}))
	file := env.Read(t, suite, &corev1.ConfigMap{}, ns, "shared.install.main.step0.pipe.page")
	if string(file.BinaryData["index.html"]) != "<p>hello</p>" {
		t.Errorf("the artifact is %v", file.BinaryData)
	}
	env.Must(t, suite.Delete(ctx, file)) // the plan runs again to restore it, for which the pod must go
	env.Eventually(t, "the second run, which waits for the pod", env.Condition(func() bool { return installed().Status.Revision == 2 }))
	env.Must(t, suite.Patch(ctx, &pods.Items[0], client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	env.Eventually(t, "the second run complete", env.Condition(func() bool { return installed().Status.PlanStatus["install"].Status == v1beta1.Complete }))
	env.Read(t, suite, &corev1.ConfigMap{}, ns, file.Name)
	env.Must(t, suite.Delete(ctx, ov))
	env.Eventually(t, "the artifact released", env.Condition(func() bool {
		env.Must(t, suite.List(ctx, pods, client.InNamespace(ns)))
		for _, pod := range pods.Items {
			if len(pod.Finalizers) > 0 {
				env.Must(t, client.IgnoreNotFound(suite.Patch(ctx, &pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))))
			}
		}
		return apierrors.IsNotFound(suite.Get(ctx, client.ObjectKeyFromObject(ov), ov)) && apierrors.IsNotFound(suite.Get(ctx, client.ObjectKeyFromObject(file), file))
	}))
}

// restricted makes a namespace with restricted pod security, and the account of its plans.
func restricted(t testing.TB) string {
	t.Helper()
	ns := &corev1.Namespace{}
	ns.GenerateName, ns.Labels = "t-", map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	env.Must(t, suite.Create(context.Background(), ns))
	t.Cleanup(func() { _ = suite.Delete(context.Background(), ns) })
	env.Must(t, suite.Account(context.Background(), ns.Name))
	return ns.Name
}

func deploy(t testing.TB, ov *v1beta1.OperatorVersion) *v1beta1.Instance {
	t.Helper()
	env.Must(t, suite.Create(context.Background(), ov))
	env.Must(t, suite.Create(context.Background(), gen.Instance("i", ov, nil)))
	i, err := suite.Await(context.Background(), ov.Namespace, "i", env.DefaultTimeout, env.PlanEnded("deploy", 1))
	env.Must(t, err)
	return i
}

// patchParameter changes V, whose trigger is plan, and waits for that plan.
func patchParameter(t testing.TB, ns, plan string) {
	t.Helper()
	i := &v1beta1.Instance{}
	env.Must(t, suite.Get(context.Background(), types.NamespacedName{Namespace: ns, Name: "i"}, i))
	patch := client.MergeFrom(i.DeepCopy())
	i.Spec.Parameters = map[string]string{"V": "2"}
	env.Must(t, suite.Patch(context.Background(), i, patch))
	_, err := suite.Await(context.Background(), ns, "i", env.DefaultTimeout, env.PlanEnded(plan, 2))
	env.Must(t, err)
}
