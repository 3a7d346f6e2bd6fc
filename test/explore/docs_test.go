package explore

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/explore/library"
	"kudo.dev/kudo/pkg/explore/lua"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/sourcetree"
)

var _ = It("The script of the page on exploring does what the page says", Serial, func() {
	t := GinkgoTB()
	page := read(t, filepath.Join(sourcetree.Root(), "docs", "explore.md"))
	rules := regexp.MustCompile("(?s)```yaml\n(# rules/kettles.yaml\n.*?)```").FindStringSubmatch(page)
	if rules == nil {
		t.Fatal("the page has no rules/kettles.yaml")
	}
	create(t, rules[1])
	boil(t, page, suite.NewNamespace(t))
})

// boil does what the page says of its script.
func boil(t testing.TB, page, ns string) {
	t.Helper()
	const group = "kitchen.example.com/v1"
	define(t, strings.ReplaceAll(kind("Kettle", "kettles"), "explore.example.com", "kitchen.example.com"))
	i := install(t, operator(ns, [][2]string{{"kettle", "apiVersion: " + group + "\nkind: Kettle\nmetadata: {name: kettle}\nspec: {lid: red}\n"}}), nil)
	messages := regexp.MustCompile(`(?m)^Kettle team-a/kettle: .*$`).FindAllString(page, -1)
	if len(messages) != 2 {
		t.Fatalf("the page has the messages %q", messages)
	}
	says(t, i, strings.ReplaceAll(messages[0], "team-a", ns))
	create(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: red, namespace: "+ns+"}\n")
	kettle := live(t, group, "Kettle", ns, "kettle")
	merge(t, kettle, `{"status":{"temperature":60}}`, true)
	says(t, i, strings.ReplaceAll(messages[1], "team-a", ns))
	merge(t, kettle, `{"status":{"temperature":100}}`, true)
	complete(t, i, 1)
	merge(t, kettle, `{"status":{"fault":"the fuse has blown"}}`, true)
	env.Eventually(t, "an Instance that is not ready, since its Kettle has failed", func() string {
		c := meta.FindStatusCondition(env.Read(t, suite, &v1beta1.Instance{}, ns, "i").Status.Conditions, v1beta1.ReadyCondition)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1beta1.ReasonResourceFailed || !strings.Contains(c.Message, "Kettle "+ns+"/kettle: the fuse has blown") {
			return fmt.Sprintf("%+v", c)
		}
		return ""
	})
	set(t, i, `{"planExecution":{"planName":"deploy","uid":"again"}}`)
	ended, err := suite.Await(ctx, ns, "i", env.DefaultTimeout, env.PlanEnded(v1beta1.DeployPlan, 2))
	env.Must(t, err)
	if st := ended.Status.PlanStatus[v1beta1.DeployPlan]; st.Status != v1beta1.FatalError || !strings.Contains(st.Message, "Kettle "+ns+"/kettle: the fuse has blown") {
		t.Errorf("deploy is %s: %s", st.Status, st.Message)
	}
}

var _ = It("The page on exploring lists the kinds that come with kudo, and no others", func() {
	t := GinkgoTB()
	layer, err := library.New(lua.New(clock.RealClock{}.Now, lua.DefaultLimits()))
	env.Must(t, err)
	var want []string
	group, kinds := "", []string{}
	flush := func() {
		if group != "" {
			want = append(want, "| `"+group+"` | "+strings.Join(kinds, ", ")+" |")
		}
	}
	for _, k := range layer.Kinds() {
		if k.Group != group {
			flush()
			group, kinds = k.Group, nil
		}
		if !strings.Contains(" "+strings.Join(kinds, " ")+" ", " "+k.Kind+" ") {
			kinds = append(kinds, k.Kind)
		}
	}
	flush()
	page := read(t, filepath.Join(sourcetree.Root(), "docs", "explore.md"))
	var got []string
	for _, line := range strings.Split(page[strings.Index(page, "## Kinds that kudo knows"):], "\n") {
		if strings.HasPrefix(line, "| `") {
			got = append(got, line)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/explore.md: -library +page:\n%s", diff)
	}
})
