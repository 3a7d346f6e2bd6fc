package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"kudo.dev/kudo/pkg/metrics"
)

var _ = It("Metrics are scraped from all managers, at the addresses of their Service, by accounts with the right only", Label("metrics", "R29", "R30"), func() {
	ns := namespace()
	install(ns, "p", pods)
	for _, account := range []string{"reader", "stranger"} {
		kubectl("create", "serviceaccount", account, "-n", ns)
	}
	kubectl("create", "clusterrolebinding", ns, "--clusterrole=kudo-metrics-reader", "--serviceaccount="+ns+":reader")
	DeferCleanup(func() { kubectl("delete", "clusterrolebinding", ns) })
	token := func(account string) string {
		return strings.TrimSpace(kubectl("create", "token", account, "-n", ns))
	}
	reader, stranger := token("reader"), token("stranger")

	// Another spec may replace the managers meanwhile.
	Eventually(func() error {
		slices := kubectl("get", "endpointslices", "-n", "kudo-system", "-l", "kubernetes.io/service-name=kudo-controller-manager-metrics",
			"-o", `jsonpath={range .items[*]}{range .endpoints[?(@.conditions.ready==true)]}{.addresses[0]}{"\n"}{end}{end}`)
		addresses := strings.Fields(slices)
		if len(addresses) != 2 {
			return fmt.Errorf("the Service has the addresses %v", addresses)
		}
		leaders, runs := 0.0, 0.0
		for _, address := range addresses {
			if _, err := scrape(address, stranger); err == nil || !strings.Contains(err.Error(), "403") {
				return fmt.Errorf("an account without the right: %w", err)
			}
			families, err := scrape(address, reader)
			if err != nil {
				return err
			}
			if err := checkNames(families); err != nil {
				return err
			}
			leaders += sum(families[metrics.Leader], nil)
			runs += sum(families[metrics.PlanRuns], map[string]string{"operator": "pods", "plan": "deploy", "outcome": "complete"})
		}
		if leaders != 1 || runs < 1 {
			return fmt.Errorf("%v managers lead, and have counted %v runs", leaders, runs)
		}
		return nil
	}).Should(Succeed(), "the metrics of both managers")
})

// scrape returns the metrics of a manager at the address of its pod.
func scrape(address, token string) (map[string]*dto.MetricFamily, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+":8443/metrics", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // made at each start
	defer client.CloseIdleConnections()
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %d", address, answer.StatusCode)
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(strings.NewReader(string(text)))
}

// checkNames returns an error for a metric of kudo that the table does not have.
func checkNames(families map[string]*dto.MetricFamily) error {
	for name := range families {
		known := slices.ContainsFunc(metrics.Table, func(m metrics.Metric) bool { return m.Name == name })
		if strings.HasPrefix(name, "kudo_") && !known {
			return fmt.Errorf("the table of metrics lacks %s", name)
		}
	}
	return nil
}

// sum adds up the values of the series that have some labels.
func sum(family *dto.MetricFamily, labels map[string]string) (total float64) {
	for _, series := range family.GetMetric() {
		matched := 0
		for _, label := range series.GetLabel() {
			if want, named := labels[label.GetName()]; named && want == label.GetValue() {
				matched++
			}
		}
		if matched == len(labels) {
			total += series.GetGauge().GetValue() + series.GetCounter().GetValue()
		}
	}
	return total
}
