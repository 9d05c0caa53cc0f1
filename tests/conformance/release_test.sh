#!/usr/bin/env bash
# release_test.sh CLUSTER BUILD [signed]: the files of a release for this machine's architecture, made of the release program that is
# built, and what people do with them: a registry on loopback takes image and chart, helm installs from it, krew from the index.
# With `signed` cosign signs with a key that is made here, and verifies. Exit code 77, with the reason in the last line: something
# that this needs cannot be had here.
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/beside_cluster.sh"
signed=${3:-}
cd "$project"
# shellcheck source=dev
source ./dev --as-library

skip() { echo "skipped: $*"; exit 77; }
architecture=$(dpkg --print-architecture)
program=$project/$(release_program "$architecture")
PATH=$("$here/controlplane/build.sh" --bin):$PATH
((EUID == 0)) || skip "chroot is for root"
[[ -x $program ]] || skip "no $program; ./dev build release makes it"
version=$(sed -n 's/^version: //p' charts/gpu-sharing-operator/Chart.yaml)
release=$project/build/release-$version
name=gpu-sharing-operator-$version-linux-$architecture

# Debian's, unpacked and not installed: the package starts a service.
registry_program() {
  local folder=$GSODEV_CACHE/docker-registry
  if [[ ! -x $folder/usr/bin/docker-registry ]]; then
    mkdir -p "$folder"
    (cd "$folder" && apt-get download docker-registry && dpkg-deb --extract docker-registry_*.deb . && rm docker-registry_*.deb) >&2
  fi
  echo "$folder/usr/bin/docker-registry"
}
registry_program=$(registry_program) || skip "apt-get has no docker-registry"
cat >"$work/registry.yaml" <<YAML
version: 0.1
storage: {filesystem: {rootdirectory: $work/registry}, delete: {enabled: true}}
http: {addr: "127.0.0.1:0"}
YAML
start registry "$registry_program" serve "$work/registry.yaml"
mkdir "$work/served"
ln -s "$release" "$work/served/$version"
start downloads python3 -u -m http.server --bind 127.0.0.1 --directory "$work/served" 0
port_of() { grep -oP "$2" "$work/$1.log" | head -n 1; }
await 30 port_of registry 'listening on 127\.0\.0\.1:\K[0-9]+' >/dev/null
await 30 port_of downloads 'port \K[0-9]+' >/dev/null
registry=127.0.0.1:$(port_of registry 'listening on 127\.0\.0\.1:\K[0-9]+')
downloads=http://127.0.0.1:$(port_of downloads 'port \K[0-9]+')

make_release() { ./dev release --arch "$architecture" --downloads "$downloads" "$@" >"$work/made"; }
repositories() { curl --silent --fail "http://$registry/v2/_catalog"; }

