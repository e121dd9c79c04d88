"""The way in for files: `SparkApplication`s out of YAML, or everything that is wrong with them.

`headgate validate` wants every finding of every file; `headgate local` and `headgate replay` want one
application or a refusal. Both come through here, so that a file means the same to each command.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from headgate.api.application import API_VERSION, GROUP, KIND, SparkApplication
from headgate.api.document import Document, Malformed, read_documents
from headgate.api.finding import Finding, Severity
from headgate.api.validation import validate
from headgate.errors import InvalidInputError, UsageError

OTHER_OPERATORS: Final = frozenset({"sparkoperator.k8s.io", "spark.apache.org"})
"""Groups of resources that people come with: Kubeflow's and Apache's."""
_LISTED: Final = 3  # kinds of what is no resource of ours
MOST_BYTES: Final = 10_000_000
"""Of a file. The API server takes 3 MiB for a resource, and a megabyte of YAML takes some seconds."""


@dataclass(frozen=True)
class Resource:
    """One `SparkApplication` of a file: the model, unless it is refused, and what is to be said about it."""

    application: SparkApplication | None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class LoadedFile:
    """What a file holds. `findings` are about the file as a whole; those of its resources stand with them."""

    file: str
    resources: tuple[Resource, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        found = [*self.findings, *(finding for resource in self.resources for finding in resource.findings)]
        return tuple(sorted(found, key=lambda finding: finding.line or 0))

    @property
    def without_resources(self) -> str:
        """Say that it holds no resource, and what it holds instead."""
        others = [found.message for found in self.findings if found.severity is Severity.NOTE][:_LISTED]
        return "; ".join([f"holds no {KIND} of {API_VERSION}", *others, "give a file that holds one"])

    @property
    def is_refused(self) -> bool:
        return any(finding.severity is Severity.ERROR for finding in self.all_findings)

    @property
    def applications(self) -> list[SparkApplication]:
        """What it holds; raises InvalidInputError with every error where it is refused, or where that is nothing."""
        errors = [found.text(self.file) for found in self.all_findings if found.severity is Severity.ERROR]
        if errors:
            raise InvalidInputError("\n".join(["the resource is refused:", *errors]))
        if not self.resources:
            raise InvalidInputError(f"{self.file}: {self.without_resources}")
        return [resource.application for resource in self.resources if resource.application is not None]


def load_application(path: Path) -> SparkApplication:
    """Return the one application of a file; raise InvalidInputError with every finding if it is refused."""
    applications = load_file(path).applications
    if len(applications) != 1:
        raise InvalidInputError(
            f"{path}: holds {len(applications)} resources of kind {KIND}; give a file with one"
        )
    return applications[0]


def load_file(path: Path) -> LoadedFile:
    """Read a file; raise UsageError if there is none that can be read."""
    try:
        with path.open("rb") as file:
            return load_bytes(file.read(MOST_BYTES + 1), str(path))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}; give the path of a resource file") from None


def load_bytes(raw: bytes, file: str) -> LoadedFile:
    """Read the content of a file that is called `file` in findings."""
    if len(raw) > MOST_BYTES:
        message = f"has more than {MOST_BYTES // 10**6} MB; split it, or give the path of a resource file"
        return LoadedFile(file, findings=(Finding(Severity.ERROR, message),))
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        message = "is not UTF-8 text; save it as UTF-8, or give the path of a resource file"
        return LoadedFile(file, findings=(Finding(Severity.ERROR, message, line=line),))
    return load_text(text, file)


def load_text(text: str, file: str = "-") -> LoadedFile:
    """Read `text`, one or more YAML documents; other kinds are skipped with a note. Raises nothing."""
    resources: list[Resource] = []
    findings: list[Finding] = []
    lines: dict[tuple[str | None, str], int] = {}
    for document in (each for whole in read_documents(text) for each in _unpacked(whole)):
        match _examined(document):
            case Resource() as resource:
                resources.append(resource)
                if (given := resource.application) is not None and document.line is not None:
                    first = lines.setdefault((given.metadata.namespace, given.name), document.line)
                    if first != document.line:
                        again = f"application {given.name} stands in line {first} too, and this one wins"
                        message = f"{again}; give each a name of its own"
                        findings.append(Finding(Severity.WARNING, message, line=document.line))
            case Finding() as finding:
                findings.append(finding)
    return LoadedFile(file, tuple(resources), tuple(findings))


def _unpacked(document: Document | Malformed) -> Iterator[Document | Malformed]:
    """Yield what a `List` holds, as `kubectl get -o yaml` writes one, or else the document itself."""
    content = document.content if isinstance(document, Document) else None
    match content:
        case {"apiVersion": "v1", "kind": "List", "items": list(items)} if isinstance(document, Document):
            for index in range(len(items)):
                yield document.part(("items", index))
        case _:
            yield document


def _examined(document: Document | Malformed) -> Resource | Finding:
    """Return a resource of ours, or why the document is none."""

    def error(message: str) -> Finding:
        return Finding(Severity.ERROR, message, line=document.line)

    if isinstance(document, Malformed):
        return error(f"malformed YAML: {document.message}")
    if not isinstance(document.content, dict):
        return error(f"holds no object; a resource starts with apiVersion: {API_VERSION}")
    kind, version = document.content.get("kind"), document.content.get("apiVersion")
    if kind is None or version is None:
        missing = "kind" if kind is None else "apiVersion"
        return error(f"has no {missing}; set apiVersion: {API_VERSION} and kind: {KIND}")
    if (group := str(version).partition("/")[0]) != GROUP:
        remedy = (
            f": it is of another operator. Here it is apiVersion: {API_VERSION}, the script in spec.main.file"
        )
        note = f"{version} {kind} skipped{remedy if group in OTHER_OPERATORS else ''}"
        return Finding(Severity.NOTE, note, line=document.line)
    if kind != KIND:
        return error(f"kind {kind} is not one of {GROUP}; set kind: {KIND}")
    application, findings = validate(document.content)
    placed = (replace(found, line=document.line_of(found.location)) for found in findings)
    return Resource(application, tuple(placed))
