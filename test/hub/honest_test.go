package hub

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// faults is how many faults checkHonest makes; KUDO_FAULTS=all makes 1,000.
func faults() int {
	if os.Getenv("KUDO_FAULTS") == "all" {
		return 1000
	}
	return 50
}

// checkHonest checks C25 to C31 at random: while the manager of the hub is killed, clusters are cut off, the engine stops, and overrides
// are a step old, the Instance is never Ready at a generation that a cluster lacks.
func checkHonest(t *testing.T, p *planes) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("the faults are chosen by seed %d", seed)
	random := rand.New(rand.NewPCG(seed, seed))
	i := create(t, p, func(i *v1beta1.Instance) {
		i.Spec.Placement.Divide = "REPLICAS"
		i.Spec.Placement.Waves = &v1beta1.Waves{Groups: [][]string{{"m1"}}, MaxFailures: 2}
	})
	await(t, p, i, metav1.ConditionTrue, v1beta1.ReasonMembersReady)
	w := newWitness(p, i)
	for n := range faults() {
		fault(t, p, i, random)
		pause(t.Context(), time.Duration(random.IntN(700))*time.Millisecond)
		if err := w.err(); err != nil {
			t.Fatalf("after fault %d: %v", n, err)
		}
	}
	p.faults.repair()
	await(t, p, i, metav1.ConditionTrue, v1beta1.ReasonMembersReady)
	w.stop()
	if err := w.err(); err != nil || w.trues == 0 {
		t.Errorf("%d observations, of which %d were ready: %v", w.seen, w.trues, err)
	}
	t.Logf("%d observations, of which %d were ready", w.seen, w.trues)
}

// fault makes one fault, ends one, or changes the Instance.
func fault(t *testing.T, p *planes, i *v1beta1.Instance, random *rand.Rand) {
	t.Helper()
	member := []string{"m1", "m2"}[random.IntN(2)]
	switch random.IntN(8) {
	case 0:
		p.manager.Kill()
		p.manager.Start(t)
	case 1:
		p.faults.cut(member)
	case 2, 3:
		p.faults.disturb()
	case 4:
		p.faults.repair()
	default:
		change(t, p, i, func(i *v1beta1.Instance) {
			i.Spec.Parameters["REPLICAS"] = strconv.Itoa(3 + random.IntN(30))
			i.Spec.Placement.Clusters[1].Parameters["REGION"] = fmt.Sprintf("eu-%d", random.IntN(100))
		})
	}
}

// witness reads the Instance on the hub and its copies again and again.
type witness struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu          sync.Mutex
	lie         error
	seen, trues int
}

func newWitness(p *planes, i *v1beta1.Instance) *witness {
	ctx, cancel := context.WithCancel(context.Background())
	w := &witness{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for ctx.Err() == nil {
			ready, err := observeOnce(p, i)
			w.mu.Lock()
			w.seen++
			if ready {
				w.trues++
			}
			if err != nil && w.lie == nil {
				w.lie = err
			}
			w.mu.Unlock()
			pause(ctx, 20*time.Millisecond)
		}
	}()
	return w
}

func (w *witness) stop() {
	w.cancel()
	<-w.done
}

func (w *witness) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lie
}

// observeOnce returns an error if the hub says that the Instance is ready at its generation, and a cluster has not acted upon that
// generation. A copy that is read later may have a later one.
func observeOnce(p *planes, i *v1beta1.Instance) (ready bool, lie error) {
	hub, err := get(p.hub, &v1beta1.Instance{}, i.Namespace, i.Name)
	if err != nil {
		return false, nil
	}
	c := meta.FindStatusCondition(hub.Status.Conditions, v1beta1.ReadyCondition)
	if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != hub.Generation {
		return false, nil
	}
	want := map[string]string{"m1": "none", "m2": hub.Spec.Placement.Clusters[1].Parameters["REGION"]}
	for name, member := range p.members {
		copied, err := get(member, &v1beta1.Instance{}, i.Namespace, i.Name)
		if err != nil {
			continue
		}
		generation, _ := strconv.ParseInt(copied.PlacedTemplate()[strings.LastIndex(copied.PlacedTemplate(), "/")+1:], 10, 64)
		switch {
		case generation > hub.Generation:
		case generation < hub.Generation:
			return true, fmt.Errorf("Ready at generation %d, and %s has generation %d", hub.Generation, name, generation)
		case copied.Status.ObservedGeneration != copied.Generation, copied.Spec.Parameters["REGION"] != want[name]:
			return true, fmt.Errorf("Ready at generation %d, and %s has %v, observed %d of %d", hub.Generation, name, copied.Spec.Parameters,
				copied.Status.ObservedGeneration, copied.Generation)
		}
	}
	return true, nil
}
