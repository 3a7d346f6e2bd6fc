package kudoinit

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/atomicfile"
)

// Durations of the token of an external manager.
const (
	DefaultTokenDuration = 24 * time.Hour
	MaxTokenDuration     = 365 * 24 * time.Hour
	// minTokenDuration is the shortest that the API server issues.
	minTokenDuration = 10 * time.Minute
)

// TokenFile returns the path of the token of a kubeconfig: a file beside it, which clients read again every minute, so that a manager uses
// a renewed token without a restart.
func TokenFile(kubeconfig string) string { return kubeconfig + ".token" }

// CheckTokenDuration refuses what is too short or too long.
func CheckTokenDuration(d time.Duration) error {
	if d < minTokenDuration || d > MaxTokenDuration {
		return fmt.Errorf("--token-duration %s: must be from 10m to 8760h, a year", d)
	}
	return nil
}

// RenewToken asks for a new token of a ServiceAccount and writes it into a file that only its owner can read. It returns
// when the token ends, which the API server may have decided otherwise than asked.
func RenewToken(ctx context.Context, c client.Client, key types.NamespacedName, path string, duration time.Duration) (time.Time, error) {
	if err := CheckTokenDuration(duration); err != nil {
		return time.Time{}, err
	}
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = key.Namespace, key.Name
	seconds := int64(duration / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := c.SubResource("token").Create(ctx, account, request); err != nil {
		return time.Time{}, fmt.Errorf("token of ServiceAccount %s: %w", key, err)
	}
	return request.Status.ExpirationTimestamp.Time, atomicfile.Write(path, []byte(request.Status.Token), 0o600)
}
