package registry

import (
	"crypto/x509"
	"fmt"
	"io"
	"os"
)

// maxCertificates bounds a file of certificates, in bytes.
const maxCertificates = 1 << 20

// AddCertificates returns a pool that has the certificates in a PEM file, and those of roots. If roots is nil, the pool has those of the
// system instead.
func AddCertificates(roots *x509.CertPool, file string) (*x509.CertPool, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	content, err := io.ReadAll(io.LimitReader(in, maxCertificates+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if len(content) > maxCertificates {
		return nil, fmt.Errorf("read %s: it has more than the %d bytes allowed: name a file with the certificates alone", file, maxCertificates)
	}
	if roots != nil {
		roots = roots.Clone()
	} else if roots, err = x509.SystemCertPool(); err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("read %s: it holds no certificate in PEM: name a file that begins with -----BEGIN CERTIFICATE-----", file)
	}
	return roots, nil
}