makes_a_release_without_pushing() {
  make_release --dry-run
  grep -q '^not pushed' "$work/made"
  [[ $(repositories) == *'"repositories":[]'* ]]
}
makes_the_same_bytes() {
  cp -r "$release" "$work/first"
  make_release --dry-run
  diff --recursive "$work/first" "$release"
}
has_its_checksums() {
  (cd "$release" && sha256sum --check --strict --quiet SHA256SUMS)
  diff <(cd "$release" && find . -type f -not -name 'SHA256SUMS*' -printf '%P\n' | sort) <(sed 's/^[0-9a-f]*  //' "$release/SHA256SUMS")
}
states_what_it_was_made_of() {
  python3 - "$release" "$(git rev-parse HEAD)" <<'PY'
import hashlib, json, pathlib, sys
release = pathlib.Path(sys.argv[1])
statement = json.loads(next(release.glob("*.intoto.jsonl")).read_text())
stated = {subject["name"]: subject["digest"]["sha256"] for subject in statement["subject"]}
files = {str(path.relative_to(release)): hashlib.sha256(path.read_bytes()).hexdigest()
         for path in release.rglob("*") if path.is_file() and not path.name.endswith(".jsonl") and not path.name.startswith("SHA256SUMS")}
assert files.items() <= stated.items(), files.items() - stated.items()
assert set(stated) - set(files) == {"gpu-sharing-operator", "gso-sim"}, stated
materials = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
assert {"gitCommit": sys.argv[2]} in [material.get("digest") for material in materials]
assert any(material["uri"].startswith("pkg:deb/debian/openssl@") for material in materials), materials
PY
}
# Each library that the program says is inside it has its licence, and nothing else has.
names_libraries() { "$program" version --libraries | sed -n '2,$s/ .*//p' | sort; }
has_a_complete_tarball() {
  mkdir "$work/tarball"
  tar -xzf "$release/$name.tar.gz" -C "$work/tarball"
  cd "$work/tarball/$name"
  [[ $(./gpu-sharing-operator version) == *"$version"* ]]
  grep -q '^\.TH ' gpu-sharing-operator.1
  bash -n completions/gpu-sharing-operator.bash
  [[ -s completions/_gpu-sharing-operator && -s completions/gpu-sharing-operator.fish && -s LICENSE ]]
  diff <(names_libraries) <(find licences -type f -size +0 -printf '%P\n' | sort)
}
has_a_clean_package() {
  lintian --allow-root --fail-on error,warning "$release/gpu-sharing-operator_${version}_$architecture.deb"
  dpkg-deb --extract "$release/gpu-sharing-operator_${version}_$architecture.deb" "$work/package"
  [[ $("$work/package/usr/bin/gpu-sharing-operator" version) == *"$version"* ]]
  gzip --test "$work"/package/usr/share/man/man1/gpu-sharing-operator.1.gz
  diff <(names_libraries) <(find "$work/package/usr/share/doc/gpu-sharing-operator/licences" -type f -size +0 -printf '%P\n' | sort)
}
pushes_image_and_chart() {
  make_release --push "$registry/gpu" --plain-http ${signed:+--key "$work/cosign.key"}
  digest=$(grep -oP '@\Ksha256:[0-9a-f]{64}$' "$work/made" | head -n 1)
  echo "$digest" >"$work/digest"
  [[ $(repositories) == *'"gpu/gso-sim"'* ]]
  [[ $(skopeo inspect --raw --tls-verify=false "docker://$registry/gpu/gpu-sharing-operator:$version" | sha256sum) == "${digest#sha256:} "* ]]
}
installs_from_the_registry() {
  helm install gpu-sharing-operator "oci://$registry/gpu/charts/gpu-sharing-operator" --plain-http --version "$version" \
    --namespace gpu-sharing-operator --create-namespace --set operandNamespaces='{default}'
  [[ $(kubectl get deployment gpu-sharing-operator --namespace gpu-sharing-operator --output 'jsonpath={.spec.template.spec.containers[0].image}') == \
    "$registry/gpu/gpu-sharing-operator@$(<"$work/digest")" ]]
  kubectl wait --for=condition=Established --timeout=30s crd/sharingpolicies.gpusharing.dev crd/sharingrollouts.gpusharing.dev
}
# rendered ARGS...: the image of the packaged chart with these values.
rendered() {
  helm template x "$release/gpu-sharing-operator-chart-$version.tgz" --namespace x --set operandNamespaces='{default}' "$@" --show-only templates/deployment.yaml |
    sed -n 's/^ *image: "\{0,1\}\([^"]*\)"\{0,1\}$/\1/p'
}
# A mirror has the image by the same digest; --reuse-values has the values of another version, in which there is none.
lets_users_choose_the_image() {
  local digest other=sha256:0000000000000000000000000000000000000000000000000000000000000000
  digest=$(<"$work/digest")
  [[ $(rendered --set image.repository=mirror.example/op) == "mirror.example/op@$digest" ]]
  [[ $(rendered --set image.tag=mine) == "$registry/gpu/gpu-sharing-operator:mine" ]]
  [[ $(rendered --set image.digest=$other) == "$registry/gpu/gpu-sharing-operator@$other" ]]
  if helm show values "$release/gpu-sharing-operator-chart-$version.tgz" | grep "$digest"; then return 1; fi
}
# As the container's command and user are, on another port.
has_twelve_nodes() { [[ $(command kubectl --kubeconfig "$work/simulator.kubeconfig" get nodes --output name | wc -l) == 12 ]]; }
serves_a_simulated_cluster() {
  skopeo copy --src-tls-verify=false "docker://$registry/gpu/gso-sim:$version" "dir:$work/image"
  mkdir "$work/root"
  python3 -c 'import json, sys; print(*(layer["digest"].split(":")[1] for layer in json.load(open(sys.argv[1]))["layers"]), sep="\n")' "$work/image/manifest.json" |
    while read -r layer; do tar -xzf "$work/image/$layer" -C "$work/root"; done
  start simulator chroot --userspec=65532:65532 "$work/root" /usr/bin/gso-sim --install --listen 127.0.0.1:0
  await 30 grep -oP ' at \Khttp://[^,]+' "$work/simulator.log"
  curl --silent --fail "$(grep -oP ' at \Khttp://[^,]+' "$work/simulator.log")/kubeconfig" >"$work/simulator.kubeconfig"
  await 30 has_twelve_nodes
  stop simulator
}
# As an upgrade does that does not leave them to the chart (docs/upgrading.md).
applies_the_crds() { kubectl apply --server-side --force-conflicts -f "$work/tarball/$name/crds"; }
# krew clones an index with git.
installs_with_krew() {
  cp -r "$release/krew-index" "$work/index"
  cd "$work/index"
  git init --quiet
  git add .
  git -c user.name=test -c user.email=test@example.com commit --quiet --message index
  export KREW_ROOT=$work/krew
  krew index add test "file://$work/index"
  krew install test/gpu-sharing
  [[ $(PATH=$KREW_ROOT/bin:$PATH command kubectl gpu-sharing version) == *"$version"* ]]
}
verifies_its_signatures() {
  cosign verify-blob --key "$work/cosign.pub" --insecure-ignore-tlog --signature "$release/SHA256SUMS.sig" "$release/SHA256SUMS"
  cosign verify --key "$work/cosign.pub" --insecure-ignore-tlog --allow-http-registry "$registry/gpu/gpu-sharing-operator@$(<"$work/digest")"
  sed 's/^./0/' "$release/SHA256SUMS" >"$work/other"
  if cosign verify-blob --key "$work/cosign.pub" --insecure-ignore-tlog --signature "$release/SHA256SUMS.sig" "$work/other"; then return 1; fi
}
makes_a_key() { cd "$work" && COSIGN_PASSWORD='' cosign generate-key-pair; }

check "a dry run makes all files, and pushes nothing" makes_a_release_without_pushing
check "the same program gives the same bytes" makes_the_same_bytes
check "each file has its checksum" has_its_checksums
check "a statement says what each file was made of" states_what_it_was_made_of
check "the tarball has the program, its page, completions, and the licence of each library inside" has_a_complete_tarball
check "the Debian package is clean, and has the same" has_a_clean_package
[[ -z $signed ]] || check "a key is made" makes_a_key
check "image and chart are pushed, the image by the digest that is printed" pushes_image_and_chart
check "helm installs the chart from the registry, with that image" installs_from_the_registry
check "a user's repository, tag or digest is taken instead" lets_users_choose_the_image
check "the simulator's image from the registry serves a cluster" serves_a_simulated_cluster
check "the CRDs of the tarball apply over those of the chart" applies_the_crds
check "krew installs the plugin from the index of the release" installs_with_krew
[[ -z $signed ]] || check "cosign verifies the checksums and the image, and refuses other ones" verifies_its_signatures
close_checks
