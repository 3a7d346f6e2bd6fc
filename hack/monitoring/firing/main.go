// Command firing prints which alerts of kudo fire if the metrics of a manager go on as between two scrapes.
//
//	firing -rules manifests/monitoring/rules.yaml -interval 5s BEFORE AFTER
//
// BEFORE and AFTER are files with what the manager has served; an empty one is of a manager that did not answer.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"kudo.dev/kudo/hack/monitoring"
)

func main() {
	rules := flag.String("rules", "", "file of the PrometheusRule")
	interval := flag.Duration("interval", 0, "time between the scrapes")
	flag.Parse()
	if err := run(*rules, *interval, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "firing:", err)
		os.Exit(1)
	}
}

func run(rules string, interval time.Duration, scrapes []string) error {
	if len(scrapes) != 2 || interval <= 0 {
		return fmt.Errorf("two scrapes and the time between them are needed, not %q and %s", scrapes, interval)
	}
	text, err := os.ReadFile(rules)
	if err != nil {
		return err
	}
	all, err := monitoring.ParseRules(text)
	if err != nil {
		return fmt.Errorf("read %s: %w", rules, err)
	}
	var texts [2]*bytes.Reader
	for n, name := range scrapes {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		texts[n] = bytes.NewReader(content)
	}
	alerts, err := monitoring.Firing(context.Background(), all, texts[0], texts[1], interval, time.Now())
	for _, alert := range alerts {
		fmt.Println(alert)
	}
	return err
}
