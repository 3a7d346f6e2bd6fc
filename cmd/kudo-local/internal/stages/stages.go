// Package stages holds what fake nodes and pods do: the configuration of kwok
// under which a pod behaves as its spec says, without any annotation, since
// the packages that are tried here cannot be edited for it.
//
// A pod goes through
//
//	           ┌─ pull         (an image that cannot be had; stays)
//	           ├─ init-failed, init-crash
//	Pending ───┼─ failed, crash          (command fails at once)
//	           └─ ready ──┬─ (runs on)
//	                      ├─ complete    (all containers have ended)
//	                      └─ failed, crash
//	deleted ──── kill (a pod that was to complete) ── delete
//
// Which stage comes next is one expression, next in pod.jq: each stage selects
// the pods for which it gives the stage's name, so that never two match.
package stages

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	heartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	config "sigs.k8s.io/kwok/pkg/apis/config/v1alpha1"
	kwok "sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/yaml"
)

var (
	//go:embed pod.jq
	podQueries string
	//go:embed pod-status.tmpl
	podStatus string
)

// parallelism is how many pods kwok changes at the same time: each of them
// waits for the API server, not for a processor.
const parallelism = 16

// stage is a line of the table of what can happen to a pod.
type stage struct {
	name string
	// delay is a query in the words of pod.jq for how long it takes.
	delay string
	// remove deletes the pod instead of giving it a new status.
	remove bool
}

var podStages = []stage{
	{name: "pull", delay: "soon"},
	{name: "init-failed", delay: "soon"},
	{name: "init-crash", delay: "restart"},
	{name: "ready", delay: "soon"},
	{name: "failed", delay: "finish"},
	{name: "crash", delay: "restart"},
	{name: "complete", delay: "finish"},
	{name: "kill"},
	{name: "delete", remove: true},
}

// Config returns kwok's configuration file. Pods get ready readyDelay after
// they were scheduled.
func Config(readyDelay time.Duration) ([]byte, error) {
	options := config.KwokConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: config.GroupVersion.String(), Kind: config.KwokConfigurationKind},
		// kwok's defaults only hold when there is no configuration at all.
		Options: config.KwokConfigurationOptions{
			PodPlayStageParallelism:       parallelism,
			NodePlayStageParallelism:      parallelism,
			NodeLeaseParallelism:          parallelism,
			PodsOnNodeSyncParallelism:     1,
			EnablePodsOnNodeSyncListPager: new(true),
			// These are exec, logs and profiles, by plain HTTP and for everyone on the machine. Package podlogs serves logs instead.
			EnableDebuggingHandlers: new(false),
			EnableProfilingHandler:  new(false),
		},
	}
	head, err := yaml.Marshal(options)
	if err != nil {
		return nil, fmt.Errorf("encoding the options of kwok: %w", err)
	}
	documents := []string{string(head), nodefast.DefaultNodeInit, heartbeat.DefaultNodeHeartbeatWithLease}
	for _, s := range podStages {
		document, err := yaml.Marshal(s.resource(readyDelay))
		if err != nil {
			return nil, fmt.Errorf("encoding the stage %s: %w", s.name, err)
		}
		documents = append(documents, string(document))
	}
	return []byte(strings.Join(documents, "\n---\n")), nil
}

func (s stage) resource(readyDelay time.Duration) kwok.Stage {
	r := kwok.Stage{
		TypeMeta:   metav1.TypeMeta{APIVersion: kwok.GroupVersion.String(), Kind: kwok.StageKind},
		ObjectMeta: metav1.ObjectMeta{Name: "pod-" + s.name},
		Spec: kwok.StageSpec{
			ResourceRef: kwok.StageResourceRef{APIGroup: "v1", Kind: "Pod"},
			Selector: &kwok.StageSelector{MatchExpressions: []kwok.MatchExpression{{
				JQ: &kwok.SelectorJQ{Key: query("next", readyDelay), Operator: kwok.SelectorOpIn, Values: []string{s.name}},
			}}},
		},
	}
	if s.delay != "" {
		r.Spec.Delay = &kwok.StageDelay{DurationFrom: &kwok.ExpressionFrom{JQ: &kwok.ExpressionJQ{Expression: query(s.delay, readyDelay)}}}
	}
	if s.remove {
		r.Spec.Steps = []kwok.StageStep{{Delete: true}}
		return r
	}
	r.Spec.Steps = []kwok.StageStep{{Patch: &kwok.StagePatch{
		Subresource: "status",
		Root:        "status",
		Template:    statusTemplate(s.name),
	}}}
	return r
}

// query is one word of pod.jq as a query of its own.
func query(word string, readyDelay time.Duration) string {
	return strings.NewReplacer(
		"@FAILS@", quote(fails),
		"@FOREVER@", quote(forever),
		"@SLEEPS@", quote(sleeps),
		"@NO_IMAGE@", quote(noImage),
		"@READY_DELAY@", quote(readyDelay.String()),
	).Replace(podQueries) + "\n" + word
}

func statusTemplate(stage string) string {
	return strings.NewReplacer(
		"@STAGE@", quote(stage),
		"@FAILS@", quote(fails),
		"@EXIT@", quote(exit),
		"@NO_IMAGE@", quote(noImage),
	).Replace(podStatus)
}

// quote makes a string literal that jq and templates both read.
func quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	return strings.TrimSpace(b.String())
}
