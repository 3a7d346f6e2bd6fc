package admin

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/kudoinit"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/pkg/repository"
)

// verifyInstall prints what each check of an installation found; one that failed is an error.
func verifyInstall(ctx context.Context, env *command.Env, output string) error {
	c, config, _, err := env.Connect()
	if err != nil {
		return err
	}
	env.Progressf("waiting: the checks take some seconds")
	found, err := kudoinit.Verify(ctx, c, config, clock.RealClock{}, command.Version)
	if err != nil {
		return err
	}
	if output != "" {
		err = env.PrintValue(output, found)
	} else {
		rows := [][]string{{"STATE", "CHECK", "FOUND"}}
		for _, f := range found {
			text := f.Message
			if f.Remedy != "" {
				text += ". Remedy: " + f.Remedy
			}
			rows = append(rows, []string{string(f.State), f.Check, text})
		}
		err = env.PrintTable(rows)
	}
	if wrong := kudoinit.CountFailed(found); wrong > 0 && err == nil {
		var names []string
		for _, f := range found {
			if f.State == kudoinit.Failed {
				names = append(names, f.Check)
			}
		}
		err = fmt.Errorf("kudo is not installed as it should be: %d of %d checks failed (%s)", wrong, len(found), strings.Join(names, ", "))
	}
	return err
}

// removeInstall removes kudo, or says what that would do.
func (o *initOptions) removeInstall(ctx context.Context) error {
	c, config, _, err := o.env.Connect()
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
	ctx, cancel := context.WithTimeout(ctx, o.readyTime())
	defer cancel()
	r := &kudoinit.Remover{
		Client: c, Scanner: &kudoinit.Scanner{Discovery: disco, Metadata: meta}, CRDs: o.crds, Instances: kudoinit.InstancePolicy(o.instances),
		DryRun:  o.dryRun.IsSet(),
		Waiting: func(message string) { o.env.Progressf("waiting: %s", message) },
		Report:  o.reportRemoval,
	}
	if o.dryRun.IsSet() {
		told := &removalPreview{Preview: preview.Preview{Verb: "removal", Subject: "kudo"}}
		r.Report = told.add
		failed := r.Remove(ctx)
		return o.printPreview(ctx, c, &told.Preview, told.objects, failed)
	}
	err = r.Remove(ctx)
	if err != nil && ctx.Err() == context.DeadlineExceeded {
		return command.WithCode(command.ExitTimeout, err)
	}
	return err
}

// reportRemoval says what has become of an object.
func (o *initOptions) reportRemoval(f kudoinit.RemovalResult) {
	verb, why := "removed", f.Reason
	if !f.Deleted {
		verb = "stays"
	}
	if why != "" {
		why = ": " + why
	}
	o.env.Printf("%s %s%s", f.Object, verb, why)
}

// initHome writes down which repositories there are, as KUDO's init does. What is there stays.
func initHome(ctx context.Context, env *command.Env) error {
	home, err := env.RepositoryHome()
	if err != nil {
		return err
	}
	if err := home.Change(ctx, func(*repository.Repositories) error { return nil }); err != nil {
		return err
	}
	env.Printf("repositories are kept in %s", home.Dir)
	return nil
}
