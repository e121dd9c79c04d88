"""Whether the licence of every locked library is one that may be used here: `python -m locks.licences`, offline.

It reads what each installed library says of itself, so that nothing has to be asked. What is not installed on this
system is told as not looked at.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, distributions
from typing import Final

from locks.lockfile import OF_SETUP, Pin, canonical, read

ACCEPTED: Final = frozenset(
    {
        *(
            "0BSD",
            "Apache-2.0",
            "BSD",
            "BSD-2-Clause",
            "BSD-3-Clause",
            "CC0-1.0",
            "CNRI-Python",
            "ISC",
            "MIT",
        ),
        *("MPL-2.0", "PSF-2.0", "Zlib"),
    }
)
"""By their names in SPDX; `BSD` is one that does not say how many clauses it has. All let a library be handed on in
an image as it is, with its text beside it. One that is not here is a question for a person, and then a line here."""
CALLED: Final = {
    "3-clause bsd license": "BSD-3-Clause",
    "apache 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd 2-clause license": "BSD-2-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
    "bsd license": "BSD",
    "cc0": "CC0-1.0",
    "isc license": "ISC",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mit style": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
}
"""What libraries that do not speak SPDX call theirs."""
IN_THEIR_FILES: Final = {"promql-parser": "MIT"}
"""Of libraries whose metadata does not say it, as the licence file in them does."""
CLASS: Final = "License :: OSI Approved :: "


def main() -> int:
    """Print what is not accepted, and what was not looked at; returns the exit code."""
    pins = read(*OF_SETUP)
    installed = {canonical(each.name): each for each in distributions()}
    found = list(faults(pins, installed))
    for fault in found:
        print(fault, file=sys.stderr)
    absent = sorted(pins.keys() - installed.keys())
    print(f"licences: {len(pins) - len(absent)} libraries looked at, {len(found)} to see to", end="")
    print(f"; not looked at, for they are not installed here: {', '.join(absent)}" if absent else "")
    return 1 if found else 0


def faults(pins: Mapping[str, Pin], installed: Mapping[str, Distribution]) -> Iterator[str]:
    """Yield what is wrong with those that are installed."""
    for name in sorted(pins.keys() & installed.keys()):
        version, licence = installed[name].version, licence_of(installed[name]) or IN_THEIR_FILES.get(name)
        if version != pins[name].version:
            yield f"{name}: {version} is installed, the lock has {pins[name].version}: run `make setup`"
        elif licence is None:
            yield f"{name} {version} does not say its licence: read its files, then add its name to locks/licences.py"
        elif not is_accepted(licence):
            yield f"{name} {version}: licence {licence!r} is not among those accepted in locks/licences.py"


def licence_of(library: Distribution) -> str | None:
    """Return what a library says of its licence, as SPDX has it where that is known; `None`: nothing."""
    metadata = library.metadata
    if expression := metadata["License-Expression"]:
        return str(expression)
    first = (metadata["License"] or "").partition("\n")[0].strip()
    classes = [
        each.removeprefix(CLASS) for each in metadata.get_all("Classifier") or [] if each.startswith(CLASS)
    ]
    said = [CALLED.get(each.lower(), each) for each in [first, *classes] if each]
    return next((each for each in said if each in ACCEPTED), said[0] if said else None)


def is_accepted(licence: str) -> bool:
    """Tell whether a licence, or an expression of `AND` and `OR` without parentheses, is accepted."""
    return any(all(part in ACCEPTED for part in way.split(" AND ")) for way in licence.split(" OR "))


if __name__ == "__main__":
    sys.exit(main())
