"""The installed packages of a requirements file, with versions, licences and dependencies, as a table or as a software
bill of materials (CycloneDX 1.5). Works offline.

    python -m evalapp.ops.inventory licences [requirements.txt]
    python -m evalapp.ops.inventory sbom [requirements.txt] > sbom.json
"""

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

#: Licence as packages write it -> SPDX identifier.
SPDX = {
    "apache 2.0 license": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
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
#: Licences that a program under Apache-2.0 may use without changing and distributing the packages. NVIDIA's libraries
#: come with torch for GPUs, from NVIDIA's own packages; other installations do not need them.
COMPATIBLE = {
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "CNRI-Python", "ISC",
    "LGPL-3.0-only", "LGPL-3.0-or-later", "LicenseRef-NVIDIA-Proprietary", "MIT", "MIT-0", "MIT-CMU", "MPL-2.0",
    "OFL-1.1", "PSF-2.0", "Unlicense", "Zlib",
}  # fmt: skip
EXCEPTIONS = {"LLVM-exception"}


@dataclass(frozen=True)
class Package:
    """An installed package. `licence` is an SPDX expression, empty if unknown."""

    name: str
    version: str
    licence: str
    needs: tuple[str, ...] = ()
    hashes: tuple[str, ...] = field(default=(), repr=False)


def normalise(name: str) -> str:
    """Return the normalised name of a package (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_pins(file: Path) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return name -> version and hashes of a requirements file."""
    pins: dict[str, tuple[str, tuple[str, ...]]] = {}
    text = file.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        if pin := _PIN.match(line):
            pins[normalise(pin[1])] = (pin[2], tuple(_HASH.findall(line)))
    return pins


def find_licence(about: Any) -> str:
    """Return the SPDX expression in a package's metadata: its own, that of its classifiers, or its free text."""
    text = about.get("License-Expression")
    if not text:
        classes = [line.split(" :: ")[-1] for line in about.get_all("Classifier") or [] if line.startswith("License")]
        text = " OR ".join(classes) or (about.get("License") or "").strip().split("\n")[0]
    parts = [SPDX.get(part.strip().lower(), part.strip()) for part in re.split(r" OR ", text)]
    expression = " OR ".join(dict.fromkeys(part for part in parts if part))
    if not expression and normalise(about["Name"]).startswith(("cuda-", "nvidia-")):
        return "LicenseRef-NVIDIA-Proprietary"
    return expression


def list_packages(file: Path) -> list[Package]:
    """Return the installed packages of a requirements file, by name; others are for other platforms."""
    packages = []
    pins = read_pins(file)
    for name, (_, hashes) in sorted(pins.items()):
        try:
            about = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        needs = {
            normalise(need[0])
            for text in about.requires or []
            if "extra ==" not in text and (need := _NEED.match(text))
        }
        licence = find_licence(about.metadata)
        packages.append(Package(name, about.version, licence, tuple(sorted(needs & set(pins))), hashes))
    return packages


def is_compatible(licence: str) -> bool:
    """Return whether an alternative of the SPDX expression has compatible licences only."""
    if not licence:
        return False
    for choice in re.split(r" OR ", licence.replace("(", "").replace(")", "")):
        parts = [part.strip() for part in re.split(r" AND | WITH ", choice)]
        if all(part in COMPATIBLE or part in EXCEPTIONS for part in parts):
            return True
    return False


def make_bill(packages: list[Package], *, name: str, version: str) -> dict[str, Any]:
    """Return the bill of materials. Its serial number is a hash, so that equal installations have equal bills."""
    components = [
        {
            "type": "library", "bom-ref": _ref(package), "name": package.name, "version": package.version,
            "purl": _ref(package), "licenses": [{"expression": package.licence}] if package.licence else [],
            "hashes": [{"alg": "SHA-256", "content": digest} for digest in package.hashes],
        }
        for package in packages
    ]  # fmt: skip
    refs = {package.name: _ref(package) for package in packages}
    needed = {need for package in packages for need in package.needs}
    root = f"pkg:pypi/{name}@{version}"
    edges = [{"ref": root, "dependsOn": [ref for key, ref in refs.items() if key not in needed]}]
    edges += [
        {"ref": refs[package.name], "dependsOn": [refs[n] for n in package.needs if n in refs]} for package in packages
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


def format_licences(packages: list[Package]) -> str:
    """Return a table of packages and licences, and a line with those to be checked."""
    width = max(len(package.name) for package in packages)
    lines = [f"{package.name:<{width}}  {package.version:<12}  {package.licence or 'unknown'}" for package in packages]
    wrong = [package.name for package in packages if not is_compatible(package.licence)]
    result = f"check these: {', '.join(wrong)}" if wrong else "all compatible."
    return "\n".join([*lines, "", f"{len(packages)} packages; {result}"])


def main(arguments: list[str]) -> int:
    command = arguments[0] if arguments else ""
    file = Path(arguments[1] if len(arguments) > 1 else "requirements.txt")
    if command not in ("licences", "sbom") or not file.is_file():
        print(__doc__, file=sys.stderr)
        return 2
    packages = list_packages(file)
    if command == "sbom":
        print(json.dumps(make_bill(packages, name="evalapp", version=__version__), indent=1))
        return 0
    print(format_licences(packages))
    return 0 if all(is_compatible(package.licence) for package in packages) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
