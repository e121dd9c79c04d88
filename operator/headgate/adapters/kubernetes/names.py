"""What objects of ours are called, and how they are marked. Other tools rely on these names."""

from typing import Final

from headgate.api.labels import APPLICATION, DRIVER, ROLE
from headgate.key import Key

ATTEMPT: Final = "headgate.dev/attempt"

CONTROL: Final = "headgate.dev/control"
"""Annotation of a driver pod: the control document, projected into its container."""
REVISION: Final = "headgate.dev/revision"
"""Annotation: what the driver was started with."""
LOCATIONS: Final = "headgate.dev/checkpoint-locations"
"""Annotation: where the driver's queries write their checkpoints, as far as its properties tell; one a line."""

FINALIZER: Final = "headgate.dev/stop"
"""Holds a deleted application until its driver has stopped."""

CONTAINER: Final = "driver"
MANAGER: Final = "headgate"
"""Who makes the objects, and owns the fields that the operator writes."""

DRIVER_PORT: Final = 7078
BLOCK_MANAGER_PORT: Final = 7079
UI_PORT: Final = 4040

DRIVER_SELECTOR: Final = f"{ROLE}={DRIVER}"
"""Selects the driver pods of all applications."""


def drivers_of(application: str) -> str:
    return f"{APPLICATION}={application},{DRIVER_SELECTOR}"


def pod_labels(key: Key, attempt: int, *, role: str = DRIVER, manager: str = MANAGER) -> dict[str, str]:
    return {
        APPLICATION: key.name,
        ATTEMPT: str(attempt),
        ROLE: role,
        "app.kubernetes.io/name": f"headgate-{role}",
        "app.kubernetes.io/instance": key.name,
        "app.kubernetes.io/managed-by": manager,
    }
