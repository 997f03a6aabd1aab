#!/bin/sh
# Make an authority, and a certificate for the SuperLink's machine:
#     sh certificates.sh superlink.example 192.0.2.10
# with the names and addresses by which clients reach it. Writes ca.pem, ca.key, server.pem and
# server.key here. Clients get ca.pem. Nobody gets ca.key: keep it off line, or delete it.
set -eu
umask 077
test $# -gt 0 || { echo "Which names and addresses has the SuperLink's machine?" >&2; exit 2; }
test ! -e ca.pem || { echo "There is a ca.pem here already: nothing is overwritten." >&2; exit 2; }

# The server's own processes reach the SuperLink as 127.0.0.1.
names="DNS:localhost,IP:127.0.0.1"
for name in "$@"; do
    case $name in
        *[!0-9.]*) case $name in *:*) names="$names,IP:$name" ;; *) names="$names,DNS:$name" ;; esac ;;
        *) names="$names,IP:$name" ;;
    esac
done

curve="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -noenc"
openssl req -x509 $curve -keyout ca.key -out ca.pem -days 3650 -subj "/CN=CAFe federation" \
    -addext keyUsage=critical,keyCertSign,cRLSign
openssl req $curve -keyout server.key -out server.csr -subj "/CN=$1"
trap 'rm -f server.csr server.ext' EXIT
cat > server.ext <<END
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = $names
END
openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -days 825 -extfile server.ext -out server.pem
chmod 644 ca.pem server.pem
