package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"kudo.dev/kudo/pkg/install"
	"kudo.dev/kudo/pkg/repository"
)

// verifyInstall prints what each check of an installation found; one that failed is an error.
func (t *tool) verifyInstall(ctx context.Context, output string) error {
	c, config, _, err := t.connect()
	if err != nil {
		return err
	}
	t.progress("waiting: the checks take some seconds")
	found, err := install.Verify(ctx, c, config, clock.RealClock{}, Version)
	if err != nil {
		return err
	}
	if output != "" {
		err = t.printAny(output, found)
	} else {
		rows := [][]string{{"STATE", "CHECK", "FOUND"}}
		for _, f := range found {
			text := f.Message
			if f.Remedy != "" {
				text += ". Remedy: " + f.Remedy
			}
			rows = append(rows, []string{string(f.State), f.Check, text})
		}
		err = t.table(rows)
	}
	if wrong := install.Wrong(found); wrong > 0 && err == nil {
		var names []string
		for _, f := range found {
			if f.State == install.Failed {
				names = append(names, f.Check)
			}
		}
		err = fmt.Errorf("kudo is not installed as it should be: %d of %d checks failed (%s)", wrong, len(found), strings.Join(names, ", "))
	}
	return err
}

// removeInstall removes kudo, or says what that would do.
func (t *tool) removeInstall(ctx context.Context, o *initOptions) error {
	c, config, _, err := t.connect()
	if err != nil {
		return err
	}
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // all kinds are looked at, deprecated ones too
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(o.waitTimeout))
	defer cancel()
	r := &install.Remover{
		Client: c, Scanner: &install.Scanner{Discovery: disco, Metadata: meta}, CRDs: o.crds, Force: install.Force(o.force), DryRun: o.dryRun,
		Waiting: func(message string) { t.progress("waiting: %s", message) },
		Tell: func(f install.Fate) {
			verb, why := "removed", f.Why
			switch {
			case !f.Goes:
				verb = "stays"
			case o.dryRun:
				verb = "would be removed"
			}
			if why != "" {
				why = ": " + why
			}
			t.say("%s %s%s", f.Object, verb, why)
		},
	}
	err = r.Remove(ctx)
	if err != nil && ctx.Err() == context.DeadlineExceeded {
		return &codeError{ExitTimeout, err}
	}
	return err
}

// initHome writes down which repositories there are, as KUDO's init does. What is there stays.
func (t *tool) initHome(ctx context.Context) error {
	home, err := t.kudoHome()
	if err != nil {
		return err
	}
	if err := home.Change(ctx, func(*repository.Repositories) error { return nil }); err != nil {
		return err
	}
	t.say("repositories are kept in %s", home.Dir)
	return nil
}
