package admin

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/utils/ptr"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/kudoinit"
)

// valueFlags are the flags of init for the values of the manager's Deployment.
type valueFlags struct {
	file  string
	set   []string
	force bool
	// monitoring and hub set the values of these names.
	monitoring, hub bool
}

func (v *valueFlags) add(f *pflag.FlagSet) {
	f.StringVar(&v.file, "values", "", "file with values of the manager's Deployment, which init keeps in the ConfigMap "+
		kudoinit.ValuesConfigMap+" (default those that it has kept)")
	f.StringArrayVar(&v.set, "set", nil, "set a value of the manager's Deployment: KEY=VALUE, such as resources.limits.memory=1Gi; null as "+
		"VALUE takes it away (may be repeated)")
	f.BoolVar(&v.monitoring, "monitoring", false, "install a ServiceMonitor, alerts and a dashboard, which need the Prometheus Operator; "+
		"later inits keep them")
	f.BoolVar(&v.hub, "hub", false, "make the cluster a hub, whose Instances are placed on other clusters by Karmada, and which runs no "+
		"plans; later inits keep that")
	f.BoolVar(&v.force, "force-conflicts", false, "overwrite fields that others have set to other values than init")
}

// any reports whether a flag was given.
func (v *valueFlags) any() bool {
	return v.file != "" || len(v.set) > 0 || v.force || v.monitoring || v.hub
}

// chooseValues sets the values: those of the file, or else those that were kept, then --set, then the flags of single values. Options
// that no value sets are as they are installed, and the image is that of this build.
func (o *initOptions) chooseValues(live *kudoinit.InstalledState) (err error) {
	v := live.Values
	if o.values.file != "" {
		if v, err = readValues(o.values.file); err != nil {
			return err
		}
	}
	if v, err = v.Set(o.values.set); err != nil {
		return command.UsageError("--set %w", err)
	}
	if o.settings.dropArgs {
		v.ExtraArgs = nil
	}
	v.Monitoring = v.Monitoring || o.values.monitoring
	v.Hub = v.Hub || o.values.hub
	if live.Bound && v.Hub != live.Values.Hub {
		return command.UsageError("kudo is installed here %s: remove it by kubectl kudo init --remove first, or use another cluster",
			roles[live.Values.Hub])
	}
	if o.Replicas > 0 {
		v.Replicas = ptr.To(o.Replicas)
	}
	if o.PullPolicy != "" {
		v.ImagePullPolicy = o.PullPolicy
	}
	if o.PipeImage != "" {
		v.PipeImage = o.PipeImage
	}
	if err := o.chooseImage(&v, live); err != nil {
		return err
	}
	o.PullPolicy, o.PipeImage, o.Replicas = v.ImagePullPolicy, v.PipeImage, ptr.Deref(v.Replicas, live.Replicas)
	if o.PipeImage == "" {
		o.PipeImage = live.PipeImage
	}
	o.Values = v
	return nil
}

// roles say what a cluster is, by the value hub of its installation.
var roles = map[bool]string{false: "to run plans, and a hub runs none", true: "as a hub, which runs no plans"}

func readValues(name string) (kudoinit.Values, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return kudoinit.Values{}, fmt.Errorf("--values: %w", err)
	}
	v, err := kudoinit.ParseValues(text)
	if err != nil {
		err = command.UsageError("--values %s: %w", name, err)
	}
	return v, err
}

// noImage says what to do where the command has no image of the manager.
const noImage = "this build of kubectl kudo knows no image of the manager: give --kudo-image, or use a released one"

// chooseImage sets the image: the one that a flag or a value names, or that of this build, from the registry of the values. It warns of
// one that is unsafe. An image that was named for another version is refused, since the rights and the manager would be of two versions.
func (o *initOptions) chooseImage(v *kudoinit.Values, live *kudoinit.InstalledState) (err error) {
	switch {
	case o.Image != "":
		v.Image, v.ImageRegistry = o.Image, ""
	case o.registry != "":
		v.Image, v.ImageRegistry = "", o.registry
	case v.Image != "" && v.Image == live.Values.Image && kudoinit.Image != "" && live.Version != o.Version:
		return command.UsageError("the values name the image %s, which was chosen for kudo %s: give --kudo-image with that of %s, or --set "+
			"image=null for %s",
			v.Image, live.Version, o.Version, kudoinit.Image)
	}
	switch o.Image = v.Image; {
	case o.Image != "":
		if warning := kudoinit.CheckImage(o.Image); warning != "" {
			o.env.Warnf("%s", warning)
		}
	case v.ImageRegistry != "" && kudoinit.Image == "":
		return command.UsageError("imageRegistry: %s", noImage)
	case v.ImageRegistry != "":
		if o.Image, err = kudoinit.MoveImage(kudoinit.Image, v.ImageRegistry); err != nil {
			return command.UsageError("--image-registry %w", err)
		}
	case kudoinit.Image != "":
		o.Image = kudoinit.Image
	case !live.External:
		o.Image = live.Image // this build has no image of its own
	}
	return nil
}
