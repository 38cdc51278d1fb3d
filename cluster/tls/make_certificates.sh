#!/usr/bin/env bash
# Make the certificates that encrypt connections of a Dask scheduler, its workers and mkldist.
#
#   cluster/tls/make_certificates.sh FOLDER [DAYS]
#
# FOLDER gets ca.pem, cert.pem and key.pem, valid for DAYS days (365), and must be under one path on
# all machines.  All sides show the same certificate, and trust only what its authority has signed.
# The key of the authority is thrown away: who needs other certificates makes all of them anew.
# Who can read key.pem can run code in the workers, so only its owner may.
set -euo pipefail

folder=${1:?usage: make_certificates.sh FOLDER [DAYS]}
days=${2:-365}
if [ -e "$folder/key.pem" ]; then
    echo "$folder/key.pem exists already: remove the folder to make certificates anew" >&2
    exit 2
fi
umask 077
mkdir -p "$folder"
authority=$(mktemp -d)
trap 'rm -rf "$authority"' EXIT

quietly() { "$@" 2>"$authority/log" || { cat "$authority/log" >&2; exit 1; }; }

curve=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes)
printf 'subjectAltName=DNS:mkldist\nextendedKeyUsage=serverAuth,clientAuth\n' >"$authority/uses"
quietly openssl req -x509 "${curve[@]}" -days "$days" -subj "/CN=mkldist authority" \
    -keyout "$authority/ca.key" -out "$folder/ca.pem"
quietly openssl req "${curve[@]}" -subj "/CN=mkldist" \
    -keyout "$folder/key.pem" -out "$authority/request.pem"
quietly openssl x509 -req -in "$authority/request.pem" -days "$days" -extfile "$authority/uses" \
    -CA "$folder/ca.pem" -CAkey "$authority/ca.key" -set_serial "0x$(openssl rand -hex 16)" \
    -out "$folder/cert.pem"

folder=$(cd "$folder" && pwd)
cat <<END
$folder holds ca.pem, cert.pem and key.pem, for $days days.

A scheduler and workers that you start yourself:
  tls="--tls-ca-file $folder/ca.pem --tls-cert $folder/cert.pem --tls-key $folder/key.pem"
  private="--dashboard-address 127.0.0.1:0"
  DASK_CONFIG=cluster/dask.yaml dask scheduler --protocol tls \$tls \$private
  DASK_CONFIG=cluster/dask.yaml dask worker tls://HOST:8786 --nthreads 1 --nworkers 8 \$tls \$private
  mkldist sweep FILE --scheduler tls://HOST:8786 --tls $folder

A cluster file, such as cluster/slurm.yaml:
  tls: $folder
END
