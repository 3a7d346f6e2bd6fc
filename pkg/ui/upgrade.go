package ui

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/repository/incluster"
)

// upgradeChoice is an OperatorVersion that an Instance can be moved to.
type upgradeChoice struct {
	Name string
	// IsLower is set if its version is lower than that of the Instance.
	IsLower bool
}

// maxUpgrades is how many OperatorVersions a form offers.
const maxUpgrades = 100

// listVersions returns the OperatorVersions in the namespace of the one that the Instance has, among which upgrade --in-cluster chooses.
func (t *target) listVersions(ctx context.Context, c client.Client) (*incluster.Versions, error) {
	return incluster.List(ctx, c, t.Instance.OperatorVersionKey().Namespace)
}

// upgrades returns the OperatorVersions that the Instance can be moved to, the highest first: those of its operator beside the one that it
// has.
func (t *target) upgrades(installed *incluster.Versions) []upgradeChoice {
	var out []upgradeChoice
	for _, version := range installed.Of(act.OperatorOf(t.Instance, t.Version)) {
		if version.Name != t.Instance.Spec.OperatorVersion.Name && len(out) < maxUpgrades {
			out = append(out, upgradeChoice{version.Name, act.IsLower(version, t.Version)})
		}
	}
	return out
}

// upgradeTo returns the move to an OperatorVersion. The default values that are sensitive in it are masked from then on.
func (t *target) upgradeTo(ctx context.Context, c client.Client, name string) (act.Action, error) {
	installed, err := t.listVersions(ctx, c)
	if err != nil {
		return nil, err
	}
	version := installed.Find(name)
	if version == nil {
		return nil, fmt.Errorf("operatorversion %s/%s does not exist or is being deleted: go back, and load the page again",
			t.Instance.OperatorVersionKey().Namespace, name)
	}
	t.setMask(version)
	return act.Upgrade{Instance: t.Instance, Old: t.Version, Version: version, Installed: installed, AllowDowngrade: true}, nil
}
