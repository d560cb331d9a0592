// Command certificates writes the keys and certificates of a throw-away control plane into the
// folder that is its only argument: a CA, a serving pair for the loopback address signed by it, and
// the key that service account tokens are signed with.
//
// A program of its own, so that the tests need neither openssl nor a cryptography package.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: certificates FOLDER")
	}
	folder := os.Args[1]

	caKey := newKey()
	ca := certificate("rebalancer test CA")
	ca.IsCA = true
	ca.BasicConstraintsValid = true
	ca.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	caBytes := sign(ca, ca, caKey, caKey)
	write(folder, "ca.crt", "CERTIFICATE", caBytes)

	serverKey := newKey()
	server := certificate("rebalancer test server")
	server.DNSNames = []string{"localhost"}
	server.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	server.KeyUsage = x509.KeyUsageDigitalSignature
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	// The signer's subject key id comes from the parsed certificate, not from its template.
	signer, err := x509.ParseCertificate(caBytes)
	check(err)
	write(folder, "server.crt", "CERTIFICATE", sign(server, signer, serverKey, caKey))
	writeKey(folder, "server.key", serverKey)

	writeKey(folder, "service-accounts.key", newKey())
}

func newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	return key
}

func certificate(name string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	check(err)
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		// An hour back, for clocks that were set while the machine slept.
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().Add(30 * 24 * time.Hour),
	}
}

func sign(subject, issuer *x509.Certificate, key, issuerKey *ecdsa.PrivateKey) []byte {
	signed, err := x509.CreateCertificate(rand.Reader, subject, issuer, &key.PublicKey, issuerKey)
	check(err)
	return signed
}

func writeKey(folder, name string, key *ecdsa.PrivateKey) {
	encoded, err := x509.MarshalECPrivateKey(key)
	check(err)
	write(folder, name, "EC PRIVATE KEY", encoded)
}

func write(folder, name, kind string, content []byte) {
	encoded := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
	check(os.WriteFile(filepath.Join(folder, name), encoded, 0o600))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
