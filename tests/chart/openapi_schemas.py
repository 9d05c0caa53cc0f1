#!/usr/bin/env python3
"""Turns an API server's own OpenAPI into JSON schemas for kubeconform, one for each kind, strict about unknown fields.

usage: kubectl get --raw /openapi/v2 | openapi_schemas.py FOLDER

Writes FOLDER/kind-group-version.json as kubeconform names them (the group's first word; none for the core group), each with
all the definitions that it refers to.
"""
import json
import pathlib
import sys

PRESERVE = "x-kubernetes-preserve-unknown-fields"


def strict(schema):
    """A definition as kubectl would validate it: no unknown fields, and the type that OpenAPI v2 cannot express."""
    if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
        return {"type": ["string", "integer"]}
    out = dict(schema)
    if "items" in schema:
        out["items"] = strict(schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        out["additionalProperties"] = strict(schema["additionalProperties"])
    if "properties" in schema:
        out["properties"] = {name: strict(field) for name, field in schema["properties"].items()}
        if not schema.get(PRESERVE):
            out.setdefault("additionalProperties", False)
    return out


def references(schema):
    """Names of the definitions that a schema refers to."""
    if "$ref" in schema:
        yield schema["$ref"].removeprefix("#/definitions/")
    for inner in (schema.get("items"), schema.get("additionalProperties"), *schema.get("properties", {}).values()):
        if isinstance(inner, dict):
            yield from references(inner)


def closure(definitions, name):
    found, todo = {}, [name]
    while todo:
        name = todo.pop()
        if name not in found:
            found[name] = definitions[name]
            todo += references(definitions[name])
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    served = json.load(sys.stdin)["definitions"]
    definitions = {name: strict(schema) for name, schema in served.items()}
    definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"] = {"type": ["string", "number"]}
    for name in definitions:  # Any JSON, described by the server as an object.
        if name.endswith((".FieldsV1", ".RawExtension", ".JSON", ".JSONSchemaPropsOrBool", ".JSONSchemaPropsOrArray")):
            definitions[name] = {}
    kinds = 0
    for name, schema in served.items():
        for gvk in schema.get("x-kubernetes-group-version-kind", []):
            words = [gvk["kind"], gvk["group"].split(".")[0], gvk["version"]]
            whole = {"$ref": f"#/definitions/{name}", "definitions": closure(definitions, name)}
            path = folder / ("-".join(word for word in words if word).lower() + ".json")
            path.write_text(json.dumps(whole), encoding="utf-8")
            kinds += 1
    print(f"{kinds} kinds")


if __name__ == "__main__":
    main()
