#!/bin/sh
# Make an authority, and a certificate for the SuperLink's machine:
#     sh certificates.sh superlink.example 192.0.2.10
# Give all names and addresses that clients use for it. The files ca.pem, ca.key, server.pem and
# server.key are written to the current folder. Copy ca.pem to the clients. Keep ca.key offline, or
# delete it.
set -eu
umask 077
test $# -gt 0 || { echo "Give the names and addresses of the SuperLink's machine." >&2; exit 2; }
test ! -e ca.pem || { echo "ca.pem exists already: nothing is overwritten." >&2; exit 2; }

# The server's own processes connect to the SuperLink at 127.0.0.1.
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
