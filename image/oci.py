"""OCI image archives whose bytes depend on what is in them alone."""
import gzip
import io
import json
import tarfile

from packages import sha256


def even_modes(root, runs):
    """Modes of a folder's files that do not depend on whose checkout they come from; `runs`: whether a file is executed."""
    for path in root.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or runs(path) else 0o644)


def add(archive, name, data, when, mode=0o644):
    """A file of a tar, owned by root."""
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = len(data), when, mode
    archive.addfile(info, io.BytesIO(data))


def tar_of(root, when, prefix=""):
    """A tar whose bytes depend on names, contents and modes alone."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in sorted(root.rglob("*"), key=lambda p: p.relative_to(root).as_posix()):
            info = archive.gettarinfo(path, arcname=prefix + path.relative_to(root).as_posix())
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            info.mtime = when
            if info.isreg():
                with open(path, "rb") as stream:
                    archive.addfile(info, stream)
            else:
                info.type = tarfile.SYMTYPE if path.is_symlink() else tarfile.DIRTYPE
                archive.addfile(info)
    return out.getvalue()


def squeeze(data):
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0, compresslevel=9) as stream:
        stream.write(data)
    return out.getvalue()


def text_of(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


class Archive:
    """An image index of one image for each architecture."""

    def __init__(self):
        self.files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}'}
        self.images = []
        self.squeezed = {}  # Bytes of the layer, for each architecture.

    def blob(self, kind, data, **more):
        digest = sha256(data)
        self.files[f"blobs/sha256/{digest}"] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": "sha256:" + digest, "size": len(data), **more}

    def add(self, root, architecture, config, when, created):
        tar = tar_of(root, when)
        layer = squeeze(tar)
        self.squeezed[architecture] = len(layer)
        config = text_of({"created": created, "architecture": architecture, "os": "linux", "config": config,
                          "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha256(tar)]}, "history": [{"created": created, "created_by": "image/build.py"}]})
        manifest = text_of({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                            "config": self.blob("config.v1+json", config), "layers": [self.blob("layer.v1.tar+gzip", layer)]})
        self.images.append(self.blob("manifest.v1+json", manifest, platform={"architecture": architecture, "os": "linux"}))

    def finish(self, version, when):
        """(the archive, the digest by which a registry knows the image)."""
        def index(manifests):
            return text_of({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests})
        image = self.blob("index.v1+json", index(self.images), annotations={"org.opencontainers.image.ref.name": version})
        files = {**self.files, "index.json": index([image])}
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for name in sorted(files):
                add(archive, name, files[name], when)
        return out.getvalue(), image["digest"]
