"""What every model of the resource has in common, and the value types that several of them use.

Models are frozen, speak camelCase outside and snake_case inside, and refuse fields that they do not know: a
misspelt setting that is quietly ignored is the kind of fault found months later. The docstring under an
attribute becomes its description in the CRD and in the reference, so it is written once.
"""

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from headgate_contract.document import MOST_RECORDS


class ApiModel(BaseModel):
    """Base of every object inside a `SparkApplication`."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        extra="forbid",
        frozen=True,
        strict=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
    )


def list_map(*keys: str) -> dict[str, Any]:
    """Schema marks of a list whose items are told apart by `keys`, so that appliers merge it item by item."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


NAME_FORM: Final = r"^[^,/[:space:]]+$"
Name = Annotated[str, StringConstraints(min_length=1, max_length=249, pattern=NAME_FORM)]
"""A name from the job: of a query or a source. 249 is the longest name of a Kafka topic; comma, slash and
blanks separate names in the annotation `headgate.dev/paused`."""

GroupName = Annotated[str, StringConstraints(min_length=1, max_length=63)]
Cores = Annotated[int, Field(ge=1, le=1024)]
Instances = Annotated[int, Field(ge=1, le=10_000)]
Memory = Annotated[str, StringConstraints(max_length=16, pattern=r"^[1-9][0-9]*[kmgtKMGT][bB]?$")]
Quantity = Annotated[str, StringConstraints(max_length=16, pattern=r"^[1-9][0-9]*([KMGTP]i|[kMGTP])$")]
Records = Annotated[int, Field(ge=1, le=MOST_RECORDS)]
RecordsPerSecond = Annotated[float, Field(gt=0, le=MOST_RECORDS)]
Argument = Annotated[str, StringConstraints(max_length=4096)]
ConfValue = Annotated[str, StringConstraints(max_length=8192)]
SparkConf = Annotated[dict[str, ConfValue], Field(max_length=256)]
