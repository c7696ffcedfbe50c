"""What an installation is made of: the packages of a requirements file with versions, licences and what they need; as
a table, and as a bill of materials (CycloneDX 1.5). Reads what is installed, asks nobody.

    python -m evalapp.ops.inventory licences [requirements.txt]
    python -m evalapp.ops.inventory sbom [requirements.txt] > sbom.json
"""

from __future__ import annotations

import json
import re
import sys
import uuid
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from evalapp import __version__

_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?==([^\s;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_NEED = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*")

#: How packages write a licence -> its SPDX identifier.
SPDX = {
    "apache 2.0 license": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "3-clause bsd license": "BSD-3-Clause",
    "bsd 3-clause": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "gnu library or lesser general public license (lgpl)": "LGPL-3.0-or-later",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "nvidia proprietary software": "LicenseRef-NVIDIA-Proprietary",
    "other/proprietary license": "LicenseRef-NVIDIA-Proprietary",
    "python software foundation license": "PSF-2.0",
}
#: May be used by a program under Apache-2.0 that does not ship them changed. NVIDIA's libraries come with torch for
#: graphics cards, from their maker's own packages; an installation without a card does without them.
COMPATIBLE = {
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "CNRI-Python", "ISC",
    "LGPL-3.0-or-later", "LicenseRef-NVIDIA-Proprietary", "MIT", "MIT-0", "MPL-2.0", "PSF-2.0", "Unlicense", "Zlib",
}  # fmt: skip
EXCEPTIONS = {"LLVM-exception"}


@dataclass(frozen=True)
class Package:
    """One package. `licence` is an SPDX expression, empty when it says none."""

    name: str
    version: str
    licence: str
    needs: tuple[str, ...] = ()
    hashes: tuple[str, ...] = field(default=(), repr=False)


def normal(name: str) -> str:
    """The name of a package as indexes write it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_pins(file: Path) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Name -> version and hashes of a requirements file."""
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    text = file.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        if pin := _PIN.match(line):
            found[normal(pin[1])] = (pin[2], tuple(_HASH.findall(line)))
    return found


def licence_of(about: Any) -> str:
    """The SPDX expression of a package's metadata: its own, else that of its classifiers, else what it calls it."""
    said = about.get("License-Expression")
    if not said:
        classes = [line.split(" :: ")[-1] for line in about.get_all("Classifier") or [] if line.startswith("License")]
        said = " OR ".join(classes) or (about.get("License") or "").strip().split("\n")[0]
    parts = [SPDX.get(part.strip().lower(), part.strip()) for part in re.split(r" OR ", said)]
    known = " OR ".join(dict.fromkeys(part for part in parts if part))
    if not known and normal(about["Name"]).startswith(("cuda-", "nvidia-")):
        return "LicenseRef-NVIDIA-Proprietary"
    return known


def packages(file: Path) -> list[Package]:
    """The packages of a file that are installed, in the order of their names; others are for other machines."""
    found = []
    pins = read_pins(file)
    for name, (_, hashes) in sorted(pins.items()):
        try:
            about = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        needs = {
            normal(need[0]) for text in about.requires or [] if "extra ==" not in text and (need := _NEED.match(text))
        }
        licence = licence_of(about.metadata)
        found.append(Package(name, about.version, licence, tuple(sorted(needs & set(pins))), hashes))
    return found


def is_compatible(licence: str) -> bool:
    """Whether one of the choices it leaves has compatible parts only."""
    if not licence:
        return False
    for choice in re.split(r" OR ", licence.replace("(", "").replace(")", "")):
        parts = [part.strip() for part in re.split(r" AND | WITH ", choice)]
        if all(part in COMPATIBLE or part in EXCEPTIONS for part in parts):
            return True
    return False


def bill(found: list[Package], *, name: str, version: str) -> dict[str, Any]:
    """CycloneDX 1.5. The serial number follows from the content, so that the same installation gives the same bill."""
    components = [
        {
            "type": "library", "bom-ref": _ref(package), "name": package.name, "version": package.version,
            "purl": _ref(package), "licenses": [{"expression": package.licence}] if package.licence else [],
            "hashes": [{"alg": "SHA-256", "content": digest} for digest in package.hashes],
        }
        for package in found
    ]  # fmt: skip
    refs = {package.name: _ref(package) for package in found}
    needed = {need for package in found for need in package.needs}
    root = f"pkg:pypi/{name}@{version}"
    edges = [{"ref": root, "dependsOn": [ref for key, ref in refs.items() if key not in needed]}]
    edges += [
        {"ref": refs[package.name], "dependsOn": [refs[n] for n in package.needs if n in refs]} for package in found
    ]
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(components, sort_keys=True))
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "serialNumber": f"urn:uuid:{serial}", "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": root, "name": name, "version": version,
                                   "licenses": [{"expression": "Apache-2.0"}]}},
        "components": components, "dependencies": edges,
    }  # fmt: skip


def _ref(package: Package) -> str:
    return f"pkg:pypi/{package.name}@{package.version}"


def licences(found: list[Package]) -> str:
    wide = max(len(package.name) for package in found)
    lines = [f"{package.name:<{wide}}  {package.version:<12}  {package.licence or 'unknown'}" for package in found]
    wrong = [package.name for package in found if not is_compatible(package.licence)]
    last = (
        f"{len(found)} packages; to be looked at: {', '.join(wrong)}" if wrong else f"{len(found)} packages, all fit."
    )
    return "\n".join([*lines, "", last])


def main(arguments: list[str]) -> int:
    what = arguments[0] if arguments else ""
    file = Path(arguments[1] if len(arguments) > 1 else "requirements.txt")
    if what not in ("licences", "sbom") or not file.is_file():
        print(__doc__, file=sys.stderr)
        return 2
    found = packages(file)
    if what == "sbom":
        print(json.dumps(bill(found, name="evalapp", version=__version__), indent=1))
        return 0
    print(licences(found))
    return 0 if all(is_compatible(package.licence) for package in found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
