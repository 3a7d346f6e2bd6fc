package main

// The certificate authorities of Mozilla's program, for an image that has none: what is mounted at /etc/ssl/certs, or named by
// SSL_CERT_FILE and SSL_CERT_DIR, takes their place.
import _ "golang.org/x/crypto/x509roots/fallback"
